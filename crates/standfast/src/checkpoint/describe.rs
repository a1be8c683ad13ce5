//! Describing what was captured: references become runs, and pages are counted by their fate.

use std::collections::HashMap;

use standfast_capture::{Region, Regions};
use standfast_format::{Digest, RegionImage, Run, Stats};
use standfast_reduce::{PageRef, Positions};

/// The regions of an image, with the runs of their pages.
pub(super) fn describe(
    regions: &Regions,
    positions: &[Positions],
    table: &mut Table,
) -> Vec<RegionImage> {
    let describe = |(region, positions): (&Region, &Positions)| RegionImage {
        name: region.name().to_owned(),
        bytes: region.bytes() as u64,
        elem: region.elem(),
        pages_digest: Digest::of(positions.hashes()),
        runs: runs(positions.refs(), table),
    };
    regions.iter().zip(positions).map(describe).collect()
}

/// Who has written a segment, as seen by one checkpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenBy {
    /// This rank, for this checkpoint.
    Own,
    /// Another rank, for this checkpoint.
    Other,
    /// Anybody, for an earlier one.
    Earlier,
}

/// Counts pages by their fate; `writer` tells of a segment of the catalog.
pub(super) fn count(
    regions: &Regions,
    positions: &[Positions],
    new_pages: u64,
    writer: impl Fn(u32) -> WrittenBy,
) -> Stats {
    let mut stats = Stats { captured_bytes: regions.bytes(), new_pages, ..Stats::default() };
    // Runs of references to one segment are the rule.
    let mut last = (u32::MAX, WrittenBy::Earlier);
    for page in positions.iter().flat_map(Positions::refs) {
        stats.pages += 1;
        let Some((number, _)) = page.stored() else {
            stats.zero_pages += 1;
            continue;
        };
        if last.0 != number {
            last = (number, writer(number));
        }
        match last.1 {
            WrittenBy::Own => stats.duplicate_pages += 1,
            WrittenBy::Other => stats.remote_pages += 1,
            WrittenBy::Earlier => stats.old_pages += 1,
        }
    }
    // So far these are all pages in new segments; each new page is one of them.
    stats.duplicate_pages -= new_pages;
    stats
}

/// The image's segment table in the making: numbers of the catalog, in the order of first use.
#[derive(Default)]
pub(super) struct Table {
    pub(super) order: Vec<u32>,
    places: HashMap<u32, u32>,
}

impl Table {
    fn place(&mut self, number: u32) -> u32 {
        let order = &mut self.order;
        *self.places.entry(number).or_insert_with(|| {
            order.push(number);
            order.len() as u32 - 1
        })
    }
}

/// Joins references to runs.
fn runs(refs: &[PageRef], table: &mut Table) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut place = (u32::MAX, 0);
    for page in refs {
        let next = match page.stored() {
            None => Run::Zero { pages: 1 },
            Some((number, slot)) => {
                if place.0 != number {
                    place = (number, table.place(number));
                }
                Run::Stored { pages: 1, segment: place.1, slot }
            }
        };
        match (runs.last_mut(), next) {
            (Some(Run::Zero { pages }), Run::Zero { .. }) => *pages += 1,
            (
                Some(Run::Stored { pages, segment, slot }),
                Run::Stored { segment: same, slot: following, .. },
            ) if *segment == same && *slot + *pages == following => *pages += 1,
            _ => runs.push(next),
        }
    }
    runs
}
