//! Storing: changed pages go into segments, unless an equal one is known.
//!
//! Data: the scan of a source -> catalog: known pages become references -> new ones are copied into
//! blocks as they come, or entered first and brought together: a device brings whole blocks.
//!
//! Invariant: pages are brought in the order in which they were entered, into the segment that was
//! open then.

use standfast_capture::{Dirty, Region, Regions};
use standfast_format::SegmentId;
use standfast_reduce::{
    Brought, Catalog, Changed, Consume, Found, PageAt, PageRef, PageSource, PageTable,
};
use standfast_share::Location;
use standfast_write::Batch;

use crate::error::{Error, Result};
use crate::settings::Comparison;

/// A segment's index takes less than one byte of so many bytes of pages, at any hash.
const INDEX_SHARE: u64 = 64;

/// Where changed pages go.
pub(crate) struct Storing<'a> {
    /// Size of each region's elements.
    pub(crate) elements: Vec<u8>,
    pub(crate) catalog: &'a mut Catalog,
    pub(crate) batch: Batch,
    /// The page stored last, by region and page: what does not follow it begins a piece.
    pub(crate) last: Option<(usize, usize)>,
    pub(crate) compare: Comparison,
    pub(crate) page_bytes: usize,
    pub(crate) slots_max: u32,
    pub(crate) segment_bytes: u64,
    /// What is still to come, if nothing is found to be known: a hint for the file system.
    pub(crate) expected_bytes: u64,
    pub(crate) begun: Vec<SegmentId>,
}

