//! `show`: one checkpoint in full: what each stage saved, its regions, the segments it needs; with
//! `--writes` how its bytes were written instead of what they are, with `--references` which pages
//! other ranks hold.

use std::process::ExitCode;

use serde_json::json;
use standfast::{Image, Manifest};
use standfast_admin::human_bytes;
use standfast_admin::show::{self, Origin, Region, Segment, Start};
use standfast_admin::{OpenJob, choose, open};

use super::{references, ring, writes};
use crate::args::{Global, ShowArgs};
use crate::escape;
use crate::failure::Result;
use crate::moment;
use crate::output::{Output, TITLE, WARN};

/// Shows a checkpoint.
pub(crate) fn run(global: &Global, args: &ShowArgs, output: &Output) -> Result<ExitCode> {
    let job = open(&global.place())?;
    let _lock = job.lock()?;
    let inventory = job.inventory()?;
    let manifest = choose(&inventory, args.version)?;
    if args.ring {
        ring::show(&job, manifest, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.writes {
        let image = show::first_image(&job, manifest);
        summary(&job, manifest, image.as_ref(), output)?;
        writes::show(manifest, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = show::images(&job, manifest)?;
    if found.elsewhere > 0 {
        let ranks = found.elsewhere;
        output.remark(format_args!(
            "images of {ranks} ranks are not here: give the stores of other nodes with --stores"
        ));
    }
    let images = found.images;
    summary(&job, manifest, images.first(), output)?;
    if args.references {
        references::show(&job, &images, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (found, needed) = show::contents(&job, manifest, &images);
    regions(&found, output)?;
    segments(&needed, output)?;
    Ok(ExitCode::SUCCESS)
}

fn summary(
    job: &OpenJob,
    manifest: &Manifest,
    image: Option<&Image>,
    output: &Output,
) -> Result<()> {
    let found = show::summary(job, manifest, image);
    let (report, level, page_bytes) = (&found.report, found.level, found.page_bytes);
    let fields = json!({
        "job": job.name,
        "version": manifest.version,
        "sequence": manifest.sequence,
        "taken": moment::local(manifest.taken_ns),
        "taken_ns": manifest.taken_ns,
        "level": level,
        "ranks": manifest.ranks,
        "survives": level.survives(),
        "marked": found.marked,
        "finished": found.start.as_ref().is_some_and(|start| start.finished_ns > 0),
        "declared": found.start.as_ref().map(|start| &start.declared),
        "page_bytes": page_bytes,
        "hash": found.hash.map(|hash| hash.name()),
        "stats": manifest.stats,
        "stored_bytes": report.stored_bytes(),
        "metadata_bytes": report.metadata_bytes(),
    });
    output.record("checkpoint", fields)?;
    let title = format!("checkpoint {} of job {}", manifest.version, job.name);
    let ranks = if manifest.ranks == 1 { "rank" } else { "ranks" };
    let facts = format!(
        "{}, {}, {} {ranks}, pages of {}{}",
        moment::local(manifest.taken_ns),
        moment::age(manifest.taken_ns),
        manifest.ranks,
        human_bytes(u64::from(page_bytes)),
        found.hash.map_or(String::new(), |hash| format!(" by {hash}"))
    );
    output.line(output.heading(title, facts))?;
    output.line(report)?;
    if let Some(start) = &found.start {
        about_start(start, output)?;
    }
    if let Some(why) = found.marked {
        let word = output.paint(WARN, "marked as damaged");
        output.line(format_args!("  {word} by a lazy restart: {}", escape::name(&why)))?;
    }
    Ok(())
}

fn about_start(start: &Start, output: &Output) -> Result<()> {
    for one in &start.declared {
        let (name, value) = (escape::name(&one.name), escape::name(&one.value));
        output.line(format_args!("  declared {name} = {value}"))?;
    }
    match start.finished_ns {
        0 => Ok(()),
        ended => output.line(format_args!("  finished {}", moment::local(ended))),
    }
}

fn regions(regions: &[Region], output: &Output) -> Result<()> {
    let mut rows = Vec::new();
    for region in regions {
        output.record("region", region)?;
        rows.push(vec![
            region.rank.to_string(),
            escape::name(&region.name),
            human_bytes(region.bytes),
            if region.elem == 0 { "-".into() } else { region.elem.to_string() },
            region.pages.to_string(),
            region.zero_pages.to_string(),
            region.own_pages.to_string(),
            region.old_pages.to_string(),
            region.runs.to_string(),
        ]);
    }
    output.line(format_args!("\n{}", output.paint(TITLE, "regions")))?;
    let columns = ">RANK|REGION|>SIZE|>ELEMENT|>PAGES|>ZERO|>STORED HERE|>STORED EARLIER|>RUNS";
    output.table(columns, rows)
}

fn segments(segments: &[Segment], output: &Output) -> Result<()> {
    let mut rows = Vec::new();
    for Segment { segment, used_slots, origin } in segments {
        let fields = json!({
            "segment": segment.id.to_string(), "bytes": segment.file_bytes,
            "slots": segment.slots, "used_slots": used_slots, "origin": origin,
        });
        output.record("segment", fields)?;
        let written = match origin {
            Origin::Own => "this checkpoint",
            Origin::Old => "an earlier one",
            Origin::Unreadable => "? (cannot be read)",
        };
        rows.push(vec![
            segment.id.to_string(),
            human_bytes(segment.file_bytes),
            segment.slots.to_string(),
            format!("{:.1} %", percent(*used_slots, u64::from(segment.slots))),
            written.into(),
        ]);
    }
    if rows.is_empty() {
        return output.line("\nneeds no segment: every page is zero");
    }
    let is_own = |one: &&Segment| one.origin == Origin::Own;
    let used = |one: &Segment| one.used_slots;
    let all: u64 = segments.iter().map(used).sum();
    let own: u64 = segments.iter().filter(is_own).map(used).sum();
    let bytes = segments.iter().map(|one| one.segment.file_bytes).fold(0, u64::saturating_add);
    let title = format!("segments it needs: {}, {}", rows.len(), human_bytes(bytes));
    let old = format!("{:.1} % of the pages were stored earlier", percent(all - own, all));
    output.line(format_args!("\n{}", output.heading(title, old)))?;
    let columns = "SEGMENT|>SIZE|>PAGES|>USED|WRITTEN BY";
    output.table(columns, rows)
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
