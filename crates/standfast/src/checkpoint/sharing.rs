//! Sharing pages among ranks: what is new to this rank may be stored by another.
//!
//! Data: scan -> [`Candidates`]: hashes of new pages, each once, and where they are in memory ->
//! the strategy's assignment -> this rank stores its own, and refers to the others'.

use std::convert::Infallible;
use std::ops::Range;

use standfast_comm::{Collective, Comm, Concurrency};
use standfast_format::{SegmentId, SegmentIndex};
use standfast_reduce::{Catalog, Changed, Consume, Fetch, Fetched, Found, PageRef, Scanner};
use standfast_share::{Exact, HomeIndex, Strategy, Threshold, TopK};

use super::owners::Owners;
use crate::config::{self, Config, Mode};
use crate::error::Result;

/// Least room for one rank's part of the index over all ranks and checkpoints.
const INDEX_BYTES_MIN: usize = 8 << 20;
/// The index may take one byte of so many protected ones: at 4 KiB pages there is room for a
/// quarter more pages than are protected.
const INDEX_SHARE: u64 = 80;
/// What storing a byte is taken to cost where nothing was measured yet: a disk of 1 GB/s.
const BYTE_S: f64 = 1e-9;
/// A reduction may take this share of the time of storing everything.
const REDUCTION_SHARE: f64 = 0.1;
/// Bounds of the adaptive threshold, in pages.
const THRESHOLD_PAGES: (u32, u32) = (1 << 10, 1 << 20);

/// How this job's ranks share pages, if they do.
pub(super) enum Sharing {
    Off,
    Exact(Exact),
    /// The paper's way: with the owners of pages, which are written down.
    TopK(TopK, Owners),
}

impl Sharing {
    pub(super) fn new(config: &Config, team: &Collective) -> Self {
        if team.size() == 1 || !config.mode.looks_around() {
            return Sharing::Off;
        }
        match config.strategy {
            config::Strategy::Exact if config.mode == Mode::All => {
                Sharing::Exact(Exact::with_index(config.hash, INDEX_BYTES_MIN))
            }
            config::Strategy::Exact => Sharing::Exact(Exact::new(config.hash)),
            config::Strategy::TopK => {
                Sharing::TopK(TopK::new(config.hash, threshold(config)), Owners::default())
            }
        }
    }

    pub(super) fn is_on(&self) -> bool {
        !matches!(self, Sharing::Off)
    }

    /// Why pages can only be captured while the program is stopped, if that is so.
    pub(super) fn needs_stop(&self, team: &Collective) -> Option<&'static str> {
        let beside = team.concurrency() == Concurrency::AnyThread;
        (self.is_on() && !beside).then_some(
            "the ranks share pages, and only the program's own thread may talk to other ranks",
        )
    }

    /// # Panics
    /// If ranks do not share pages.
    pub(super) fn strategy(&mut self) -> &mut dyn Strategy {
        self.active().expect("ranks share pages")
    }

    fn active(&mut self) -> Option<&mut dyn Strategy> {
        match self {
            Sharing::Off => None,
            Sharing::Exact(exact) => Some(exact),
            Sharing::TopK(top_k, _) => Some(top_k),
        }
    }

    /// Who stores which pages, where that is written down.
    pub(super) fn owners(&mut self) -> Option<&mut Owners> {
        match self {
            Sharing::TopK(_, owners) => Some(owners),
            Sharing::Off | Sharing::Exact(_) => None,
        }
    }

    /// Fits the index to so many protected bytes.
    pub(super) fn fit(&mut self, protected_bytes: u64) {
        let share = usize::try_from(protected_bytes / INDEX_SHARE).unwrap_or(usize::MAX);
        if let Sharing::Exact(exact) = self {
            exact.set_index_bytes_max(share.max(INDEX_BYTES_MIN));
        }
    }

    /// Memory held between checkpoints, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Sharing::Exact(exact) => exact.index().map_or(0, HomeIndex::bytes),
            Sharing::Off | Sharing::TopK(..) => 0,
        }
    }

    /// Enters segments of earlier checkpoints, oldest first. Collective.
    pub(super) fn load(&mut self, comm: &dyn Comm, indexes: &[SegmentIndex]) -> Result<()> {
        let Sharing::Exact(exact) = self else { return Ok(()) };
        let segments: Vec<(SegmentId, &[u8])> =
            indexes.iter().map(|index| (index.id, index.hashes.as_slice())).collect();
        Ok(exact.load(comm, &segments)?)
    }

    pub(super) fn committed(&mut self, removed: &[SegmentId]) {
        if let Some(strategy) = self.active() {
            strategy.commit();
        }
        self.forget(removed);
    }

    /// An attempt with these segments has failed.
    pub(super) fn failed(&mut self, segments: &[SegmentId]) {
        if let Some(strategy) = self.active() {
            strategy.abort();
        }
        if let Some(owners) = self.owners() {
            owners.forget(segments);
        }
    }

    /// Refers to these segments no more. Every rank names the same ones.
    pub(super) fn forget(&mut self, segments: &[SegmentId]) {
        if let Some(strategy) = self.active() {
            strategy.forget(segments);
        }
        if let Some(owners) = self.owners() {
            owners.forget(segments);
        }
    }
}

