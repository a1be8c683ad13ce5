//! Storing: changed pages go into segments, unless an equal one is known.
//!
//! Data: [`Changed`] pages from the scan -> catalog: known ones become references, new ones are
//! copied into blocks of the batch.

use standfast_capture::{Dirty, Region, Regions};
use standfast_format::SegmentId;
use standfast_reduce::{Catalog, Changed, Found, PageRef, Positions};
use standfast_share::Place;
use standfast_write::Batch;

use crate::config::Mode;
use crate::error::{Error, Result};
use crate::identity;

/// A segment's index takes less than one byte of so many bytes of pages, at any hash.
const INDEX_SHARE: u64 = 64;

/// Where changed pages go.
pub(super) struct Storing<'a> {
    /// Size of each region's elements.
    pub(super) elements: Vec<u8>,
    pub(super) catalog: &'a mut Catalog,
    pub(super) batch: Batch,
    /// The page stored last, by region and page: what does not follow it begins a piece.
    pub(super) last: Option<(usize, usize)>,
    pub(super) mode: Mode,
    pub(super) page_bytes: usize,
    pub(super) slots_max: u32,
    pub(super) segment_bytes: u64,
    /// What is still to come, if nothing is found to be known: a hint for the file system.
    pub(super) expected_bytes: u64,
    pub(super) begun: Vec<SegmentId>,
}

impl Storing<'_> {
    /// Takes a page that is not what it was, and says where it is from now on.
    pub(super) fn changed(&mut self, page: Changed<'_>) -> Result<PageRef> {
        if self.mode.finds_equal() && page.zero {
            return Ok(PageRef::ZERO);
        }
        self.follow(page.region, page.page)?;
        self.make_room()?;
        match self.find_or_enter(page.hash) {
            Found::Known(place) => {
                self.last = None;
                Ok(place)
            }
            Found::Entered(place) => {
                self.batch.push(page.bytes, page.hash, self.elements[page.region])?;
                Ok(place)
            }
        }
    }

    /// Takes a page of which nothing is known, and fills in its hash.
    pub(super) fn unseen(
        &mut self,
        region: usize,
        page: usize,
        bytes: &[u8],
        hash: &mut [u8],
    ) -> Result<PageRef> {
        self.follow(region, page)?;
        self.make_room()?;
        self.batch.stage(bytes, self.elements[region], hash)?;
        match self.find_or_enter(hash) {
            Found::Known(place) => {
                self.last = None;
                Ok(place)
            }
            Found::Entered(place) => {
                self.batch.keep_staged()?;
                Ok(place)
            }
        }
    }

    /// Where a page lies that was stored last: number of the segment among those begun, and slot.
    pub(super) fn location(&self, stored: PageRef) -> Result<Place> {
        let (Some((_, slot)), Some(segment)) = (stored.stored(), self.begun.len().checked_sub(1))
        else {
            return Err(Error::Broken { what: "storing" });
        };
        Ok(Place { segment: segment as u32, slot })
    }

    /// So many pages are still to come.
    pub(super) fn expect_pages(&mut self, pages: usize) {
        self.catalog.reserve(pages);
        self.expected_bytes = pages as u64 * self.segment_bytes / u64::from(self.slots_max);
    }

    /// Ends the piece before a page that does not follow it.
    pub(super) fn follow(&mut self, region: usize, page: usize) -> Result<()> {
        let follows = page > 0 && self.last == Some((region, page - 1));
        if !follows {
            self.batch.end_piece()?;
        }
        self.last = Some((region, page));
        Ok(())
    }

    pub(super) fn find_or_enter(&mut self, hash: &[u8]) -> Found {
        match self.mode.finds_equal() {
            false => Found::Entered(self.catalog.enter_always(hash)),
            true => self.catalog.find_or_enter(hash),
        }
    }

    /// Makes sure that a segment with a free slot is open.
    pub(super) fn make_room(&mut self) -> Result<()> {
        match self.batch.slots() {
            Some(slots) if slots < self.slots_max => return Ok(()),
            Some(_) => self.close()?,
            None => {}
        }
        let id = SegmentId(identity::bytes()?);
        self.begun.push(id);
        self.catalog.open_segment(id);
        let pages_bytes = self.expected_bytes.min(self.segment_bytes);
        self.expected_bytes -= pages_bytes;
        // Room for the index too: growing a file at its very end costs as much as reserving it all.
        let hint = pages_bytes + pages_bytes / INDEX_SHARE;
        self.batch.open_segment(id, (hint > 0).then_some(hint));
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<()> {
        if self.batch.slots().is_some() {
            self.catalog.seal_segment();
            self.batch.close_segment()?;
        }
        Ok(())
    }
}

/// How much may have to be stored, as far as anybody knows: regions never seen, and pages that
/// were written. Regions of which only hashing will tell count as nothing.
pub(super) fn expected_bytes(
    regions: &Regions,
    positions: &[Positions],
    dirty: &[Dirty],
    page_bytes: u64,
) -> u64 {
    let of_region =
        |((region, positions), dirty): ((&Region, &Positions), &Dirty)| match dirty.count() {
            _ if region.device().is_some() => 0,
            _ if positions.is_unknown() => region.bytes() as u64,
            Some(pages) => pages as u64 * page_bytes,
            None => 0,
        };
    regions.iter().zip(positions).zip(dirty).map(of_region).sum()
}
