//! The pages of one checkpoint on their way into blocks: the only code that sees single pages.
//!
//! ```text
//! stage (copy, hash the copy) -> unit of memory --full--> SegmentSink: this process, or its agent
//! finish -> Pending -> seal (commit thread)
//! ```
//! A page is copied into a unit and the *copy* is hashed: a hash of the program's memory alone would
//! not tell of a thread that writes between hashing and copying, and would make a checkpoint nobody
//! can restore. Right after the copy the page is in the nearest cache, where hashing costs least.
//!
//! Invariants:
//! - Slots are dense: blocks are numbered and filled one after another, by one thread.
//! - A sink is called once a block, never once a page.
//! - A batch or its [`Pending`] that is dropped is given up.

use standfast_format::{HASH_BYTES_MAX, Rank, SegmentId};
use standfast_reduce::{Encoded, PageHasher};

use crate::error::{Error, Result};
use crate::segment::SealedSegment;
use crate::sink::{Filled, Head, SegmentSink, Unsealed};
use crate::unit::Unit;

/// The pages of one checkpoint on their way into blocks.
pub struct Batch {
    /// Before the sink: a unit goes back to the sink's stock.
    filling: Option<Filling>,
    stream: Option<Stream>,
    closed: Vec<SegmentId>,
    pages: u64,
    /// Hash of the page staged last.
    staged: [u8; HASH_BYTES_MAX],
    /// Of the piece so far.
    piece_bytes: usize,
    piece_bytes_min: Option<usize>,
    rank: Rank,
    hasher: PageHasher,
    page_bytes: usize,
    sink: Box<dyn SegmentSink>,
}

/// A block being filled.
struct Filling {
    unit: Unit,
    pages: usize,
    elem: u8,
    hashes: Vec<u8>,
}

/// The open segment, as far as pages need it.
struct Stream {
    id: SegmentId,
    size_hint: Option<u64>,
    blocks: u32,
    slots: u32,
}

impl Stream {
    /// The head of the next block.
    fn next(&mut self, rank: Rank, pages: u32, elem: u8, hashes: Vec<u8>) -> Head {
        let Self { id: stream, size_hint, blocks: number, .. } = *self;
        self.blocks += 1;
        Head { stream, rank, number, pages, elem, hashes, size_hint }
    }
}

const NOT_OPEN: Error = Error::Misused { what: "a page comes before its segment" };

impl Batch {
    /// Starts one checkpoint of a rank, with pages of so many bytes.
    pub fn new(
        sink: Box<dyn SegmentSink>,
        rank: Rank,
        hasher: PageHasher,
        page_bytes: usize,
    ) -> Self {
        Self {
            filling: None,
            stream: None,
            closed: Vec::new(),
            pages: 0,
            staged: [0; HASH_BYTES_MAX],
            piece_bytes: 0,
            piece_bytes_min: sink.piece_bytes_min(),
            rank,
            hasher,
            page_bytes,
            sink,
        }
    }

    /// Starts a segment; pages go there until it is closed.
    pub fn open_segment(&mut self, id: SegmentId, size_hint: Option<u64>) {
        assert!(self.stream.is_none(), "one segment is open at a time");
        self.stream = Some(Stream { id, size_hint, blocks: 0, slots: 0 });
    }

    /// Pages in the open segment; `None` if no segment is open.
    pub fn slots(&self) -> Option<u32> {
        self.stream.as_ref().map(|stream| stream.slots)
    }

    /// Copies a page into the next slot of the open segment and checks that the copy has the
    /// hash that was computed before.
    pub fn push(&mut self, page: &[u8], hash: &[u8], elem: u8) -> Result<()> {
        let mut copied = [0; HASH_BYTES_MAX];
        let copied = &mut copied[..hash.len()];
        self.stage(page, elem, copied)?;
        if *copied != *hash {
            return Err(Error::MemoryChanged);
        }
        self.keep_staged()
    }

    /// Copies a page to where the next slot's page goes, and hashes the copy. It becomes the slot
    /// with [`Batch::keep_staged`]; otherwise the next page takes its place. A page at the end of
    /// a region may be shorter; it is filled up with zeros.
    pub fn stage(&mut self, page: &[u8], elem: u8, hash: &mut [u8]) -> Result<()> {
        if self.filling.as_ref().is_some_and(|filling| filling.elem != elem) {
            self.dispatch()?;
        }
        let filling = match &mut self.filling {
            Some(filling) => filling,
            None => {
                let unit = self.sink.unit()?;
                let hashes = Vec::with_capacity(unit.len() / self.page_bytes * hash.len());
                self.filling.insert(Filling { unit, pages: 0, elem, hashes })
            }
        };
        let slot = &mut filling.unit[filling.pages * self.page_bytes..][..self.page_bytes];
        slot[..page.len()].copy_from_slice(page);
        slot[page.len()..].fill(0);
        self.hasher.hash(slot, hash);
        self.staged[..hash.len()].copy_from_slice(hash);
        Ok(())
    }

