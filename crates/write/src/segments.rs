//! The segments of one attempt at a checkpoint: blocks of one rank or of many in, sealed segments out.
//!
//! ```text
//! blocks, in any order -> checked, entered -> encoder -> file of the segment
//! seal: the index lists the blocks of one stream after the other
//! ```
//! Each rank numbers its blocks in *streams* of its own, whose slots are dense, so it knows where
//! its pages will be (stream, slot) before anything is written. Blocks of all streams of a segment go
//! to its file as they are ready; at the end the index puts stream behind stream, and a stream's slot
//! *s* is the segment's slot *first slot of the stream + s*. A rank that writes for itself has one
//! stream a segment: then both are the same.
//!
//! Invariants:
//! - A segment has the id of its first stream, and that stream begins at slot 0.
//! - A stream lies in one segment as a whole.
//! - What contradicts that (a missing block, one sent twice) is an error: it may come from other
//!   processes.
//! - [`Segments::seal`] returns only when no encoder works for this attempt any more.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::hash_map::{self, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use standfast_format::{Block, Rank, SegmentId};
use standfast_reduce::Encoded;

use crate::encode::{Encoder, SegmentCore, Work};
use crate::error::{Error, Result};
use crate::segment::{OpenSegment, SealedSegment, SegmentSettings, Stored};
use crate::sink::{Filled, Head, Unsealed};

/// A stream in a sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The stream.
    pub stream: SegmentId,
    /// Whose it is.
    pub rank: Rank,
    /// The slot of its first page.
    pub first_slot: u32,
    /// What its blocks take.
    pub compressed_bytes: u64,
}

/// A sealed segment and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSegment {
    /// The segment.
    pub sealed: SealedSegment,
    /// Its streams, in the order of their slots.
    pub streams: Vec<Placed>,
}

/// The segments of one attempt. Dropped, they are given up.
#[must_use = "a checkpoint is durable only after its segments are sealed"]
pub struct Segments {
    core: Arc<SegmentCore>,
    of: SegmentSettings,
    streams_max: usize,
    shared: Arc<Shared>,
}

/// What encoders and the one who pushes know together.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    landed: Condvar,
}

#[derive(Default)]
struct State {
    segments: Vec<Segment>,
    /// Where each stream is: segment, and number among its streams.
    streams: HashMap<SegmentId, (usize, usize)>,
    in_flight: usize,
}

struct Segment {
    file: Arc<OpenSegment>,
    streams: Vec<Stream>,
}

struct Stream {
    id: SegmentId,
    rank: Rank,
    blocks: BTreeMap<u32, Entered>,
}

/// A block that was entered.
struct Entered {
    hashes: Vec<u8>,
    /// Once it is in the file.
    written: Option<Block>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A block on its way to the file. However that ends, it has landed then.
pub(crate) struct Flight {
    shared: Arc<Shared>,
    pub(crate) file: Arc<OpenSegment>,
    /// Segment, stream, block.
    at: (usize, usize, u32),
    pub(crate) outcome: Result<Block>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let written = match &self.outcome {
            Ok(block) => Some(*block),
            Err(error) => {
                self.file.fail(error.clone());
                None
            }
        };
        let (segment, stream, number) = self.at;
        let mut state = self.shared.lock();
        let segment = state.segments.get_mut(segment);
        let stream = segment.and_then(|segment| segment.streams.get_mut(stream));
        if let Some(entered) = stream.and_then(|stream| stream.blocks.get_mut(&number)) {
            entered.written = written;
        }
        state.in_flight -= 1;
        if state.in_flight == 0 {
            self.shared.landed.notify_all();
        }
    }
}

impl Segments {
    /// `streams_max`: so many streams share a segment.
    pub(crate) fn new(core: Arc<SegmentCore>, of: SegmentSettings, streams_max: usize) -> Self {
        Self { core, of, streams_max, shared: Arc::default() }
    }

    /// Checks that a block has the sizes it must have.
    pub fn check(&self, block: &Filled) -> Result<()> {
        let block_bytes = self.core.settings().block_bytes;
        self.check_sizes(&block.head, block.unit.len().min(block_bytes))
    }

    fn check_sizes(&self, head: &Head, bytes_max: usize) -> Result<()> {
        let pages = head.pages as usize;
        let bytes = pages * self.of.page_bytes as usize;
        let fits = pages > 0 && bytes <= bytes_max;
        if fits && head.hashes.len() == pages * self.of.hash.bytes() {
            return Ok(());
        }
        Err(Error::Mismatch { id: head.stream, why: "a block has not the size it must have" })
    }

    /// Takes a block on its way to a segment.
    pub fn push(&self, mut block: Filled) -> Result<()> {
        self.check(&block)?;
        let told = self.core.checks().then(|| block.head.hashes.clone());
        let flight = self.start(&mut block.head)?;
        block.head.hashes = told.unwrap_or_default();
        self.core.send(Work { block, flight })
    }

