//! `show`: one checkpoint in full: what each stage saved, its regions, the segments it needs; with
//! `--writes` how its bytes were written instead of what they are, with `--references` which pages
//! other ranks hold.
//!
//! Data: manifest and images -> closing block, regions; headers of the segments -> which of them
//! this checkpoint wrote itself and which it shares with earlier ones.

use std::collections::HashMap;
use std::process::ExitCode;

use serde_json::json;
use standfast::{Image, Kind, Manifest, Report, human_bytes, mark, survives};
use standfast_format::{
    RegionImage, Run, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentId, SegmentRef, name,
};
use standfast_restart::read_image;

use super::{references, ring, writes};
use crate::args::{Global, ShowArgs};
use crate::escape;
use crate::failure::Result;
use crate::moment;
use crate::output::{Align, Column, FAINT, Output, TITLE, WARN};
use crate::place::{self, OpenJob};

/// Who wrote a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Own,
    Old,
    Unreadable,
}

impl Origin {
    fn name(self) -> &'static str {
        match self {
            Origin::Own => "own",
            Origin::Old => "old",
            Origin::Unreadable => "unreadable",
        }
    }
}

/// Shows a checkpoint.
pub(crate) fn run(global: &Global, args: &ShowArgs, output: &Output) -> Result<ExitCode> {
    let job = place::open(global)?;
    let _lock = job.lock()?;
    let inventory = job.inventory()?;
    let manifest = place::choose(&inventory, args.version)?;
    if args.ring {
        ring::show(&job, manifest, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.writes {
        let first = manifest.images.first();
        let image = first.and_then(|image| read_image(&*job.store, manifest, image.rank).ok());
        summary(&job, manifest, image.as_ref(), output)?;
        writes::show(manifest, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let images = images(&job, manifest, output)?;
    summary(&job, manifest, images.first(), output)?;
    if args.references {
        references::show(&job, &images, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let origins: HashMap<SegmentId, Origin> = manifest
        .segments
        .iter()
        .map(|segment| (segment.id, origin(&job, manifest, segment)))
        .collect();
    regions(&images, &origins, output)?;
    segments(manifest, &images, &origins, output)?;
    Ok(ExitCode::SUCCESS)
}

/// The images of all ranks, or of those whose stores are looked at.
fn images(job: &OpenJob, manifest: &Manifest, output: &Output) -> Result<Vec<Image>> {
    let mut images = Vec::new();
    let mut elsewhere = 0;
    let is_part = job.store.open(name::IDENTITY).is_ok();
    for image in &manifest.images {
        match read_image(&*job.store, manifest, image.rank) {
            Ok(image) => images.push(image),
            Err(error) if is_part && error.kind() == Kind::Missing => elsewhere += 1,
            Err(error) => return Err(error.into()),
        }
    }
    if elsewhere > 0 {
        output.remark(format_args!(
            "images of {elsewhere} ranks are not here: give the stores of other nodes with --stores"
        ));
    }
    Ok(images)
}

fn origin(job: &OpenJob, manifest: &Manifest, segment: &SegmentRef) -> Origin {
    let mut head = [0; SEGMENT_HEADER_BYTES];
    let read = job
        .store
        .open(&name::segment(segment.id))
        .and_then(|object| object.read_at(0, &mut head))
        .ok()
        .filter(|bytes| *bytes == head.len())
        .and_then(|_| SegmentHeader::decode(&head).ok());
    match read {
        Some(header) if header.created_ns == manifest.taken_ns => Origin::Own,
        Some(_) => Origin::Old,
        None => Origin::Unreadable,
    }
}

fn summary(
    job: &OpenJob,
    manifest: &Manifest,
    image: Option<&Image>,
    output: &Output,
) -> Result<()> {
    let page_bytes = image.map_or(4096, |image| image.page_bytes);
    let level = standfast::ring::level(&*job.store, manifest);
    let report = Report { level, ..Report::of(manifest, page_bytes) };
    let marked = mark::find(&*job.store, manifest.version, manifest.attempt);
    output.record(
        "checkpoint",
        json!({
            "job": job.name,
            "version": manifest.version,
            "sequence": manifest.sequence,
            "taken": moment::local(manifest.taken_ns),
            "taken_ns": manifest.taken_ns,
            "level": level,
            "ranks": manifest.ranks,
            "survives": survives(level),
            "marked": marked,
            "page_bytes": page_bytes,
            "hash": image.map(|image| image.hash.name()),
            "stats": manifest.stats,
            "stored_bytes": report.stored_bytes(),
            "metadata_bytes": report.metadata_bytes(),
        }),
    )?;
    let title = format!("checkpoint {} of job {}", manifest.version, job.name);
    let ranks = if manifest.ranks == 1 { "rank" } else { "ranks" };
    output.line(format_args!(
        "{}  {}",
        output.paint(TITLE, title),
        output.paint(
            FAINT,
            format_args!(
                "{}, {}, {} {ranks}, pages of {}{}",
                moment::local(manifest.taken_ns),
                moment::age(manifest.taken_ns),
                manifest.ranks,
                human_bytes(u64::from(page_bytes)),
                image.map_or(String::new(), |image| format!(" by {}", image.hash))
            )
        )
    ))?;
    output.line(&report)?;
    if let Some(why) = marked {
        let word = output.paint(WARN, "marked as damaged");
        output.line(format_args!("  {word} by a lazy restart: {}", escape::name(&why)))?;
    }
    Ok(())
}

fn regions(images: &[Image], origins: &HashMap<SegmentId, Origin>, output: &Output) -> Result<()> {
    let mut rows = Vec::new();
    for image in images {
        for region in &image.regions {
            let pages = Pages::of(image, region, origins);
            output.record(
                "region",
                json!({
                    "rank": image.rank, "region": region.name, "bytes": region.bytes,
                    "elem": region.elem, "pages": pages.all(), "zero_pages": pages.zero,
                    "own_pages": pages.own, "old_pages": pages.old, "runs": region.runs.len(),
                }),
            )?;
            rows.push(vec![
                image.rank.to_string(),
                escape::name(&region.name),
                human_bytes(region.bytes),
                if region.elem == 0 { "-".into() } else { region.elem.to_string() },
                pages.all().to_string(),
                pages.zero.to_string(),
                pages.own.to_string(),
                pages.old.to_string(),
                region.runs.len().to_string(),
            ]);
        }
    }
    output.line(format_args!("\n{}", output.paint(TITLE, "regions")))?;
    let columns = [
        Column("RANK", Align::Right),
        Column("REGION", Align::Left),
        Column("SIZE", Align::Right),
        Column("ELEMENT", Align::Right),
        Column("PAGES", Align::Right),
        Column("ZERO", Align::Right),
        Column("STORED HERE", Align::Right),
        Column("STORED EARLIER", Align::Right),
        Column("RUNS", Align::Right),
    ];
    output.table(&columns, rows)
}

/// Where the pages of a region are.
#[derive(Default)]
struct Pages {
    zero: u64,
    own: u64,
    old: u64,
}

impl Pages {
    fn of(image: &Image, region: &RegionImage, origins: &HashMap<SegmentId, Origin>) -> Self {
        let mut counted = Self::default();
        for run in &region.runs {
            let pages = u64::from(run.pages());
            match *run {
                Run::Zero { .. } => counted.zero += pages,
                Run::Stored { segment, .. } => {
                    let segment = image.segments.get(segment as usize).map(|segment| segment.id);
                    match segment.and_then(|id| origins.get(&id)) {
                        Some(Origin::Own) => counted.own += pages,
                        _ => counted.old += pages,
                    }
                }
            }
        }
        counted
    }

    fn all(&self) -> u64 {
        self.zero + self.own + self.old
    }
}

fn segments(
    manifest: &Manifest,
    images: &[Image],
    origins: &HashMap<SegmentId, Origin>,
    output: &Output,
) -> Result<()> {
    let used = used_slots(images);
    let mut rows = Vec::new();
    let (mut own, mut all) = (0u64, 0u64);
    for segment in &manifest.segments {
        let origin = origins[&segment.id];
        let slots = used.get(&segment.id).copied().unwrap_or(0);
        all += slots;
        own += if origin == Origin::Own { slots } else { 0 };
        output.record(
            "segment",
            json!({
                "segment": segment.id.to_string(), "bytes": segment.file_bytes,
                "slots": segment.slots, "used_slots": slots, "origin": origin.name(),
            }),
        )?;
        let written = match origin {
            Origin::Own => "this checkpoint",
            Origin::Old => "an earlier one",
            Origin::Unreadable => "? (cannot be read)",
        };
        rows.push(vec![
            segment.id.to_string(),
            human_bytes(segment.file_bytes),
            segment.slots.to_string(),
            format!("{:.1} %", percent(slots, u64::from(segment.slots))),
            written.into(),
        ]);
    }
    if rows.is_empty() {
        return output.line("\nneeds no segment: every page is zero");
    }
    let bytes = manifest.segments.iter().map(|s| s.file_bytes).fold(0, u64::saturating_add);
    let title = format!("segments it needs: {}, {}", rows.len(), human_bytes(bytes));
    output.line(format_args!(
        "\n{}  {}",
        output.paint(TITLE, title),
        output.paint(
            FAINT,
            format_args!("{:.1} % of the pages were stored earlier", percent(all - own, all))
        )
    ))?;
    let columns = [
        Column("SEGMENT", Align::Left),
        Column("SIZE", Align::Right),
        Column("PAGES", Align::Right),
        Column("USED", Align::Right),
        Column("WRITTEN BY", Align::Left),
    ];
    output.table(&columns, rows)
}

/// Distinct slots of every segment that some region refers to.
fn used_slots(images: &[Image]) -> HashMap<SegmentId, u64> {
    let mut ranges: HashMap<SegmentId, Vec<(u64, u64)>> = HashMap::new();
    for image in images {
        for run in image.regions.iter().flat_map(|region| &region.runs) {
            if let Run::Stored { pages, segment, slot } = *run
                && let Some(segment) = image.segments.get(segment as usize)
            {
                let start = u64::from(slot);
                ranges.entry(segment.id).or_default().push((start, start + u64::from(pages)));
            }
        }
    }
    ranges.into_iter().map(|(id, ranges)| (id, covered(ranges))).collect()
}

/// How many numbers lie in at least one of the ranges.
fn covered(mut ranges: Vec<(u64, u64)>) -> u64 {
    ranges.sort_unstable();
    let (mut end, mut count) = (0, 0);
    for (from, to) in ranges {
        count += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    count
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::covered;

    #[test]
    fn overlapping_ranges_count_once() {
        assert_eq!(covered(vec![]), 0);
        assert_eq!(covered(vec![(5, 9), (0, 3), (2, 6), (8, 9)]), 9);
    }
}
