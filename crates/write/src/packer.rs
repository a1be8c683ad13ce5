//! The packer: unique pages in, sealed segments out, while the program goes on.
//!
//! ```text
//! push (program's thread)  -> block in the pool -> encoder threads -> open segment -> store
//!                             (or the same thread, where the stages take turns)
//! finish (program's thread) -> Pending -> seal (commit thread): waits, writes indexes, seals
//! ```
//! The program's thread copies pages into blocks and hashes the *copy*: a hash of the program's
//! memory alone would not tell of a thread that writes between hashing and copying, and would make
//! a checkpoint nobody can restore. Right after the copy the page is in the nearest cache, where
//! hashing costs least. Encoders compress blocks and append them to their segment.
//!
//! Invariants:
//! - Slots are dense: blocks are numbered and filled one after another, by one thread.
//! - At most the pool's buffers are in flight; `push` waits for a free one.
//! - [`Pending::seal`] returns only when no encoder works for this checkpoint any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use standfast_format::{CodecKind, HASH_BYTES_MAX, SegmentId};
use standfast_reduce::{
    Adaptive, BlockEncoder, CodecChoice, Encoded, FilterChoice, Offload, PageHasher,
};
use standfast_store::{HELD_BYTES_MAX, Store};
use standfast_sys::keep_signals_away;

use crate::error::{Error, Result};
use crate::inline::{Inline, Writing};
use crate::pipeline::{Collecting, Occupancy, Pipeline};
use crate::pool::{Pool, PoolBuf};
use crate::segment::{OpenSegment, SealedSegment, SegmentSettings, Stored};
use crate::storing::Storing;

/// How blocks are made.
#[derive(Clone, Debug)]
pub struct PackSettings {
    /// Bytes of all pool buffers together.
    pub pool_bytes: usize,
    /// Bytes of one block before compression; a multiple of the page size.
    pub block_bytes: usize,
    /// Size of a page.
    pub page_bytes: usize,
    /// Whether collecting, compressing and storing overlap.
    pub pipeline: Pipeline,
    /// Compression threads.
    pub threads: usize,
    /// How to compress.
    pub codec: CodecChoice,
    /// What to do before compressing.
    pub filter: FilterChoice,
}

/// The pool and the encoder threads of one process.
pub struct Packer {
    store: Arc<dyn Store>,
    settings: PackSettings,
    hasher: PageHasher,
    pool: Pool,
    /// What the encoders know together, where they choose the codec.
    adaptive: Option<Arc<Adaptive>>,
    /// Encodes in the caller's thread, where there are no others.
    own: Option<Mutex<Encoder>>,
    work: Option<Sender<Work>>,
    encoders: Vec<JoinHandle<()>>,
    warming: Option<Warming>,
}

/// A thread that makes memory ready, and how much of it.
struct Warming {
    bytes: usize,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Warming {
    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        // Nothing depends on it.
        let _ = self.thread.join();
    }
}

struct Work {
    block: Filling,
    number: u32,
    segment: Arc<OpenSegment>,
    flight: Flight,
}

/// So many full blocks wake the encoders together: woken for every single one, they would change
/// places with the thread that fills the next. Less than this, where the pool is small.
const TOGETHER: usize = 4;
/// What is protected grows region by region: it is made ready for whole steps of this.
const WARM_STEP: usize = 8 << 20;

/// Counts the blocks of one checkpoint that are on their way.
#[derive(Clone, Default)]
struct Flight(Arc<(Mutex<usize>, Condvar)>);

impl Flight {
    fn start(&self) {
        *self.0.0.lock().expect("counting does not panic") += 1;
    }

    fn land(&self) {
        let mut count = self.0.0.lock().expect("counting does not panic");
        *count -= 1;
        if *count == 0 {
            self.0.1.notify_all();
        }
    }

    fn wait(&self) {
        let count = self.0.0.lock().expect("counting does not panic");
        drop(self.0.1.wait_while(count, |count| *count > 0).expect("counting does not panic"));
    }
}

/// A block being filled.
pub(crate) struct Filling {
    pub(crate) buf: PoolBuf,
    pub(crate) pages: usize,
    elem: u8,
    /// Whether the store may keep the buffer until it is written: only a pool that is larger
    /// than what a store holds back may lend.
    pub(crate) may_lend: bool,
}

impl Packer {
    /// Starts the encoder threads.
    pub fn new(store: Arc<dyn Store>, settings: PackSettings, hasher: PageHasher) -> Self {
        Self::start(store, settings, hasher, None)
    }

    /// The same, with another that encodes what it takes: as many threads as it likes ask it.
    pub fn offloaded(
        store: Arc<dyn Store>,
        settings: PackSettings,
        hasher: PageHasher,
        offload: Arc<dyn Offload>,
    ) -> Self {
        let threads = settings.threads.max(offload.callers());
        Self::start(store, PackSettings { threads, ..settings }, hasher, Some(offload))
    }

