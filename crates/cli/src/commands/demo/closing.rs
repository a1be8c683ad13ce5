//! The closing block: what the last checkpoint did, and what all of them together cost and saved.

use serde_json::json;
use standfast::config::Config;
use standfast::{Manifest, Stats};
use standfast_admin::{choose, open_job, show};
use standfast_admin::{human_bytes, human_ns};

use crate::failure::Result;
use crate::output::{FAINT, Output, TITLE};

/// Tells from the manifests, which survived the kill as well. `running` is the time for which
/// protected solvers ran, in seconds.
pub(super) fn tell(config: &Config, running: f64, output: &Output) -> Result<()> {
    let job = open_job(config.clone())?;
    let inventory = job.inventory()?;
    let last = choose(&inventory, None)?;
    let found = show::summary(&job, last, show::first_image(&job, last).as_ref());
    let (report, page_bytes) = (found.report, found.page_bytes);
    let title = format!("the last checkpoint, {}", last.version);
    output.line(format_args!("\n{}\n{report}", output.paint(TITLE, title)))?;

    let all = total(&inventory.checkpoints);
    let page = u64::from(page_bytes);
    let stored = all.segment_bytes + all.image_bytes;
    let fields = json!({
        "checkpoints": inventory.checkpoints.len(), "stats": all, "page_bytes": page_bytes,
        "stored_bytes": stored, "running_seconds": running,
    });
    output.record("totals", fields)?;
    let title = format!("all {} checkpoints", inventory.checkpoints.len());
    output.line(format_args!("\n{}", output.paint(TITLE, title)))?;
    let line = |word: &str, value: String, rest: String| {
        output.line(format_args!("  {word:<11}{value:>12}  {}", output.paint(FAINT, rest)))
    };
    let saved = |pages: u64| human_bytes(pages * page);
    let share = |part: u64| 100.0 * part as f64 / (all.pages * page).max(1) as f64;
    let pages = |pages: u64| format!("saved, {:.1} %", share(pages * page));
    line("captured", human_bytes(all.captured_bytes), format!("{} pages", all.pages))?;
    line("zero", saved(all.zero_pages), pages(all.zero_pages))?;
    line("duplicate", saved(all.duplicate_pages), pages(all.duplicate_pages))?;
    line("old", saved(all.old_pages), pages(all.old_pages))?;
    let squeezed = (all.new_pages * page).saturating_sub(all.compressed_bytes);
    line("compression", human_bytes(squeezed), format!("saved, {:.1} %", share(squeezed)))?;
    let ratio = all.captured_bytes as f64 / stored.max(1) as f64;
    line("stored", human_bytes(stored), format!("{ratio:.1} x smaller than captured"))?;
    let blocked = all.blocked_ns as f64 / 1e9;
    let rest = format!(
        "of {running:.1} s running, {:.2} %; writing went on beside it",
        100.0 * blocked / running.max(1e-9)
    );
    line("blocked", human_ns(all.blocked_ns), rest)
}

fn total(checkpoints: &[Manifest]) -> Stats {
    let mut all = Stats::default();
    for Manifest { stats, .. } in checkpoints {
        all.captured_bytes += stats.captured_bytes;
        all.pages += stats.pages;
        all.zero_pages += stats.zero_pages;
        all.duplicate_pages += stats.duplicate_pages;
        all.old_pages += stats.old_pages;
        all.new_pages += stats.new_pages;
        all.compressed_bytes += stats.compressed_bytes;
        all.segment_bytes += stats.segment_bytes;
        all.image_bytes += stats.image_bytes;
        all.blocked_ns += stats.blocked_ns;
        all.total_ns += stats.total_ns;
    }
    all
}
