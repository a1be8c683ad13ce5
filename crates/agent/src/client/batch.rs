//! The pages of one rank's checkpoint on their way into units of the shared pool.
//!
//! Data: `stage` copies a page into the unit being filled and hashes the *copy*, as the rank's own
//! packer does; `keep_staged` makes it the stream's next slot; full units go to the agent.
//!
//! Invariants:
//! - Slots of a stream are dense; blocks are numbered and filled one after another, by one thread.
//! - What is dropped unfinished is aborted at the agent.

use standfast_checkpoint::Order;
use standfast_format::{HASH_BYTES_MAX, SegmentId};

use super::link::Link;
use crate::error::{Error, Result};
use crate::message::{Block, Request};

/// Filled units that are sent at once.
const BLOCKS_SENT: usize = 16;

/// The pages of one checkpoint.
pub struct Batch<'a> {
    link: &'a Link,
    order: Order,
    stream: Option<Stream>,
    closed: Vec<SegmentId>,
    filling: Option<Filling>,
    /// Filled units that are still to be sent: each message wakes the agent, which would take the
    /// processor from ranks that are still capturing.
    filled: Vec<Block>,
    staged: [u8; HASH_BYTES_MAX],
    hash_bytes: usize,
    pages: u64,
    finished: bool,
}

struct Stream {
    id: SegmentId,
    blocks: u32,
    slots: u32,
}

struct Filling {
    unit: u32,
    pages: u32,
    elem: u8,
    hashes: Vec<u8>,
}

/// Pages that are in the agent's hands.
#[derive(Debug)]
pub struct Handed {
    /// This rank's streams.
    pub streams: Vec<SegmentId>,
    /// How many pages.
    pub pages: u64,
}

impl<'a> Batch<'a> {
    /// Starts a checkpoint; `hash_bytes`: length of a page's hash.
    pub fn begin(link: &'a Link, order: Order, hash_bytes: usize) -> Self {
        Self {
            link,
            order,
            stream: None,
            closed: Vec::new(),
            filling: None,
            filled: Vec::with_capacity(BLOCKS_SENT),
            staged: [0; HASH_BYTES_MAX],
            hash_bytes,
            pages: 0,
            finished: false,
        }
    }

    /// Starts a stream; pages go there until it is closed.
    pub fn open_stream(&mut self, id: SegmentId) {
        assert!(self.stream.is_none(), "one stream is open at a time");
        self.stream = Some(Stream { id, blocks: 0, slots: 0 });
    }

    /// Pages in the open stream; `None` if none is open.
    pub fn slots(&self) -> Option<u32> {
        self.stream.as_ref().map(|stream| stream.slots)
    }

    /// Copies a page into the next slot and checks that the copy has the hash that was computed
    /// before.
    pub fn push(&mut self, page: &[u8], hash: &[u8], elem: u8) -> Result<()> {
        let mut copied = [0; HASH_BYTES_MAX];
        let copied = &mut copied[..hash.len()];
        self.stage(page, elem, copied)?;
        if *copied != *hash {
            return Err(Error::MemoryChanged);
        }
        self.keep_staged()
    }

    /// Copies a page to where the next slot's page goes, and hashes the copy; it becomes the slot
    /// with [`Batch::keep_staged`]. A shorter page is filled up with zeros.
    pub fn stage(&mut self, page: &[u8], elem: u8, hash: &mut [u8]) -> Result<()> {
        if self.filling.as_ref().is_some_and(|filling| filling.elem != elem) {
            self.dispatch()?;
        }
        if self.filling.is_none() {
            let unit = self.take_unit()?;
            self.filling = Some(Filling { unit, pages: 0, elem, hashes: Vec::new() });
        }
        let filling = self.filling.as_mut().expect("just made");
        let page_bytes = self.link.member.page_bytes;
        assert!(page.len() <= page_bytes, "a page is no longer than a page");
        let start = self.link.memory.unit(filling.unit);
        // SAFETY: units hold whole pages and one that is full is dispatched, so the slot is inside
        // of the unit; the unit is leased to this rank, and this thread alone fills it.
        let slot = unsafe {
            let start = start.add(filling.pages as usize * page_bytes);
            std::slice::from_raw_parts_mut(start, page_bytes)
        };
        slot[..page.len()].copy_from_slice(page);
        slot[page.len()..].fill(0);
        self.link.member.hasher.hash(slot, hash);
        self.staged[..self.hash_bytes].copy_from_slice(&hash[..self.hash_bytes]);
        Ok(())
    }

    /// Makes the page staged last the next slot of the open stream.
    pub fn keep_staged(&mut self) -> Result<()> {
        let filling = self.filling.as_mut().expect("a page is staged");
        filling.pages += 1;
        filling.hashes.extend_from_slice(&self.staged[..self.hash_bytes]);
        let filled = (filling.pages + 1) as usize * self.link.member.page_bytes;
        self.stream.as_mut().expect("a stream is open").slots += 1;
        self.pages += 1;
        match filled > self.link.memory.unit_bytes() {
            true => self.dispatch(),
            false => Ok(()),
        }
    }

    /// Ends the open stream.
    pub fn close_stream(&mut self) -> Result<()> {
        self.dispatch()?;
        self.send_filled()?;
        let stream = self.stream.take().expect("a stream is open");
        self.closed.push(stream.id);
        Ok(())
    }

    /// Ends the checkpoint: all pages are in the agent's hands.
    pub fn finish(mut self) -> Handed {
        assert!(self.stream.is_none(), "streams are closed first");
        self.finished = true;
        Handed { streams: std::mem::take(&mut self.closed), pages: self.pages }
    }

    fn dispatch(&mut self) -> Result<()> {
        let Some(filling) = self.filling.take() else { return Ok(()) };
        let Filling { unit, pages, elem, hashes } = filling;
        if pages == 0 {
            // Staged and not kept: the unit is as good as new.
            self.link.put_back(unit);
            return Ok(());
        }
        let stream = self.stream.as_mut().expect("a block belongs to the open stream");
        let number = stream.blocks;
        stream.blocks += 1;
        let (order, stream) = (self.order, stream.id);
        self.filled.push(Block { order, stream, number, unit, pages, elem, hashes });
        match self.filled.len() < BLOCKS_SENT {
            true => Ok(()),
            false => self.send_filled(),
        }
    }

    fn send_filled(&mut self) -> Result<()> {
        if self.filled.is_empty() {
            return Ok(());
        }
        let blocks = std::mem::replace(&mut self.filled, Vec::with_capacity(BLOCKS_SENT));
        self.link.send(&Request::Blocks(blocks))
    }

    /// A unit to fill. Before waiting for one, what is filled goes out: it may be what is waited for.
    fn take_unit(&mut self) -> Result<u32> {
        if let Some(unit) = self.link.unit_in_stock()? {
            return Ok(unit);
        }
        self.send_filled()?;
        self.link.take_unit()
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if let Some(filling) = self.filling.take() {
            self.link.put_back(filling.unit);
        }
        // Only of a checkpoint that is given up.
        self.filled.drain(..).for_each(|block| self.link.put_back(block.unit));
        self.link.return_stock();
        if !self.finished {
            self.link.abort(self.order.attempt);
        }
    }
}