    fn start(
        store: Arc<dyn Store>,
        settings: PackSettings,
        hasher: PageHasher,
        offload: Option<Arc<dyn Offload>>,
    ) -> Self {
        let buffers = (settings.pool_bytes / settings.block_bytes).max(2);
        let pool = Pool::new(buffers, settings.block_bytes);
        let (work, queue) = unbounded();
        let adaptive = settings.adaptive();
        let storing = adaptive.as_ref().map(|adaptive| Arc::new(Storing::new(adaptive.clone())));
        let encoder = || Encoder {
            blocks: settings.encoder(adaptive.as_ref()).offloaded(offload.clone()),
            page_bytes: settings.page_bytes,
            storing: storing.clone(),
            unobserved_bytes: 0,
        };
        let encoders = (0..settings.encoders())
            .map(|at| {
                let (encoder, queue) = (encoder(), queue.clone());
                std::thread::Builder::new()
                    .name(format!("sf-encode-{at}"))
                    .spawn(move || {
                        keep_signals_away();
                        run_encoder(&queue, encoder);
                    })
                    .expect("a thread can be started")
            })
            .collect();
        let own = (settings.encoders() == 0).then(|| Mutex::new(encoder()));
        let (work, warming) = (Some(work), None);
        Self { store, settings, hasher, pool, adaptive, own, work, encoders, warming }
    }

    /// Makes ready, beside the program, what a first checkpoint of so many bytes needs.
    pub fn warm(&mut self, bytes: usize) {
        let bytes = bytes.min(self.settings.pool_bytes) / WARM_STEP * WARM_STEP;
        if bytes <= self.warming.as_ref().map_or(0, |warming| warming.bytes) {
            return;
        }
        self.warming.take().into_iter().for_each(Warming::stop);
        let (store, pool) = (Arc::clone(&self.store), self.pool.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let warm = move || {
            keep_signals_away();
            store.prepare();
            pool.warm(bytes, &stopped);
        };
        let thread = std::thread::Builder::new().name("sf-warm".into()).spawn(warm);
        // Without it everything goes on, a little later.
        self.warming = thread.ok().map(|thread| Warming { bytes, stop, thread });
    }

    /// Waits until everything is ready that was to be made so.
    pub fn wait_warm(&mut self) {
        if let Some(Warming { thread, .. }) = self.warming.take() {
            // Nothing depends on it.
            let _ = thread.join();
        }
    }

    /// How many buffers are in which state.
    pub fn occupancy(&self) -> Occupancy {
        let (empty, ready) = (self.pool.empty(), self.queue().len());
        Occupancy { empty, ready, busy: self.pool.buffers().saturating_sub(empty + ready) }
    }

    /// Starts one checkpoint, written behind the program's back.
    pub fn begin(&self, segments: SegmentSettings) -> Batch<'_> {
        self.begin_as(segments, Writing::Behind)
    }

    /// Starts one checkpoint, written in this way.
    pub fn begin_as(&self, segments: SegmentSettings, writing: Writing) -> Batch<'_> {
        let held_max = self.settings.pool_bytes / self.settings.block_bytes / 2;
        Batch {
            inline: Inline::new(writing, self.settings.page_bytes, held_max),
            packer: self,
            segments,
            current: None,
            closed: Vec::new(),
            filling: None,
            full: Vec::new(),
            together: TOGETHER.min(self.pool.buffers() / 8).max(1),
            flight: Flight::default(),
            collecting: self.adaptive.clone().map(Collecting::new),
        }
    }

    fn queue(&self) -> &Sender<Work> {
        self.work.as_ref().expect("the queue lives as long as the packer")
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        self.work = None;
        self.warming.take().into_iter().for_each(Warming::stop);
        for encoder in self.encoders.drain(..) {
            // An encoder that panicked has reported it; there is nobody else to tell.
            let _ = encoder.join();
        }
    }
}

struct Current {
    segment: Arc<OpenSegment>,
    blocks: u32,
    slots: u32,
}

/// The pages of one checkpoint on their way into segments.
pub struct Batch<'a> {
    packer: &'a Packer,
    segments: SegmentSettings,
    current: Option<Current>,
    closed: Vec<(Arc<OpenSegment>, Arc<Vec<u8>>)>,
    filling: Option<Filling>,
    /// Full blocks that wait for company, as many at most.
    full: Vec<Work>,
    together: usize,
    flight: Flight,
    collecting: Option<Collecting>,
    /// Writes in the program's own time, where asked for.
    inline: Option<Inline>,
}

