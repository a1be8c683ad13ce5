//! The pages that are new to this rank, each once: another rank may hold and store them too.
//!
//! Data: scan -> [`Candidates`]: hashes of new pages, and where they are in memory -> the ranks agree
//! -> this rank stores its own, and refers to the others'.

use std::ops::Range;

use standfast_format::SegmentId;
use standfast_reduce::{Catalog, Changed, Consume, Found, PageAt, PageRef, Scanner};

use crate::error::{Error, Result};

/// The pages that are new to this rank, each once.
pub(crate) struct Candidates {
    hashes: Vec<u8>,
    hash_bytes: usize,
    /// Where each is in memory.
    pages: Vec<PageAt>,
    /// All of them by page: regions are looked at in whatever order is quickest.
    by_page: Vec<u32>,
    /// The segment number under which positions name candidates until their fate is known.
    number: u32,
}

impl Candidates {
    pub(crate) fn hashes(&self) -> &[u8] {
        &self.hashes
    }

    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    pub(crate) fn hash(&self, candidate: u32) -> &[u8] {
        &self.hashes[candidate as usize * self.hash_bytes..][..self.hash_bytes]
    }

    /// Where a candidate is in memory.
    pub(crate) fn page(&self, candidate: u32) -> PageAt {
        self.pages[candidate as usize]
    }

    /// The candidates among the pages of a region, where one source has them all.
    pub(crate) fn within(
        &self,
        region: usize,
        pages: Range<usize>,
    ) -> impl Iterator<Item = u32> + '_ {
        let before = |page: usize| {
            let end = PageAt { region: region as u32, page: page as u32 };
            self.by_page.partition_point(|candidate| self.page(*candidate) < end)
        };
        self.by_page[before(pages.start)..before(pages.end)].iter().copied()
    }

    /// The candidate that a position names, if it names one.
    pub(crate) fn find(&self, page: PageRef) -> Option<usize> {
        let (number, slot) = page.stored()?;
        (number == self.number).then_some(slot as usize)
    }
}

/// Candidates in the making.
pub(crate) struct Gathering<'a> {
    scanner: &'a Scanner,
    catalog: &'a mut Catalog,
    pages: Vec<PageAt>,
}

impl<'a> Gathering<'a> {
    /// The candidates that `scan` finds, and what it returns.
    pub(crate) fn run<T>(
        scanner: &'a Scanner,
        catalog: &'a mut Catalog,
        scan: impl FnOnce(&mut Self) -> T,
    ) -> (Candidates, T) {
        // A segment that never exists: slots are the candidates' numbers.
        let number = catalog.open_segment(SegmentId([0; 16]));
        let mut gathering = Self { scanner, catalog, pages: Vec::new() };
        let outcome = scan(&mut gathering);
        let Self { catalog, pages, .. } = gathering;
        let hashes = catalog.withdraw_segment();
        let mut by_page: Vec<u32> = (0..pages.len() as u32).collect();
        by_page.sort_unstable_by_key(|candidate| pages[*candidate as usize]);
        let hash_bytes = scanner.hash_bytes();
        (Candidates { hashes, hash_bytes, pages, by_page, number }, outcome)
    }
}

impl Consume for Gathering<'_> {
    type Error = Error;

    fn changed(&mut self, page: Changed<'_>) -> Result<PageRef> {
        let at = PageAt { region: page.region as u32, page: page.page as u32 };
        if page.zero { Ok(PageRef::ZERO) } else { self.hashed(at, page.hash) }
    }

    fn unseen(
        &mut self,
        region: usize,
        page: usize,
        bytes: &[u8],
        hash: &mut [u8],
    ) -> Result<PageRef> {
        self.scanner.hash_or_zero(bytes, false, hash);
        self.hashed(PageAt { region: region as u32, page: page as u32 }, hash)
    }

    /// Where a page is; what the catalog does not know becomes a candidate.
    fn hashed(&mut self, page: PageAt, hash: &[u8]) -> Result<PageRef> {
        Ok(match self.catalog.find_or_enter(hash) {
            Found::Known(place) => place,
            Found::Entered(place) => {
                self.pages.push(page);
                place
            }
        })
    }
}