fn threshold(config: &Config) -> Threshold {
    let (least, most) = THRESHOLD_PAGES;
    match config.threshold {
        config::Threshold::Pages(pages) => Threshold::fixed(pages),
        config::Threshold::Auto => {
            Threshold::adaptive(least, most, config.page.0 as f64 * BYTE_S, REDUCTION_SHARE)
        }
    }
}

/// The pages that are new to this rank, each once.
pub(super) struct Candidates {
    hashes: Vec<u8>,
    hash_bytes: usize,
    /// Region and page of each.
    places: Vec<(u32, u32)>,
    /// The segment number under which positions name candidates until their fate is known.
    number: u32,
}

impl Candidates {
    /// Scans; what the catalog knows becomes a reference, what it does not a candidate. For pages
    /// that must be fetched.
    pub(super) fn gather_fetched(
        scanner: &Scanner,
        catalog: &mut Catalog,
        targets: &mut [Fetched<'_>],
        source: &mut impl Fetch,
    ) -> Self {
        Gathering::run(scanner, catalog, |gathering| {
            scanner.walk_fetched(targets, source, gathering)
        })
    }

    pub(super) fn hashes(&self) -> &[u8] {
        &self.hashes
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn hash(&self, candidate: u32) -> &[u8] {
        &self.hashes[candidate as usize * self.hash_bytes..][..self.hash_bytes]
    }

    /// Region and page of a candidate.
    pub(super) fn place(&self, candidate: u32) -> (usize, usize) {
        let (region, page) = self.places[candidate as usize];
        (region as usize, page as usize)
    }

    /// The candidates among the pages of a region.
    pub(super) fn within(&self, region: usize, pages: Range<usize>) -> Range<u32> {
        let before = |page: usize| {
            let end = (region as u32, page as u32);
            self.places.partition_point(|place| *place < end) as u32
        };
        before(pages.start)..before(pages.end)
    }

    /// The candidate that a position names, if it names one.
    pub(super) fn find(&self, page: PageRef) -> Option<usize> {
        let (number, slot) = page.stored()?;
        (number == self.number).then_some(slot as usize)
    }
}

/// Candidates in the making.
pub(super) struct Gathering<'a> {
    scanner: &'a Scanner,
    catalog: &'a mut Catalog,
    places: Vec<(u32, u32)>,
}

impl<'a> Gathering<'a> {
    /// The candidates that `scan` finds.
    pub(super) fn run(
        scanner: &'a Scanner,
        catalog: &'a mut Catalog,
        scan: impl FnOnce(&mut Self) -> std::result::Result<(), Infallible>,
    ) -> Candidates {
        // A segment that never exists: slots are the candidates' numbers.
        let number = catalog.open_segment(SegmentId([0; 16]));
        let mut gathering = Self { scanner, catalog, places: Vec::new() };
        let Ok(()) = scan(&mut gathering);
        let Self { catalog, places, .. } = gathering;
        let hashes = catalog.withdraw_segment();
        Candidates { hashes, hash_bytes: scanner.hash_bytes(), places, number }
    }

    /// Where a page is; what the catalog does not know becomes a candidate.
    pub(super) fn find(&mut self, region: usize, page: usize, hash: &[u8]) -> PageRef {
        match self.catalog.find_or_enter(hash) {
            Found::Known(place) => place,
            Found::Entered(place) => {
                self.places.push((region as u32, page as u32));
                place
            }
        }
    }
}

impl Consume for Gathering<'_> {
    type Error = Infallible;

    fn changed(&mut self, page: Changed<'_>) -> std::result::Result<PageRef, Infallible> {
        Ok(match page.zero {
            true => PageRef::ZERO,
            false => self.find(page.region, page.page, page.hash),
        })
    }

    fn unseen(
        &mut self,
        region: usize,
        page: usize,
        bytes: &[u8],
        hash: &mut [u8],
    ) -> std::result::Result<PageRef, Infallible> {
        self.scanner.hash_or_zero(bytes, false, hash);
        Ok(self.find(region, page, hash))
    }
}
