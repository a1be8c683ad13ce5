//! A snapshot as a source of pages: the program goes on writing while they are read.
//!
//! A rank that decides alone reads every page once, and gives up what lies before. Where ranks agree
//! on pages first, looking gives nothing up: the pages that this rank stores are read again.
//!
//! Regions that were copied are looked at where their copies lie, by several threads.
//!
//! Invariant: a writer that waits for pages is let go when they are brought, served or not needed.

use std::ops::Range;

use standfast_capture::{Excluded, Region, Regions, Snapshot};
use standfast_reduce::{Brought, PageAt, PageSource, Reach, Take};

use crate::choose::Costs;
use crate::early;
use crate::error::{Error, Result};

/// The state of all regions at one call.
pub(crate) struct SnapshotPages {
    snapshot: Snapshot,
    /// Length of each region.
    bytes: Vec<usize>,
    /// What is not stored of each region.
    excluded: Vec<Excluded>,
    page_bytes: usize,
    /// Whether pages are needed no more once they were looked at.
    once: bool,
}

impl SnapshotPages {
    pub(crate) fn new(
        snapshot: Snapshot,
        regions: &Regions,
        page_bytes: usize,
        once: bool,
    ) -> Self {
        let bytes = regions.iter().map(Region::bytes).collect();
        let excluded = regions.iter().map(|region| regions.excluded(region)).collect();
        Self { snapshot, bytes, excluded, page_bytes, once }
    }

    fn blank(&self, at: PageAt, page: &mut [u8]) {
        self.excluded[at.region as usize].blank(at.page as usize * self.page_bytes, page);
    }

    /// Learns what it cost to freeze these regions; how long writers were held up, in nanoseconds.
    pub(crate) fn learn(
        &self,
        regions: &Regions,
        shielded: &[bool],
        costs: &mut Costs,
        freeze_ns: u64,
    ) -> u64 {
        let snapshot = &self.snapshot;
        let held = snapshot.held();
        let protected = regions.iter().zip(shielded).filter(|(_, shielded)| **shielded);
        let protected: u64 = protected.map(|(region, _)| region.bytes() as u64).sum();
        let copies = (0..self.bytes.len()).filter_map(|region| snapshot.copied(region));
        let copied: u64 = copies.map(|(copies, _)| copies.len() as u64).sum();
        match protected {
            0 => {
                costs.copied(copied, freeze_ns);
                // Nobody asks where writers cannot be held up.
                if let Some(share) = snapshot.may_hold().then(|| early::share(regions, snapshot)) {
                    costs.early(share.unwrap_or(1.0));
                }
            }
            _ => costs.shielded(protected, freeze_ns, held),
        }
        held.ns
    }
}

impl PageSource for SnapshotPages {
    type Error = Error;

    fn reach(&self, region: usize) -> Option<Reach<'_>> {
        let bytes = *self.bytes.get(region)?;
        // What is excluded is blanked as it is read; copies stay as they are.
        let copied = self.snapshot.copied(region).filter(|_| self.excluded[region].is_empty());
        Some(match copied {
            Some((copies, true)) => Reach::Here(copies),
            Some((copies, false)) => Reach::Packed(copies, bytes),
            None => Reach::Read(bytes),
        })
    }

    fn read(&self, at: PageAt, out: &mut [u8]) {
        let (region, page) = (at.region as usize, at.page as usize);
        match self.once {
            true => self.snapshot.read(region, page, out),
            false => self.snapshot.peek(region, page, out),
        }
        self.blank(at, out);
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
        self.snapshot.holds_writers()
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
        let mut buffer = vec![0; self.page_bytes];
        for at in pages {
            let (region, page) = (at.region as usize, at.page as usize);
            let rest = self.bytes[region] - page * self.page_bytes;
            let bytes = &mut buffer[..rest.min(self.page_bytes)];
            self.snapshot.read(region, page, bytes);
            self.blank(*at, bytes);
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
