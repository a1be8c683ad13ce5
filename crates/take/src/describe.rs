//! Describing what was captured: references become runs, and pages are counted by their fate.
//!
//! Data: a [`View`] whose pages are stored -> this rank's image, in which segments of this attempt
//! stand by id -> whoever makes it durable.

use std::collections::{BTreeMap, BTreeSet};

use standfast_capture::{Region, Regions};
use standfast_checkpoint::{Described, Moved, Order, relocate, unplaced};
use standfast_format::{Digest, Image, Reference, RegionImage, Run, SegmentId, Stats, Writes};
use standfast_reduce::{PageRef, PageTable};

use crate::attempt::{Unfinished, View};
use crate::error::Result;
use crate::remembered::Remembered;
use crate::stored::Stored;

impl Remembered {
    /// Describes what was taken, remembers it, and hands it to whoever makes it durable.
    /// `blocked_ns`: how long the program was blocked; `None`: it still is.
    pub(crate) fn describe(
        &mut self,
        order: Order,
        View { started, regions, positions }: View,
        stored: Stored,
        blocked_ns: Option<u64>,
    ) -> Result<Unfinished> {
        let mut table = Table::default();
        let images = describe(&regions, &positions, &mut table);
        let mut stats = self.count(&regions, &positions, &stored);
        let Self { env, ledger, place, .. } = &mut *self;
        let owners = place.placement().and_then(|placement| placement.owners());
        let references =
            owners.and_then(|owners| owners.refer_by_hash(env, ledger, &positions, &stored.own));
        self.tracks.captured(&regions);
        self.ledger.put_positions(&regions, positions);
        let (image, streams) = self.image(order, &table.order, images, references)?;
        stats.blocked_ns = blocked_ns.unwrap_or_else(|| started.ns());
        let writes = Writes::of(self.env.rank);
        let described = Described { image, streams, stats, writes, started };
        self.hand_over(order, described, stored.pending)
    }

    /// This rank's image over segments of the catalog, and those that come with this attempt.
    fn image(
        &self,
        order: Order,
        table: &[u32],
        regions: Vec<RegionImage>,
        references: Option<Vec<Reference>>,
    ) -> Result<(Image, Vec<SegmentId>)> {
        let (mut moved, mut streams) = (BTreeMap::new(), Vec::new());
        let mut segments = Vec::with_capacity(table.len());
        for number in table {
            let (id, known) = self.ledger.table_entry(*number);
            segments.push(match (self.writer.agent.aliases.get(&id), known) {
                (Some((segment, first_slot)), _) => {
                    let target = self.ledger.references.get(segment);
                    let segment = *target
                        .ok_or(standfast_checkpoint::Error::Unsealed { segment: *segment })?;
                    moved.insert(id, Moved { segment, first_slot: *first_slot });
                    unplaced(id)
                }
                (None, Some(known)) => known,
                (None, None) => {
                    streams.push(id);
                    unplaced(id)
                }
            });
        }
        let (job, rank) = (self.env.header.id, self.env.rank);
        let settings = &self.env.settings;
        let (page_bytes, hash) = (settings.pack.page_bytes as u32, settings.hash);
        let version = order.version;
        let mut image =
            Image { job, version, rank, page_bytes, hash, segments, regions, references };
        relocate(&mut image.segments, &mut image.regions, &moved)?;
        Ok((image, streams))
    }

    fn count(&self, regions: &Regions, positions: &[PageTable], stored: &Stored) -> Stats {
        let numbers = |ids: &[SegmentId]| -> BTreeSet<u32> {
            ids.iter().filter_map(|id| self.ledger.catalog.number_of(*id)).collect()
        };
        let (own, foreign) = (numbers(&stored.own), numbers(&stored.foreign));
        let stats = count(regions, positions, stored.pending.pages(), |number| {
            match (own.contains(&number), foreign.contains(&number)) {
                (true, _) => WrittenBy::Own,
                (_, true) => WrittenBy::Other,
                _ => WrittenBy::Earlier,
            }
        });
        let Stored { scan_ns, agree_ns, copy_ns, .. } = *stored;
        Stats { scan_ns, agree_ns, copy_ns, ..stats }
    }
}

/// The regions of an image, with the runs of their pages.
fn describe(regions: &Regions, positions: &[PageTable], table: &mut Table) -> Vec<RegionImage> {
    let describe = |(region, positions): (&Region, &PageTable)| RegionImage {
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
enum WrittenBy {
    /// This rank, for this checkpoint.
    Own,
    /// Another rank, for this checkpoint.
    Other,
    /// Anybody, for an earlier one.
    Earlier,
}

/// Counts pages by their fate; `writer` tells of a segment of the catalog.
fn count(
    regions: &Regions,
    positions: &[PageTable],
    new_pages: u64,
    writer: impl Fn(u32) -> WrittenBy,
) -> Stats {
    let mut stats = Stats { captured_bytes: regions.bytes(), new_pages, ..Stats::default() };
    // Runs of references to one segment are the rule.
    let mut last = (u32::MAX, WrittenBy::Earlier);
    for page in positions.iter().flat_map(PageTable::refs) {
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
struct Table {
    order: Vec<u32>,
    /// By number of the catalog. Pages of one region may each lie in another segment: no search.
    places: Vec<Option<u32>>,
}

impl Table {
    fn place(&mut self, number: u32) -> u32 {
        let at = number as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, None);
        }
        *self.places[at].get_or_insert_with(|| {
            self.order.push(number);
            self.order.len() as u32 - 1
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
