//! Pages of a source on their way into segments.
//!
//! Data: the scan of a source -> catalog: known pages become references -> new ones are copied as they
//! come, or entered first and brought together: a device brings whole blocks.
//!
//! Invariant: pages are brought in the order in which they were entered, into the segment that was
//! open then.

use standfast_reduce::{Brought, Changed, Consume, Found, PageAt, PageRef, PageSource};
use standfast_share::Place as Location;

use super::storing::Storing;
use crate::error::{Error, Result};

/// A source of pages, whichever it is.
pub(super) type Pages<'a> = dyn PageSource<Error = Error> + 'a;

/// Stores pages of a source.
pub(super) struct Bringing<'a, 's> {
    store: &'a mut Storing<'s>,
    source: &'a Pages<'a>,
    /// Entered into the open segment, and still to be brought; their hashes, end to end.
    waiting: Vec<PageAt>,
    hashes: Vec<u8>,
}

impl<'a, 's> Bringing<'a, 's> {
    pub(super) fn new(store: &'a mut Storing<'s>, source: &'a Pages<'a>) -> Self {
        Self { store, source, waiting: Vec::new(), hashes: Vec::new() }
    }

    /// Brings pages that the open segment was reserved for.
    pub(super) fn fill(
        store: &'a mut Storing<'s>,
        source: &'a Pages<'a>,
        pages: &[PageAt],
        hashes: &[u8],
    ) -> Result<()> {
        let (waiting, hashes) = (pages.to_vec(), hashes.to_vec());
        Self { store, source, waiting, hashes }.flush()
    }

    /// Where a page lies that was entered last, among this rank's segments.
    pub(super) fn location(&self, entered: PageRef) -> Result<Location> {
        self.store.location(entered)
    }

    /// Brings what is entered.
    pub(super) fn flush(&mut self) -> Result<()> {
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
            self.store.make_room()?;
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
