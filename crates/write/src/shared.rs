//! Segments that several ranks share: whoever writes for a whole node coalesces their blocks.
//!
//! ```text
//! blocks of many ranks, in any order -> encoder threads -> one open segment -> store
//! seal: the index lists the blocks of one stream after the other
//! ```
//! Each rank numbers its blocks in *streams* of its own, whose slots are dense, so it knows where
//! its pages will be (stream, slot) before anything is written. Blocks of all streams go to the file
//! as they are ready; at the end the index puts stream behind stream, and a stream's slot *s* is the
//! segment's slot *first slot of the stream + s*. The file is a segment as any other.
//!
//! Invariants:
//! - A segment has the id of its first stream, and that stream begins at slot 0.
//! - A stream lies in one segment as a whole.
//! - What contradicts that (a missing block, one sent twice) is an error: it comes from other
//!   processes.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use standfast_format::{CodecKind, Rank, SegmentId};
use standfast_reduce::{BlockEncoder, Offload};
use standfast_store::{HELD_BYTES_MAX, OwnedBytes, Store};
use standfast_sys::keep_signals_away;

use crate::error::{Error, Result};
use crate::packer::PackSettings;
use crate::segment::{OpenSegment, SealedSegment, SegmentSettings, Stored};
use crate::storing::Storing;

/// A block that has arrived from a rank.
pub struct Arrived {
    /// The stream it belongs to.
    pub stream: SegmentId,
    /// Whose stream that is.
    pub rank: Rank,
    /// Its number in the stream.
    pub number: u32,
    /// Its pages.
    pub pages: u32,
    /// Size of their elements, where known.
    pub elem: u8,
    /// Their hashes, end to end.
    pub hashes: Vec<u8>,
    /// The buffer that begins with its pages; dropping it gives it back.
    pub data: OwnedBytes,
}

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

/// Encoder threads for the blocks of several ranks.
pub struct SharedPacker {
    store: Arc<dyn Store>,
    settings: PackSettings,
    work: Option<Sender<Work>>,
    encoders: Vec<JoinHandle<()>>,
}

struct Work {
    block: Arrived,
    open: Arc<Open>,
    inner: Arc<Inner>,
}

/// The blocks of one stream, by number.
struct Stream {
    id: SegmentId,
    rank: Rank,
    blocks: HashMap<u32, Entered>,
}

/// A block on its way.
struct Entered {
    hashes: Vec<u8>,
    /// Once written: its place among the segment's blocks, and what it takes.
    written: Option<(u32, u32)>,
}

/// A segment that several streams are written to.
struct Open {
    segment: OpenSegment,
    streams: Mutex<Vec<Stream>>,
}