impl Batch<'_> {
    /// Starts a segment; pages go there until it is closed.
    pub fn open_segment(&mut self, id: SegmentId, size_hint: Option<u64>) {
        assert!(self.current.is_none(), "one segment is open at a time");
        let store = Arc::clone(&self.packer.store);
        let (header, rank) = (self.segments.header(id), self.segments.rank);
        let segment = Arc::new(OpenSegment::new(store, header, rank, size_hint));
        self.current = Some(Current { segment, blocks: 0, slots: 0 });
    }

    /// Pages in the open segment; `None` if no segment is open.
    pub fn slots(&self) -> Option<u32> {
        self.current.as_ref().map(|current| current.slots)
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
        self.keep_staged();
        Ok(())
    }

    /// Copies a page to where the next slot's page goes, and hashes the copy. It becomes the slot
    /// with [`Batch::keep_staged`]; otherwise the next page takes its place. A page at the end of
    /// a region may be shorter; it is filled up with zeros.
    pub fn stage(&mut self, page: &[u8], elem: u8, hash: &mut [u8]) -> Result<()> {
        if self.filling.as_ref().is_some_and(|filling| filling.elem != elem) {
            self.dispatch();
        }
        let page_bytes = self.packer.settings.page_bytes;
        let filling = match &mut self.filling {
            Some(filling) => filling,
            None => {
                self.current.as_ref().expect("a segment is open").segment.check()?;
                let may_lend = self.packer.settings.pool_bytes >= 4 * HELD_BYTES_MAX;
                let buf = self.take_buffer();
                self.filling.insert(Filling { buf, pages: 0, elem, may_lend })
            }
        };
        let slot = &mut filling.buf[filling.pages * page_bytes..][..page_bytes];
        slot[..page.len()].copy_from_slice(page);
        slot[page.len()..].fill(0);
        self.packer.hasher.hash(slot, hash);
        Ok(())
    }

    /// A buffer of the pool. Before it waits for one, every full block is on its way: they are
    /// what it waits for.
    fn take_buffer(&mut self) -> PoolBuf {
        let pool = &self.packer.pool;
        if let Some(buf) = pool.try_take() {
            return buf;
        }
        self.send_full();
        pool.take()
    }

    /// Makes the page staged last the next slot of the open segment.
    pub fn keep_staged(&mut self) {
        let filling = self.filling.as_mut().expect("a page is staged");
        filling.pages += 1;
        if let Some(inline) = &mut self.inline {
            inline.page_kept();
        }
        let full = (filling.pages + 1) * self.packer.settings.page_bytes > filling.buf.len();
        self.current.as_mut().expect("a segment is open").slots += 1;
        if full {
            self.dispatch();
        }
    }

    /// Makes a block that was encoded elsewhere the next slots of the open segment.
    pub fn push_block(&mut self, pages: u32, encoded: Encoded<'_>) -> Result<()> {
        self.dispatch();
        let current = self.current.as_mut().expect("a segment is open");
        current.segment.append(current.blocks, pages, Stored::Encoded(encoded))?;
        current.blocks += 1;
        current.slots += pages;
        Ok(())
    }

    /// Ends a piece: what comes next does not follow in the program's memory. Matters only to
    /// checkpoints that are written as pieces come.
    pub fn end_piece(&mut self) {
        let Some(inline) = &mut self.inline else { return };
        if inline.piece_goes_out() {
            self.dispatch();
        }
        if let (Some(inline), Some(current)) = (&mut self.inline, &self.current) {
            inline.end_piece(&current.segment);
        }
    }

    /// Ends the open segment, whose pages have these hashes.
    pub fn close_segment(&mut self, hashes: Arc<Vec<u8>>) {
        self.end_piece();
        self.dispatch();
        self.send_full();
        let current = self.current.take().expect("a segment is open");
        if let Some(inline) = &mut self.inline {
            inline.write_held(&current.segment);
        }
        assert_eq!(
            hashes.len(),
            current.slots as usize * self.segments.hash.bytes(),
            "one hash per slot"
        );
        self.closed.push((current.segment, hashes));
    }

    /// Ends the checkpoint: everything is in the pool or beyond, the program may go on.
    pub fn finish(mut self) -> Pending {
        assert!(self.current.is_none(), "segments are closed first");
        Pending {
            segments: std::mem::take(&mut self.closed),
            flights: vec![self.flight.clone()],
            hash_bytes: self.segments.hash.bytes(),
        }
    }

    fn dispatch(&mut self) {
        // A page may be staged and not kept: a block without pages goes nowhere.
        let Some(block) = self.filling.take().filter(|block| block.pages > 0) else { return };
        let current = self.current.as_mut().expect("a block belongs to the open segment");
        let number = current.blocks;
        current.blocks += 1;
        let segment = Arc::clone(&current.segment);
        let bytes = block.pages * self.packer.settings.page_bytes;
        if let Some(collecting) = &mut self.collecting {
            collecting.collected(bytes);
        }
        if let Some(inline) = &mut self.inline {
            inline.take(block, number, &segment);
            return;
        }
        let Some(own) = &self.packer.own else {
            self.full.push(Work { block, number, segment, flight: self.flight.clone() });
            if self.full.len() >= self.together {
                self.send_full();
            }
            return;
        };
        own.lock().unwrap_or_else(PoisonError::into_inner).run(block, number, &segment, 0);
        // Nothing is collected or compressed while something is on its way to the medium.
        segment.settle();
    }

    /// Hands the full blocks to the encoders.
    fn send_full(&mut self) {
        for work in self.full.drain(..) {
            work.flight.start();
            self.packer.queue().send(work).expect("encoders live as long as the packer");
        }
    }
}

