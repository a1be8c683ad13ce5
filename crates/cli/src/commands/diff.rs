//! `diff`: which pages differ between two checkpoints, from their hashes alone.

use std::process::ExitCode;

use serde_json::json;
use standfast_admin::diff::{RegionDiff, diff};
use standfast_admin::human_bytes;
use standfast_admin::{choose, open};

use crate::args::{DiffArgs, Global};
use crate::escape;
use crate::failure::Result;
use crate::output::{GOOD, Output, TITLE};

/// Compares two checkpoints.
pub(crate) fn run(global: &Global, args: &DiffArgs, output: &Output) -> Result<ExitCode> {
    let job = open(&global.place())?;
    let _lock = job.lock()?;
    let inventory = job.inventory()?;
    let before = choose(&inventory, Some(args.before))?;
    let after = choose(&inventory, Some(args.after))?;
    let regions = diff(&job, before, after)?;
    records(&regions, args, output)?;
    tell(&regions, args, output)?;
    Ok(ExitCode::SUCCESS)
}

/// Regions that differ, and how many pages and bytes of all.
fn totals(regions: &[RegionDiff]) -> (usize, u64, u64) {
    let changed = regions.iter().filter(|region| region.state != "same").count();
    let pages = regions.iter().map(|region| region.pages_changed).fold(0, u64::saturating_add);
    let bytes = regions.iter().map(|region| region.bytes_changed).fold(0, u64::saturating_add);
    (changed, pages, bytes)
}

fn records(regions: &[RegionDiff], args: &DiffArgs, output: &Output) -> Result<()> {
    for region in regions {
        let (rank, name) = (region.rank, &region.name);
        output.record("region", region)?;
        for (start, end) in region.ranges.iter().filter(|_| args.ranges) {
            let fields = json!({ "rank": rank, "region": name, "start": start, "end": end });
            output.record("range", fields)?;
        }
    }
    let (changed, pages, bytes) = totals(regions);
    let fields = json!({
        "before": args.before, "after": args.after, "regions_changed": changed,
        "pages_changed": pages, "bytes_changed": bytes,
    });
    output.record("summary", fields)
}

fn row(region: &RegionDiff) -> Vec<String> {
    let size = |bytes: Option<u64>| bytes.map_or("-".into(), human_bytes);
    let whole = region.whole().max(1);
    vec![
        region.rank.to_string(),
        escape::name(&region.name),
        region.state.into(),
        size(region.bytes_before),
        size(region.bytes_after),
        region.pages_changed.to_string(),
        human_bytes(region.bytes_changed),
        format!("{:.1} %", 100.0 * region.bytes_changed as f64 / whole as f64),
    ]
}

fn tell(regions: &[RegionDiff], args: &DiffArgs, output: &Output) -> Result<()> {
    let title = format!("checkpoint {} against {}", args.before, args.after);
    output.line(output.paint(TITLE, title))?;
    let columns = ">RANK|REGION|STATE|>BEFORE|>AFTER|>PAGES CHANGED|>BYTES CHANGED|>SHARE";
    output.table(columns, regions.iter().map(row).collect())?;
    if args.ranges && regions.iter().any(|region| !region.ranges.is_empty()) {
        output.line("\n  ranges of bytes that differ, in whole pages")?;
        for region in regions {
            for (start, end) in &region.ranges {
                output.line(format_args!("  {}  {start}..{end}", escape::name(&region.name)))?;
            }
        }
    }
    let (changed, pages, bytes) = totals(regions);
    if changed == 0 {
        return output.line(output.paint(GOOD, "no difference"));
    }
    output.line(format_args!(
        "{changed} of {} regions differ, {pages} pages, {}",
        regions.len(),
        human_bytes(bytes)
    ))
}