impl Open {
    fn streams(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct State {
    open: Vec<Arc<Open>>,
    in_flight: usize,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    landed: Condvar,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn land(&self) {
        self.lock().in_flight -= 1;
        self.landed.notify_all();
    }
}

impl SharedPacker {
    /// Starts the encoder threads. The pool is the caller's; `pool_bytes` says how large it is.
    pub fn new(store: Arc<dyn Store>, settings: PackSettings) -> Self {
        Self::start(store, settings, None)
    }

    /// The same, with another that encodes what it takes, in turns for the ranks.
    pub fn offloaded(
        store: Arc<dyn Store>,
        settings: PackSettings,
        offload: Arc<dyn Offload>,
    ) -> Self {
        let threads = settings.threads.max(offload.callers());
        Self::start(store, PackSettings { threads, ..settings }, Some(offload))
    }

    fn start(
        store: Arc<dyn Store>,
        settings: PackSettings,
        offload: Option<Arc<dyn Offload>>,
    ) -> Self {
        let (work, queue) = unbounded();
        let adaptive = settings.adaptive();
        let storing = adaptive.as_ref().map(|adaptive| Arc::new(Storing::new(adaptive.clone())));
        let encoders = (0..settings.threads.max(1))
            .map(|at| {
                let encoder = Encoder {
                    blocks: settings.encoder(adaptive.as_ref()).offloaded(offload.clone()),
                    page_bytes: settings.page_bytes,
                    may_lend: settings.pool_bytes >= 4 * HELD_BYTES_MAX,
                    storing: storing.clone(),
                };
                let queue = queue.clone();
                std::thread::Builder::new()
                    .name(format!("sf-share-{at}"))
                    .spawn(move || {
                        keep_signals_away();
                        run_encoder(&queue, encoder);
                    })
                    .expect("a thread can be started")
            })
            .collect();
        Self { store, settings, work: Some(work), encoders }
    }

    /// Starts one checkpoint; a segment takes so many streams.
    pub fn begin(&self, segments: SegmentSettings, streams_max: usize) -> SharedBatch {
        let work = self.work.clone().expect("open until dropped");
        let (store, block_bytes) = (Arc::clone(&self.store), self.settings.block_bytes);
        let inner = Arc::default();
        SharedBatch { store, segments, streams_max, block_bytes, work, inner, sealed: false }
    }
}

impl Drop for SharedPacker {
    fn drop(&mut self) {
        self.work = None;
        for encoder in self.encoders.drain(..) {
            // An encoder that panicked has reported it; there is nobody else to tell.
            let _ = encoder.join();
        }
    }
}

/// The blocks of one checkpoint of several ranks.
#[must_use = "a checkpoint is durable only after its segments are sealed"]
pub struct SharedBatch {
    store: Arc<dyn Store>,
    segments: SegmentSettings,
    streams_max: usize,
    block_bytes: usize,
    work: Sender<Work>,
    inner: Arc<Inner>,
    sealed: bool,
}

impl SharedBatch {
    /// Checks that a block has the sizes it must have.
    pub fn check(&self, block: &Arrived) -> Result<()> {
        let pages = block.pages as usize;
        let bytes = pages * self.segments.page_bytes as usize;
        let fits = pages > 0 && bytes <= self.block_bytes && bytes <= (*block.data).as_ref().len();
        if fits && block.hashes.len() == pages * self.segments.hash.bytes() {
            return Ok(());
        }
        Err(Error::Mismatch { id: block.stream, why: "a block has not the size it must have" })
    }

    /// Takes a block on its way to a segment.
    pub fn push(&self, block: Arrived) -> Result<()> {
        self.check(&block)?;
        let mut state = self.inner.lock();
        let open = self.find_or_open(&mut state, &block)?;
        open.segment.check()?;
        state.in_flight += 1;
        drop(state);
        let work = Work { block, open, inner: Arc::clone(&self.inner) };
        self.work.send(work).map_err(|_| Error::Failed)
    }

    /// The segment of the block's stream, with the block entered.
    fn find_or_open(&self, state: &mut State, block: &Arrived) -> Result<Arc<Open>> {
        for open in &state.open {
            let mut streams = open.streams();
            let Some(stream) = streams.iter_mut().find(|stream| stream.id == block.stream) else {
                continue;
            };
            stream.enter(block)?;
            drop(streams);
            return Ok(Arc::clone(open));
        }
        let mut stream = Stream { id: block.stream, rank: block.rank, blocks: HashMap::new() };
        stream.enter(block)?;
        let room = state.open.iter().find(|open| open.streams().len() < self.streams_max);
        if let Some(open) = room {
            open.streams().push(stream);
            return Ok(Arc::clone(open));
        }
        let header = self.segments.header(block.stream);
        let segment = OpenSegment::new(Arc::clone(&self.store), header, block.rank, None);
        let open = Arc::new(Open { segment, streams: Mutex::new(vec![stream]) });
        state.open.push(Arc::clone(&open));
        Ok(open)
    }

    /// Waits for every block and seals every segment. One failure discards them all.
    pub fn seal(mut self) -> Result<Vec<SharedSegment>> {
        let state = self.inner.lock();
        let waited = self.inner.landed.wait_while(state, |state| state.in_flight > 0);
        let open = std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).open);
        let sealed: Result<Vec<SharedSegment>> = open.iter().map(|open| seal(open)).collect();
        if sealed.is_err() {
            open.iter().for_each(|open| open.segment.fail(Error::Failed));
        }
        self.sealed = true;
        sealed
    }
}

impl Drop for SharedBatch {
    /// A batch that is given up: its segments must not be finished by blocks still in flight.
    fn drop(&mut self) {
        if !self.sealed {
            let state = self.inner.lock();
            state.open.iter().for_each(|open| open.segment.fail(Error::Failed));
        }
    }
}

impl Stream {
    fn enter(&mut self, block: &Arrived) -> Result<()> {
        let mismatch = |why| Err(Error::Mismatch { id: self.id, why });
        if self.rank != block.rank {
            return mismatch("two ranks write to one stream");
        }
        let fresh = Entered { hashes: block.hashes.clone(), written: None };
        match self.blocks.insert(block.number, fresh) {
            None => Ok(()),
            Some(_) => mismatch("a block was sent twice"),
        }
    }
}

fn seal(open: &Open) -> Result<SharedSegment> {
    let streams = std::mem::take(&mut *open.streams());
    let (mut order, mut hashes) = (Vec::new(), Vec::new());
    let mut placed = Vec::with_capacity(streams.len());
    let mut slots = 0;
    open.segment.check()?;
    for stream in streams {
        let first_slot = slots;
        let mut compressed_bytes = 0;
        for number in 0..stream.blocks.len() as u32 {
            let block = stream.blocks.get(&number);
            let Some(Entered { hashes: of_block, written: Some((place, stored)) }) = block else {
                return Err(Error::Mismatch { id: stream.id, why: "a block is missing" });
            };
            order.push(*place);
            hashes.extend_from_slice(of_block);
            compressed_bytes += u64::from(*stored);
        }
        slots = (hashes.len() / open.segment.hash_bytes()) as u32;
        placed.push(Placed { stream: stream.id, rank: stream.rank, first_slot, compressed_bytes });
    }
    let sealed = open.segment.seal_ordered(Some(&order), &hashes)?;
    let sealed = sealed.expect("a stream has at least one block");
    Ok(SharedSegment { sealed, streams: placed })
}

