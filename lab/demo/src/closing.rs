//! The closing block: what each stage saved over all checkpoints, and what it cost.

use serde_json::json;
use standfast::Stats;
use standfast_format::{human_bytes, human_ns};

use crate::output::{FAINT, Output, TITLE};
use crate::watch::Watch;
use anyhow::Result;

/// What the solver's checkpoints are cut into: the default of the setting `page`.
const PAGE_BYTES: u64 = 4096;

/// Tells. `running` is for how long protected jobs ran, in seconds.
pub(crate) fn tell(watch: &Watch, sent_bytes: u64, running: f64, output: &Output) -> Result<()> {
    let all = total(watch);
    let count = watch.checkpoints.len();
    let shard_bytes: u64 = watch.checkpoints.values().map(|known| known.shard_bytes).sum();
    let stored = all.segment_bytes.saturating_add(all.image_bytes);
    output.record(
        "totals",
        json!({
            "checkpoints": count, "stats": all, "page_bytes": PAGE_BYTES, "stored_bytes": stored,
            "shard_bytes": shard_bytes, "sent_bytes": sent_bytes, "running_seconds": running,
        }),
    )?;
    let title = format!("what each stage saved, over {count} checkpoints of all ranks");
    output.line(format_args!("\n{}", output.paint(TITLE, title)))?;
    let line = |word: &str, value: String, rest: String| {
        output.line(format_args!("  {word:<12}{value:>12}  {}", output.paint(FAINT, rest)))
    };
    let bytes = |pages: u64| pages.saturating_mul(PAGE_BYTES);
    let share = |part: u64| 100.0 * part as f64 / all.captured_bytes.max(1) as f64;
    let saved = |word: &str, bytes: u64, why: &str| {
        line(word, human_bytes(bytes), format!("{:>5.1} % saved: {why}", share(bytes)))
    };
    line("captured", human_bytes(all.captured_bytes), format!("{} pages", all.pages))?;
    saved("zero", bytes(all.zero_pages), "pages of zeros")?;
    saved("duplicate", bytes(all.duplicate_pages), "equal pages of one rank")?;
    saved("shared", bytes(all.remote_pages), "pages that another rank stores")?;
    saved("old", bytes(all.old_pages), "pages that an earlier checkpoint stored")?;
    let squeezed = bytes(all.new_pages).saturating_sub(all.compressed_bytes);
    saved("compression", squeezed, "codec chosen for each block")?;
    let ratio = all.captured_bytes as f64 / stored.max(1) as f64;
    line(
        "stored",
        human_bytes(stored),
        format!("{ratio:.1} x smaller than captured, with metadata"),
    )?;
    line("ring", human_bytes(shard_bytes), "shards: any 2 of 4 nodes may be lost".into())?;
    line("global", human_bytes(sent_bytes), "sent by the agents, beside the program".into())?;
    let share = 100.0 * all.blocked_ns as f64 / 1e9 / running.max(1e-9);
    let rest = format!("of {running:.0} s running, {share:.2} %: all that the program waited for");
    line("stopped", human_ns(all.blocked_ns), rest)
}

/// Amounts and times of all checkpoints, one after the other.
fn total(watch: &Watch) -> Stats {
    let all = watch.checkpoints.values().map(|known| known.manifest.stats);
    all.fold(Stats::default(), |all, one| Stats {
        blocked_ns: all.blocked_ns.saturating_add(one.blocked_ns),
        total_ns: all.total_ns.saturating_add(one.total_ns),
        ..all.join(one)
    })
}
