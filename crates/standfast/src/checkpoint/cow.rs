//! A snapshot as a source of pages: the program goes on writing while they are read.
//!
//! A rank that decides alone reads every page once, and gives up what lies before. Where ranks agree
//! on pages first, looking gives nothing up: the pages that this rank stores are read again.
//!
//! Invariant: a writer that waits for pages is let go when they are brought, served or not needed.

use std::ops::Range;

use standfast_capture::{Region, Regions, Snapshot};
use standfast_reduce::{Brought, PageAt, PageSource, Reach, Take};

use crate::error::{Error, Result};

/// The state of all regions at one call.
pub(super) struct Cow {
    snapshot: Snapshot,
    /// Length of each region.
    bytes: Vec<usize>,
    page_bytes: usize,
    /// Whether pages are needed no more once they were looked at.
    once: bool,
}

impl Cow {
    pub(super) fn new(
        snapshot: Snapshot,
        regions: &Regions,
        page_bytes: usize,
        once: bool,
    ) -> Self {
        Self { snapshot, bytes: regions.iter().map(Region::bytes).collect(), page_bytes, once }
    }
}

impl PageSource for Cow {
    type Error = Error;

    fn reach(&self, region: usize) -> Option<Reach<'_>> {
        self.bytes.get(region).copied().map(Reach::Read)
    }

    fn read(&self, at: PageAt, out: &mut [u8]) {
        let (region, page) = (at.region as usize, at.page as usize);
        match self.once {
            true => self.snapshot.read(region, page, out),
            false => self.snapshot.peek(region, page, out),
        }
    }

    fn looked(&self, region: usize) {
        if self.once {
            self.snapshot.finish_region(region);
        }
    }

    fn needed(&self, region: usize, is_needed: &dyn Fn(Range<usize>) -> bool) {
        self.snapshot.keep_only(region, is_needed);
    }

    fn holds_up(&self) -> bool {
        true
    }

    fn is_overdue(&self) -> bool {
        !self.snapshot.waits().is_empty()
    }

    fn serve(&self, show: &mut dyn FnMut(usize, Range<usize>)) {
        for wait in self.snapshot.waits() {
            show(wait.region, wait.pages.clone());
            self.snapshot.end_wait(&wait);
        }
    }

    fn bring(&self, pages: &[PageAt], _encoded: bool, take: &mut Take<'_, Error>) -> Result<()> {
        let mut room = vec![0; self.page_bytes];
        for at in pages {
            let (region, page) = (at.region as usize, at.page as usize);
            let rest = self.bytes[region] - page * self.page_bytes;
            let bytes = &mut room[..rest.min(self.page_bytes)];
            self.snapshot.read(region, page, bytes);
            take(Brought::Pages(bytes))?;
        }
        Ok(())
    }

    fn end(&self) -> Result<()> {
        let outcome = self.snapshot.check();
        (0..self.bytes.len()).for_each(|region| self.snapshot.finish_region(region));
        Ok(outcome?)
    }
}
