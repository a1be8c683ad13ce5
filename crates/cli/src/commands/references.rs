//! `show --references`: the pages of each rank that another rank holds, as (hash, owner).

use serde_json::json;
use standfast::Image;
use standfast_admin::OpenJob;
use standfast_admin::human_bytes;
use standfast_admin::references::{Reference, references};

use crate::escape;
use crate::failure::Result;
use crate::output::{Align, Column, FAINT, Output, TITLE};

/// Hashes that the table shows of a run; the JSON lines have all.
const SHOWN: usize = 1;

/// Lists the references of these images.
pub(crate) fn show(job: &OpenJob, images: &[Image], output: &Output) -> Result<()> {
    let found = references(job, images)?;
    for reference in &found {
        output.record(
            "reference",
            json!({
                "rank": reference.rank, "region": reference.region, "page": reference.page,
                "pages": reference.pages, "owner": reference.owner,
                "segment": reference.segment.to_string(), "slot": reference.slot,
                "hashes": reference.hashes,
            }),
        )?;
    }
    if found.is_empty() {
        return output.line("\nno rank refers to a page of another one");
    }
    let size = |one: &Reference| u64::from(one.pages) * u64::from(one.page_bytes);
    let bytes: u64 = found.iter().map(size).sum();
    output.line(format_args!(
        "\n{}  {}",
        output.paint(TITLE, "pages that other ranks hold"),
        output.paint(FAINT, format_args!("{} by reference", human_bytes(bytes)))
    ))?;
    let columns = [
        Column("RANK", Align::Right),
        Column("REGION", Align::Left),
        Column("PAGE", Align::Right),
        Column("PAGES", Align::Right),
        Column("OWNER", Align::Right),
        Column("HASH", Align::Left),
    ];
    output.table(&columns, found.iter().map(row).collect())
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
