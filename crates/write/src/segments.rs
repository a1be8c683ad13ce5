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
        let flight = self.start(&mut block.head)?;
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
mod tests {
    use super::*;
    use crate::pool::Pool;
    use crate::{PackSettings, Pipeline, SegmentReader};
    use standfast_format::{HashKind, JobId};
    use standfast_reduce::{BlockDecoder, FilterChoice, PageHasher};
    use standfast_store::{MemoryStore, Store};

    const PAGE: usize = 4096;

    fn start() -> (Arc<dyn Store>, Arc<SegmentCore>, SegmentSettings) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let settings = PackSettings {
            pool_bytes: 1 << 20,
            block_bytes: 4 * PAGE,
            page_bytes: PAGE,
            pipeline: Pipeline::Pipelined,
            threads: 2,
            codec: "lz4".parse().unwrap(),
            filter: FilterChoice::Auto,
        };
        let segments = SegmentSettings {
            job: JobId([1; 16]),
            rank: Rank(0),
            hash: HashKind::Xxh3,
            page_bytes: PAGE as u32,
            created_ns: 0,
        };
        (Arc::clone(&store), SegmentCore::start(store, settings, None), segments)
    }

    fn page(rank: u8, number: u32) -> Vec<u8> {
        let mut page = vec![rank; PAGE];
        page[..4].copy_from_slice(&number.to_le_bytes());
        page
    }

    fn block(rank: u8, number: u32, first: u32, pages: u32) -> Filled {
        let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
        let mut unit = Pool::new(1, 4 * PAGE).take();
        let mut hashes = Vec::new();
        for (slot, at) in unit.chunks_mut(PAGE).zip(first..first + pages) {
            slot.copy_from_slice(&page(rank, at));
            let mut hash = [0; 16];
            hasher.hash(slot, &mut hash);
            hashes.extend_from_slice(&hash);
        }
        let (stream, rank) = (SegmentId([rank; 16]), Rank(u32::from(rank)));
        let head = Head { stream, rank, number, pages, elem: 0, hashes, size_hint: None };
        Filled { head, unit }
    }

    #[test]
    fn interleaved_streams_come_back_in_order() {
        let (store, core, segments) = start();
        let batch = core.begin(segments, 2);
        // Three ranks, their blocks mixed and one of them out of order; the third gets a segment
        // of its own.
        for arrived in [
            block(1, 1, 4, 2),
            block(2, 0, 0, 3),
            block(3, 0, 0, 1),
            block(1, 0, 0, 4),
            block(2, 1, 3, 4),
        ] {
            batch.push(arrived).unwrap();
        }
        let sealed = batch.seal().unwrap();
        assert_eq!(sealed.len(), 2);
        let streams: Vec<(u32, u32)> =
            sealed[0].streams.iter().map(|placed| (placed.rank.0, placed.first_slot)).collect();
        assert_eq!(streams, [(1, 0), (2, 6)]);
        assert_eq!(sealed[0].sealed.reference.id, SegmentId([1; 16]));
        assert_eq!(sealed[0].sealed.reference.slots, 13);
        let reader =
            SegmentReader::open(&*store, segments.job, &sealed[0].sealed.reference).unwrap();
        let mut decoder = BlockDecoder::new(reader.raw_bytes_max());
        let mut pages = Vec::new();
        for block in &reader.index().blocks {
            let mut bytes = vec![0; block.stored_bytes as usize];
            reader.read_at(block.offset, &mut bytes).unwrap();
            let raw_bytes = block.pages as usize * PAGE;
            let raw = decoder.decode(block.codec, block.filter, &bytes, raw_bytes).unwrap();
            pages.extend(raw.chunks(PAGE).map(<[u8]>::to_vec));
        }
        let expected: Vec<Vec<u8>> =
            (0..6).map(|at| page(1, at)).chain((0..7).map(|at| page(2, at))).collect();
        assert!(pages == expected);
    }

    #[test]
    fn contradictions_are_errors_and_leave_nothing() {
        let (store, core, segments) = start();
        let missing = core.begin(segments, 4);
        missing.push(block(1, 1, 0, 1)).unwrap();
        assert!(matches!(missing.seal(), Err(Error::Mismatch { .. })));
        let twice = core.begin(segments, 4);
        twice.push(block(1, 0, 0, 1)).unwrap();
        assert!(matches!(twice.push(block(1, 0, 0, 1)), Err(Error::Mismatch { .. })));
        let changed = |change: fn(&mut Head)| {
            let mut block = block(1, 5, 0, 1);
            change(&mut block.head);
            block
        };
        let stolen = changed(|head| head.rank = Rank(9));
        assert!(matches!(twice.push(stolen), Err(Error::Mismatch { .. })));
        for wrong in [
            changed(|head| head.pages = 0),
            changed(|head| head.pages = 2),
            changed(|head| {
                (head.pages, head.hashes) = (5, vec![0; 5 * 16]);
            }),
            changed(|head| head.pages = u32::MAX),
            changed(|head| head.hashes = vec![0; 15]),
        ] {
            assert!(matches!(twice.push(wrong), Err(Error::Mismatch { .. })));
        }
        drop(twice);
        assert!(store.list("").unwrap().is_empty());
    }
}