    /// Makes the page staged last the next slot of the open segment.
    pub fn keep_staged(&mut self) -> Result<()> {
        let (Some(filling), Some(stream)) = (&mut self.filling, &mut self.stream) else {
            return Err(NOT_OPEN);
        };
        filling.pages += 1;
        filling.hashes.extend_from_slice(&self.staged[..self.hasher.bytes()]);
        let is_full = (filling.pages + 1) * self.page_bytes > filling.unit.len();
        stream.slots += 1;
        self.pages += 1;
        self.piece_bytes += self.page_bytes;
        if is_full { self.dispatch() } else { Ok(()) }
    }

    /// Whether blocks that were encoded elsewhere can be taken.
    pub fn takes_blocks(&self) -> bool {
        self.sink.takes_encoded()
    }

    /// Makes a block that was encoded elsewhere, of pages with these hashes, the next slots of the
    /// open segment.
    pub fn push_block(&mut self, pages: u32, encoded: Encoded<'_>, hashes: Vec<u8>) -> Result<()> {
        self.dispatch()?;
        let stream = self.stream.as_mut().ok_or(NOT_OPEN)?;
        let head = stream.next(self.rank, pages, 0, hashes);
        self.sink.put_encoded(head, encoded)?;
        stream.slots += pages;
        self.pages += u64::from(pages);
        Ok(())
    }

    /// Ends a piece: what comes next does not follow in the program's memory. Matters only to
    /// checkpoints that are written as pieces come.
    pub fn end_piece(&mut self) -> Result<()> {
        if self.piece_goes_out() {
            self.dispatch()?;
            self.sink.end_piece()?;
        }
        self.piece_bytes = 0;
        Ok(())
    }

    /// Ends the open segment.
    pub fn close_segment(&mut self) -> Result<()> {
        self.end_piece()?;
        self.dispatch()?;
        self.sink.end_stream()?;
        self.closed.extend(self.stream.take().map(|stream| stream.id));
        Ok(())
    }

    /// Ends the checkpoint: every page is in a unit or beyond, the program may go on.
    pub fn finish(self) -> Pending {
        assert!(self.stream.is_none(), "segments are closed first");
        let Self { filling, closed, pages, sink, .. } = self;
        drop(filling);
        Pending { streams: closed, pages, unsealed: vec![sink.hand_over()] }
    }

    /// Whether the piece so far is written as it is.
    fn piece_goes_out(&self) -> bool {
        self.piece_bytes > 0 && self.piece_bytes_min.is_some_and(|min| self.piece_bytes >= min)
    }

    fn dispatch(&mut self) -> Result<()> {
        // A page may be staged and not kept: a block without pages goes nowhere.
        let Some(filling) = self.filling.take().filter(|filling| filling.pages > 0) else {
            return Ok(());
        };
        let stream = self.stream.as_mut().ok_or(NOT_OPEN)?;
        let Filling { unit, pages, elem, hashes } = filling;
        let head = stream.next(self.rank, pages as u32, elem, hashes);
        let at_once = self.piece_goes_out();
        self.sink.put(Filled { head, unit }, at_once)
    }
}

/// Pages that are captured and not yet durable. Dropped, they are given up.
#[must_use = "a checkpoint is durable only after its segments are sealed"]
pub struct Pending {
    streams: Vec<SegmentId>,
    pages: u64,
    unsealed: Vec<Box<dyn Unsealed>>,
}

impl Pending {
    /// The segments in question, as the pages name them.
    pub fn ids(&self) -> impl Iterator<Item = SegmentId> {
        self.streams.iter().copied()
    }

    /// Pages in question.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Takes in the segments of another part of the same checkpoint.
    pub fn join(&mut self, other: Pending) {
        self.streams.extend(other.streams);
        self.pages += other.pages;
        self.unsealed.extend(other.unsealed);
    }

    /// Waits for every block and seals every segment of this process. Segments that stay without
    /// pages have no file.
    pub fn seal(self) -> Result<Vec<SealedSegment>> {
        let mut sealed = Vec::new();
        for unsealed in self.unsealed {
            sealed.extend(unsealed.seal()?);
        }
        Ok(sealed)
    }
}

#[cfg(test)]
mod tests;