/// What one thread needs to make stored blocks.
struct Encoder {
    blocks: BlockEncoder,
    page_bytes: usize,
    /// Whether the store may keep a buffer until it is written.
    may_lend: bool,
    /// Follows the store's speed, where that decides the codec.
    storing: Option<Arc<Storing>>,
}

fn run_encoder(queue: &Receiver<Work>, mut encoder: Encoder) {
    for Work { block, open, inner } in queue {
        // The buffer goes back (or on to the store) here, before the flight lands: whoever waits
        // for the flight may need it next. A panic fails its checkpoint, not the process.
        let encode = || encoder.encode(block, &open, queue.len());
        let encoded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(encode));
        if let Err(error) = encoded.unwrap_or(Err(Error::Panicked)) {
            open.segment.fail(error);
        }
        drop(open);
        inner.land();
    }
}

impl Encoder {
    fn encode(&mut self, block: Arrived, open: &Open, waiting: usize) -> Result<()> {
        let Arrived { stream, rank, number, pages, elem, data, .. } = block;
        let whole = (*data).as_ref();
        let ahead_bytes = waiting * whole.len();
        let raw = &whole[..pages as usize * self.page_bytes];
        self.blocks.set_rank(rank.0);
        let encoded = self.blocks.encode(raw, elem);
        let stored_bytes = encoded.bytes.len() as u32;
        let as_it_is = encoded.codec == CodecKind::None && encoded.bytes.len() == whole.len();
        let stored = match as_it_is && self.may_lend {
            true => Stored::Raw(data),
            false => Stored::Encoded(encoded),
        };
        let place = open.segment.append_next(pages, stored)?;
        if let Some(storing) = &self.storing {
            storing.observe(&open.segment.progress(ahead_bytes));
        }
        let mut streams = open.streams();
        let stream = streams.iter_mut().find(|other| other.id == stream);
        let entry = stream.and_then(|stream| stream.blocks.get_mut(&number));
        entry.expect("it was entered").written = Some((place, stored_bytes));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pipeline, SegmentReader};
    use standfast_format::{HashKind, JobId};
    use standfast_reduce::{BlockDecoder, FilterChoice, PageHasher};
    use standfast_store::MemoryStore;

    const PAGE: usize = 4096;

    fn packer() -> (Arc<dyn Store>, SharedPacker, SegmentSettings) {
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
        (Arc::clone(&store), SharedPacker::new(store, settings), segments)
    }

    fn page(rank: u8, number: u32) -> Vec<u8> {
        let mut page = vec![rank; PAGE];
        page[..4].copy_from_slice(&number.to_le_bytes());
        page
    }

    fn block(rank: u8, number: u32, first: u32, pages: u32) -> Arrived {
        let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
        let mut data = Vec::new();
        let mut hashes = Vec::new();
        for at in first..first + pages {
            let page = page(rank, at);
            let mut hash = [0; 16];
            hasher.hash(&page, &mut hash);
            hashes.extend_from_slice(&hash);
            data.extend_from_slice(&page);
        }
        let stream = SegmentId([rank; 16]);
        let rank = Rank(u32::from(rank));
        Arrived { stream, rank, number, pages, elem: 0, hashes, data: Box::new(data) }
    }

    #[test]
    fn interleaved_streams_come_back_in_order() {
        let (store, packer, segments) = packer();
        let batch = packer.begin(segments, 2);
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
        let (store, packer, segments) = packer();
        let missing = packer.begin(segments, 4);
        missing.push(block(1, 1, 0, 1)).unwrap();
        assert!(matches!(missing.seal(), Err(Error::Mismatch { .. })));
        let twice = packer.begin(segments, 4);
        twice.push(block(1, 0, 0, 1)).unwrap();
        assert!(matches!(twice.push(block(1, 0, 0, 1)), Err(Error::Mismatch { .. })));
        let stolen = Arrived { rank: Rank(9), ..block(1, 1, 0, 1) };
        assert!(matches!(twice.push(stolen), Err(Error::Mismatch { .. })));
        for wrong in [
            Arrived { pages: 0, ..block(1, 5, 0, 1) },
            Arrived { pages: 2, ..block(1, 5, 0, 1) },
            Arrived { pages: u32::MAX, ..block(1, 5, 0, 1) },
            Arrived { hashes: vec![0; 15], ..block(1, 5, 0, 1) },
        ] {
            assert!(matches!(twice.push(wrong), Err(Error::Mismatch { .. })));
        }
        drop(twice);
        assert!(store.list("").unwrap().is_empty());
    }
}
