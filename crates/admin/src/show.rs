//! One checkpoint in full: its figures, its regions, the segments it needs.
//!
//! Data: manifest and images -> [`Summary`], [`Region`]s; headers of the segments -> which of them
//! this checkpoint wrote itself and which it shares with earlier ones.

use std::collections::HashMap;

use serde::Serialize;
use standfast::{Image, Kind, Level, Manifest, Rank, Report, mark};
use standfast_format::{
    HashKind, RegionImage, Run, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentId, SegmentRef, name,
};
use standfast_restart::read_image;

pub use standfast_format::Start;

use crate::error::Result;
use crate::place::OpenJob;

/// Page size that is assumed where no image can be read.
const PAGE_BYTES: u32 = 4096;

/// What is known of a checkpoint without its regions.
#[derive(Debug)]
pub struct Summary {
    /// Its closing block.
    pub report: Report,
    /// How far it has come.
    pub level: Level,
    /// What a lazy restart found, if it did.
    pub marked: Option<String>,
    /// The start that it belongs to, where the store tells.
    pub start: Option<Start>,
    /// Size of a page.
    pub page_bytes: u32,
    /// What pages are told apart by, where an image can be read.
    pub hash: Option<HashKind>,
}

/// The images of a checkpoint that can be reached.
#[derive(Debug)]
pub struct Images {
    /// By rank.
    pub images: Vec<Image>,
    /// Ranks whose images lie in stores of other nodes.
    pub elsewhere: usize,
}

/// Who wrote a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// This checkpoint.
    Own,
    /// An earlier one.
    Old,
    /// Nobody can tell: it cannot be read.
    Unreadable,
}

/// A region and where its pages are.
#[derive(Debug, Serialize)]
pub struct Region {
    /// Whose.
    pub rank: Rank,
    /// Its name; any text.
    #[serde(rename = "region")]
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Size of an element; 0 where nobody said.
    pub elem: u8,
    /// All its pages.
    pub pages: u64,
    /// Pages of zeros.
    pub zero_pages: u64,
    /// Pages that this checkpoint stored.
    pub own_pages: u64,
    /// Pages that were stored earlier.
    pub old_pages: u64,
    /// Runs of neighbouring pages.
    pub runs: usize,
}

/// A segment that a checkpoint needs.
#[derive(Debug)]
pub struct Segment {
    /// Which.
    pub segment: SegmentRef,
    /// Slots that some region refers to.
    pub used_slots: u64,
    /// Who wrote it.
    pub origin: Origin,
}

/// The figures of a checkpoint; `image` is any of its images.
pub fn summary(job: &OpenJob, manifest: &Manifest, image: Option<&Image>) -> Summary {
    let page_bytes = image.map_or(PAGE_BYTES, |image| image.page_bytes);
    let level = standfast::ring::level(&*job.store, manifest);
    let mut report = Report::of(manifest, page_bytes);
    report.level = level;
    Summary {
        report,
        level,
        marked: mark::find(&*job.store, manifest.version, manifest.attempt),
        start: crate::list::history(job).start_of(manifest.sequence).cloned(),
        page_bytes,
        hash: image.map(|image| image.hash),
    }
}

/// The first image that can be read, for what all of them have in common.
pub fn first_image(job: &OpenJob, manifest: &Manifest) -> Option<Image> {
    let first = manifest.images.first()?;
    read_image(&*job.store, manifest, first.rank).ok()
}

/// The images of all ranks, or of those whose stores are looked at.
pub fn images(job: &OpenJob, manifest: &Manifest) -> Result<Images> {
    let mut found = Images { images: Vec::new(), elsewhere: 0 };
    let is_part = job.store.open(name::IDENTITY).is_ok();
    for image in &manifest.images {
        match read_image(&*job.store, manifest, image.rank) {
            Ok(image) => found.images.push(image),
            Err(error) if is_part && error.kind() == Kind::Missing => found.elsewhere += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// The regions and segments of a checkpoint.
pub fn contents(
    job: &OpenJob,
    manifest: &Manifest,
    images: &[Image],
) -> (Vec<Region>, Vec<Segment>) {
    let origins: HashMap<SegmentId, Origin> = manifest
        .segments
        .iter()
        .map(|segment| (segment.id, origin(job, manifest, segment)))
        .collect();
    let regions = images
        .iter()
        .flat_map(|image| image.regions.iter().map(|region| counted(image, region, &origins)))
        .collect();
    let used = used_slots(images);
    let segment = |segment: &SegmentRef| Segment {
        segment: *segment,
        used_slots: used.get(&segment.id).copied().unwrap_or(0),
        origin: origins[&segment.id],
    };
    (regions, manifest.segments.iter().map(segment).collect())
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

fn counted(image: &Image, region: &RegionImage, origins: &HashMap<SegmentId, Origin>) -> Region {
    let mut found = Region {
        rank: image.rank,
        name: region.name.clone(),
        bytes: region.bytes,
        elem: region.elem,
        pages: region.runs.iter().map(|run| u64::from(run.pages())).sum(),
        zero_pages: 0,
        own_pages: 0,
        old_pages: 0,
        runs: region.runs.len(),
    };
    for run in &region.runs {
        let pages = u64::from(run.pages());
        let segment = match *run {
            Run::Zero { .. } => {
                found.zero_pages += pages;
                continue;
            }
            Run::Stored { segment, .. } => image.segments.get(segment as usize),
        };
        match segment.and_then(|segment| origins.get(&segment.id)) {
            Some(Origin::Own) => found.own_pages += pages,
            _ => found.old_pages += pages,
        }
    }
    found
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

#[cfg(test)]
mod tests;