impl Drop for Batch<'_> {
    /// A batch that is given up: its segments must not be finished by blocks still in flight.
    fn drop(&mut self) {
        if let Some(current) = self.current.take() {
            current.segment.fail(Error::Failed);
        }
        for (segment, _) in self.closed.drain(..) {
            segment.fail(Error::Failed);
        }
    }
}

/// Segments whose pages are captured but not yet durable.
#[must_use = "a checkpoint is durable only after its segments are sealed"]
pub struct Pending {
    segments: Vec<(Arc<OpenSegment>, Arc<Vec<u8>>)>,
    flights: Vec<Flight>,
    hash_bytes: usize,
}

impl Pending {
    /// The segments in question.
    pub fn ids(&self) -> impl Iterator<Item = SegmentId> {
        self.segments.iter().map(|(segment, _)| segment.id())
    }

    /// Waits for every block and seals every segment. One failure discards them all.
    pub fn seal(self) -> Result<Vec<SealedSegment>> {
        self.flights.iter().for_each(Flight::wait);
        let sealed: Result<Vec<Option<SealedSegment>>> =
            self.segments.iter().map(|(segment, hashes)| segment.seal(hashes)).collect();
        match sealed {
            Ok(sealed) => Ok(sealed.into_iter().flatten().collect()),
            Err(error) => {
                self.segments.iter().for_each(|(segment, _)| segment.fail(Error::Failed));
                Err(error)
            }
        }
    }

    /// Takes in the segments of another part of the same checkpoint.
    pub fn join(&mut self, other: Pending) {
        self.segments.extend(other.segments);
        self.flights.extend(other.flights);
    }

    /// Pages in question.
    pub fn pages(&self) -> u64 {
        let bytes: usize = self.segments.iter().map(|(_, hashes)| hashes.len()).sum();
        (bytes / self.hash_bytes) as u64
    }
}

fn run_encoder(queue: &Receiver<Work>, mut encoder: Encoder) {
    for Work { block, number, segment, flight } in queue {
        // The buffer goes back (or on to the store) here: before the flight lands, for whoever
        // waits for the flight may need it next.
        encoder.run(block, number, &segment, queue.len());
        drop(segment);
        flight.land();
    }
}

/// The store is looked at after so many raw bytes.
const OBSERVE_BYTES: usize = 64 << 10;

/// Makes stored blocks and appends them to their segment.
struct Encoder {
    blocks: BlockEncoder,
    page_bytes: usize,
    /// Follows the store's speed, where that decides the codec.
    storing: Option<Arc<Storing>>,
    unobserved_bytes: usize,
}

impl Encoder {
    /// Encodes and appends a block, while so many others wait. A panic fails its checkpoint, not
    /// the program.
    fn run(&mut self, block: Filling, number: u32, segment: &OpenSegment, waiting: usize) {
        let encode = || self.encode(block, number, segment, waiting);
        let encoded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(encode));
        if let Err(error) = encoded.unwrap_or(Err(Error::Panicked)) {
            segment.fail(error);
        }
    }

    fn encode(
        &mut self,
        block: Filling,
        number: u32,
        segment: &OpenSegment,
        waiting: usize,
    ) -> Result<()> {
        let ahead_bytes = waiting * block.buf.len();
        let pages = block.pages as u32;
        let raw = &block.buf[..block.pages * self.page_bytes];
        self.unobserved_bytes += raw.len();
        let encoded = self.blocks.encode(raw, block.elem);
        let as_it_is = encoded.codec == CodecKind::None && encoded.bytes.len() == block.buf.len();
        let stored = match as_it_is && block.may_lend {
            true => Stored::Raw(Box::new(block.buf)),
            false => Stored::Encoded(encoded),
        };
        segment.append(number, pages, stored)?;
        if let Some(storing) = &self.storing
            && self.unobserved_bytes >= OBSERVE_BYTES
        {
            self.unobserved_bytes = 0;
            storing.observe(&segment.progress(ahead_bytes));
        }
        Ok(())
    }
}