    /// Encodes a block in this thread and appends it to its segment, whose file is returned.
    pub(crate) fn store(
        &self,
        encoder: &mut Encoder,
        mut block: Filled,
    ) -> Result<Arc<OpenSegment>> {
        self.check(&block)?;
        let mut flight = self.start(&mut block.head)?;
        encoder.run(block, &mut flight, 0);
        flight.outcome.clone().map(|_| Arc::clone(&flight.file))
    }

    /// Appends a block that is encoded already.
    pub(crate) fn append(&self, mut head: Head, encoded: Encoded<'_>) -> Result<()> {
        // Whoever encodes chooses the size of blocks.
        self.check_sizes(&head, usize::MAX)?;
        let mut flight = self.start(&mut head)?;
        flight.outcome = flight.file.append(head.pages, Stored::Encoded(encoded));
        flight.outcome.clone().map(drop)
    }

    /// Enters a block, with its hashes, and counts it.
    fn start(&self, head: &mut Head) -> Result<Flight> {
        let mut state = self.shared.lock();
        let (segment, stream) = self.find_or_open(&mut state, head);
        let Segment { file, streams } = &mut state.segments[segment];
        streams[stream].enter(head)?;
        let file = Arc::clone(file);
        state.in_flight += 1;
        drop(state);
        let (shared, at) = (Arc::clone(&self.shared), (segment, stream, head.number));
        let flight = Flight { shared, file, at, outcome: Err(Error::Failed) };
        flight.file.check()?;
        Ok(flight)
    }

    /// The place of a block's stream.
    fn find_or_open(&self, state: &mut State, head: &Head) -> (usize, usize) {
        let State { segments, streams, .. } = state;
        let entry = match streams.entry(head.stream) {
            hash_map::Entry::Occupied(known) => return *known.get(),
            hash_map::Entry::Vacant(entry) => entry,
        };
        let room = segments.iter().position(|segment| segment.streams.len() < self.streams_max);
        let segment = room.unwrap_or_else(|| {
            segments.push(Segment { file: self.core.open(&self.of, head), streams: Vec::new() });
            segments.len() - 1
        });
        let of_segment = &mut segments[segment].streams;
        of_segment.push(Stream { id: head.stream, rank: head.rank, blocks: BTreeMap::new() });
        *entry.insert((segment, of_segment.len() - 1))
    }

    /// Waits for every block and seals every segment. One failure discards them all.
    pub fn seal(self) -> Result<Vec<SharedSegment>> {
        let waited = self.shared.landed.wait_while(self.shared.lock(), |state| state.in_flight > 0);
        let segments = std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).segments);
        let files: Vec<_> = segments.iter().map(|segment| Arc::clone(&segment.file)).collect();
        let hash_bytes = self.of.hash.bytes();
        let sealed = segments.into_iter().map(|segment| segment.seal(hash_bytes)).collect();
        if Result::is_err(&sealed) {
            files.iter().for_each(|file| file.fail(Error::Failed));
        }
        sealed
    }
}

impl Drop for Segments {
    /// Segments that are given up must not be finished by blocks still in flight.
    fn drop(&mut self) {
        self.shared.lock().segments.iter().for_each(|segment| segment.file.fail(Error::Failed));
    }
}

impl Unsealed for Segments {
    fn seal(self: Box<Self>) -> Result<Vec<SealedSegment>> {
        let sealed = Segments::seal(*self)?;
        Ok(sealed.into_iter().map(|segment| segment.sealed).collect())
    }
}

impl Stream {
    fn enter(&mut self, head: &mut Head) -> Result<()> {
        let mismatch = |why| Err(Error::Mismatch { id: head.stream, why });
        if self.rank != head.rank {
            return mismatch("two ranks write to one stream");
        }
        match self.blocks.entry(head.number) {
            Entry::Occupied(_) => mismatch("a block was sent twice"),
            Entry::Vacant(entry) => {
                let hashes = std::mem::take(&mut head.hashes);
                entry.insert(Entered { hashes, written: None });
                Ok(())
            }
        }
    }
}

impl Segment {
    fn seal(self, hash_bytes: usize) -> Result<SharedSegment> {
        self.file.check()?;
        let (mut blocks, mut hashes, mut placed) = (Vec::new(), Vec::new(), Vec::new());
        for Stream { id, rank, blocks: of_stream } in self.streams {
            let first_slot = (hashes.len() / hash_bytes) as u32;
            let mut compressed_bytes = 0;
            for (expected, (number, entered)) in (0..).zip(of_stream) {
                let Some(block) = entered.written.filter(|_| number == expected) else {
                    return Err(Error::Mismatch { id, why: "a block is missing" });
                };
                compressed_bytes += u64::from(block.stored_bytes);
                blocks.push(block);
                hashes.extend_from_slice(&entered.hashes);
            }
            placed.push(Placed { stream: id, rank, first_slot, compressed_bytes });
        }
        let sealed = self.file.seal(&blocks, &hashes)?;
        Ok(SharedSegment { sealed, streams: placed })
    }
}

#[cfg(test)]
mod tests;