impl Storing<'_> {
    /// Takes a page that is not what it was, and says where it is from now on.
    pub(crate) fn changed(&mut self, page: Changed<'_>) -> Result<PageRef> {
        if self.compare.equal && page.zero {
            return Ok(PageRef::ZERO);
        }
        self.follow(page.region, page.page)?;
        self.open_slot()?;
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
    pub(crate) fn unseen(
        &mut self,
        region: usize,
        page: usize,
        bytes: &[u8],
        hash: &mut [u8],
    ) -> Result<PageRef> {
        self.follow(region, page)?;
        self.open_slot()?;
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
    pub(crate) fn location(&self, stored: PageRef) -> Result<Location> {
        let (Some((_, slot)), Some(segment)) = (stored.stored(), self.begun.len().checked_sub(1))
        else {
            return Err(Error::Broken { what: "storing" });
        };
        Ok(Location { segment: segment as u32, slot })
    }

    /// So many pages are still to come.
    pub(crate) fn expect_pages(&mut self, pages: usize) {
        self.catalog.reserve(pages);
        self.expected_bytes = pages as u64 * self.segment_bytes / u64::from(self.slots_max);
    }

    /// Ends the piece before a page that does not follow it.
    pub(crate) fn follow(&mut self, region: usize, page: usize) -> Result<()> {
        let follows = page > 0 && self.last == Some((region, page - 1));
        if !follows {
            self.batch.end_piece()?;
        }
        self.last = Some((region, page));
        Ok(())
    }

    pub(crate) fn find_or_enter(&mut self, hash: &[u8]) -> Found {
        match self.compare.equal {
            false => Found::Entered(self.catalog.enter_always(hash)),
            true => self.catalog.find_or_enter(hash),
        }
    }

    /// Makes sure that a segment with a free slot is open.
    pub(crate) fn open_slot(&mut self) -> Result<()> {
        match self.batch.slots() {
            Some(slots) if slots < self.slots_max => return Ok(()),
            Some(_) => self.close()?,
            None => {}
        }
        let id = new_segment()?;
        self.begun.push(id);
        self.catalog.open_segment(id);
        let pages_bytes = self.expected_bytes.min(self.segment_bytes);
        self.expected_bytes -= pages_bytes;
        // Room for the index too: growing a file at its very end costs as much as reserving it all.
        let hint = pages_bytes + pages_bytes / INDEX_SHARE;
        self.batch.open_segment(id, (hint > 0).then_some(hint));
        Ok(())
    }

    pub(crate) fn close(&mut self) -> Result<()> {
        if self.batch.slots().is_some() {
            self.catalog.seal_segment();
            self.batch.close_segment()?;
        }
        Ok(())
    }
}

/// The id of a segment that is not there yet.
pub(crate) fn new_segment() -> Result<SegmentId> {
    let id = standfast_sys::identity::bytes();
    Ok(SegmentId(id.map_err(|error| Error::Random(error.to_string()))?))
}

/// How much may have to be stored, as far as anybody knows: regions never seen, and pages that
/// were written. Regions of which only hashing will tell count as nothing.
pub(crate) fn expected_bytes(
    regions: &Regions,
    positions: &[PageTable],
    dirty: &[Dirty],
    page_bytes: u64,
) -> u64 {
    let of_region =
        |((region, positions), dirty): ((&Region, &PageTable), &Dirty)| match dirty.count() {
            _ if region.device().is_some() => 0,
            _ if positions.is_unknown() => region.bytes() as u64,
            Some(pages) => pages as u64 * page_bytes,
            None => 0,
        };
    regions.iter().zip(positions).zip(dirty).map(of_region).sum()
}

/// A source of pages, whichever it is.
pub(crate) type Pages<'a> = dyn PageSource<Error = Error> + 'a;

/// Stores pages of a source.
pub(crate) struct Bringing<'a, 's> {
    store: &'a mut Storing<'s>,
    source: &'a Pages<'a>,
    /// Entered into the open segment, and still to be brought; their hashes, end to end.
    waiting: Vec<PageAt>,
    hashes: Vec<u8>,
}

impl<'a, 's> Bringing<'a, 's> {
    pub(crate) fn new(store: &'a mut Storing<'s>, source: &'a Pages<'a>) -> Self {
        Self { store, source, waiting: Vec::new(), hashes: Vec::new() }
    }

    /// Brings pages that the open segment was reserved for.
    pub(crate) fn fill(
        store: &'a mut Storing<'s>,
        source: &'a Pages<'a>,
        pages: &[PageAt],
        hashes: &[u8],
    ) -> Result<()> {
        let (waiting, hashes) = (pages.to_vec(), hashes.to_vec());
        Self { store, source, waiting, hashes }.flush()
    }

    /// Where a page lies that was entered last, among this rank's segments.
    pub(crate) fn location(&self, entered: PageRef) -> Result<Location> {
        self.store.location(entered)
    }

    /// Brings what is entered.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let Self { store, source, waiting, hashes } = self;
        if waiting.is_empty() {
            return Ok(());
        }
        let (hash_bytes, page_bytes) = (hashes.len() / waiting.len(), store.page_bytes);
        let mut to_come = waiting.iter().zip(hashes.chunks_exact(hash_bytes));
        source.bring(waiting, store.batch.takes_blocks(), &mut |brought| match brought {
            Brought::Block { pages, encoded } => {
                let of_block = to_come.by_ref().take(pages as usize).flat_map(|(_, hash)| hash);
                let hashes = of_block.copied().collect();
                Ok(store.batch.push_block(pages, encoded, hashes)?)
            }
            Brought::Pages(bytes) => bytes.chunks(page_bytes).try_for_each(|page| {
                let (at, hash) = to_come.next().ok_or(Error::Broken { what: "bringing pages" })?;
                let region = at.region as usize;
                store.follow(region, at.page as usize)?;
                Ok(store.batch.push(page, hash, store.elements[region])?)
            }),
        })?;
        if to_come.next().is_some() {
            return Err(Error::Broken { what: "bringing pages" });
        }
        waiting.clear();
        hashes.clear();
        Ok(())
    }
}

impl Consume for Bringing<'_, '_> {
    type Error = Error;

    fn changed(&mut self, page: Changed<'_>) -> Result<PageRef> {
        self.store.changed(page)
    }

    fn unseen(
        &mut self,
        region: usize,
        page: usize,
        bytes: &[u8],
        hash: &mut [u8],
    ) -> Result<PageRef> {
        self.store.unseen(region, page, bytes, hash)
    }

    fn hashed(&mut self, page: PageAt, hash: &[u8]) -> Result<PageRef> {
        let open = self.store.batch.slots();
        let entered = self.waiting.len() as u32;
        if open.is_none_or(|slots| slots + entered >= self.store.slots_max) {
            self.flush()?;
            self.store.open_slot()?;
        }
        Ok(match self.store.find_or_enter(hash) {
            Found::Known(place) => place,
            Found::Entered(place) => {
                self.waiting.push(page);
                self.hashes.extend_from_slice(hash);
                place
            }
        })
    }
}
