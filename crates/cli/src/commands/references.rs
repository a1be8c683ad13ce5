//! `show --references`: the pages of each rank that another rank holds, as (hash, owner).

use standfast::Image;
use standfast_admin::OpenJob;
use standfast_admin::human_bytes;
use standfast_admin::references::{Reference, references};

use crate::escape;
use crate::failure::Result;
use crate::output::Output;

/// Hashes that the table shows of a run; the JSON lines have all.
const SHOWN: usize = 1;

/// Lists the references of these images.
pub(crate) fn show(job: &OpenJob, images: &[Image], output: &Output) -> Result<()> {
    let found = references(job, images)?;
    for reference in &found {
        output.record("reference", reference)?;
    }
    if found.is_empty() {
        return output.line("\nno rank refers to a page of another one");
    }
    let size = |one: &Reference| u64::from(one.pages) * u64::from(one.page_bytes);
    let bytes: u64 = found.iter().map(size).sum();
    let bytes = format!("{} by reference", human_bytes(bytes));
    output.line(format_args!("\n{}", output.heading("pages that other ranks hold", bytes)))?;
    let columns = ">RANK|REGION|>PAGE|>PAGES|>OWNER|HASH";
    output.table(columns, found.iter().map(row).collect())
}

fn row(reference: &Reference) -> Vec<String> {
    let hashes = &reference.hashes;
    let more = if hashes.len() > SHOWN { ", …" } else { "" };
    vec![
        reference.rank.to_string(),
        escape::name(&reference.region),
        reference.page.to_string(),
        reference.pages.to_string(),
        reference.owner.to_string(),
        format!("{}{more}", hashes.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ")),
    ]
}
