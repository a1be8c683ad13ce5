//! The core of writing: threads that encode blocks and append them to segments.
//!
//! ```text
//! Segments::push -> queue -> encoder threads -> file of the segment -> store
//! ```
//! It lives as long as its process writes, in a rank or in the node's agent; [`Segments`] are of one
//! attempt. A unit that is stored as it is goes to the store without another copy.
//!
//! Invariants:
//! - A panic while encoding fails its checkpoint, not the process.
//! - Where blocks come from other processes, a page that is not what its hash says fails its checkpoint.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use standfast_format::{Block, CodecKind};
use standfast_reduce::{BlockEncoder, CodecSpec, Offload, PageHasher};
use standfast_store::{HELD_BYTES_MAX, Store};
use standfast_sys::keep_signals_away;

use crate::error::{Error, Result};
use crate::packer::PackSettings;
use crate::segment::{OpenSegment, SegmentSettings, Stored};
use crate::segments::{Flight, Segments};
use crate::sink::{Filled, Head};
use crate::speed::StoreSpeed;

/// The encoder threads, and the store they write to.
pub struct SegmentCore {
    store: Arc<dyn Store>,
    settings: PackSettings,
    /// Encodes in the caller's thread, where there are no others.
    in_turn: Option<Arc<Mutex<Encoder>>>,
    /// Open until dropped.
    work: Option<Sender<Work>>,
    encoders: Vec<JoinHandle<()>>,
    /// Whether hashes are compared with their pages.
    checks: bool,
}

/// A block for an encoder thread.
pub(crate) struct Work {
    pub(crate) block: Filled,
    pub(crate) flight: Flight,
}

impl SegmentCore {
    /// Starts the encoder threads; with another that encodes what it takes, as many threads as it
    /// likes ask it. The pool is the caller's; `pool_bytes` says how large it is.
    /// `hasher`: for blocks of other processes, whose hashes are compared with their bytes.
    pub fn start(
        store: Arc<dyn Store>,
        settings: PackSettings,
        offload: Option<Arc<dyn Offload>>,
        hasher: Option<PageHasher>,
    ) -> Arc<Self> {
        let callers = offload.as_ref().map_or(0, |offload| offload.callers());
        let settings = PackSettings { threads: settings.threads.max(callers), ..settings };
        let adaptive = settings.adaptive();
        let speed = adaptive
            .as_ref()
            .map(|adaptive| Arc::new(StoreSpeed::new(adaptive.clone(), settings.pool_bytes)));
        let encoder = || {
            let blocks = settings.encoder(adaptive.as_ref()).offloaded(offload.clone());
            let hasher = hasher.clone();
            Encoder { hasher, ..Encoder::new(&settings, blocks, speed.clone()) }
        };
        let (work, queue) = unbounded();
        let start = |at| {
            let (encoder, queue) = (encoder(), queue.clone());
            std::thread::Builder::new()
                .name(format!("sf-encode-{at}"))
                .spawn(move || {
                    keep_signals_away();
                    run_encoder(&queue, encoder);
                })
                .ok()
        };
        // Where threads are short, fewer do; without any, the caller's own encodes.
        let encoders: Vec<JoinHandle<()>> = (0..settings.encoders()).map_while(start).collect();
        let in_turn = encoders.is_empty().then(|| Arc::new(Mutex::new(encoder())));
        let checks = hasher.is_some();
        let work = Some(work);
        Arc::new(Self { store, in_turn, work, encoders, settings, checks })
    }

    /// Whether encoder threads run: only then can blocks be pushed.
    pub fn has_encoders(&self) -> bool {
        !self.encoders.is_empty()
    }

    /// Starts one attempt; so many streams share a segment.
    pub fn begin(self: &Arc<Self>, of: SegmentSettings, streams_max: usize) -> Segments {
        Segments::new(Arc::clone(self), of, streams_max)
    }

    pub(crate) fn settings(&self) -> &PackSettings {
        &self.settings
    }

    pub(crate) fn checks(&self) -> bool {
        self.checks
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The encoder for the caller's thread, where there are no encoder threads.
    pub(crate) fn in_turn(&self) -> Option<&Arc<Mutex<Encoder>>> {
        self.in_turn.as_ref()
    }

    pub(crate) fn send(&self, work: Work) -> Result<()> {
        let queue = self.work.as_ref().ok_or(Error::Failed)?;
        queue.send(work).map_err(|_| Error::Failed)
    }

    /// A new segment, for a stream that begins with this block.
    pub(crate) fn open(&self, of: &SegmentSettings, first: &Head) -> Arc<OpenSegment> {
        let (store, header) = (Arc::clone(&self.store), of.header(first.stream));
        Arc::new(OpenSegment::new(store, header, first.rank, first.size_hint))
    }
}

impl Drop for SegmentCore {
    fn drop(&mut self) {
        self.work = None;
        for encoder in self.encoders.drain(..) {
            // An encoder that panicked has reported it; there is nobody else to tell.
            let _ = encoder.join();
        }
    }
}

fn run_encoder(queue: &Receiver<Work>, mut encoder: Encoder) {
    for Work { block, mut flight } in queue {
        // The unit goes back (or on to the store) here, before the flight lands: whoever waits for
        // the flight may need it next.
        encoder.run(block, &mut flight, queue.len());
    }
}

/// The store is looked at after so many raw bytes.
const OBSERVE_BYTES: usize = 64 << 10;

/// Makes stored blocks and appends them to their segment.
pub(crate) struct Encoder {
    blocks: BlockEncoder,
    page_bytes: usize,
    /// Whether the store may keep a unit until it is written: only a pool that is larger than what a
    /// store holds back may lend.
    may_lend: bool,
    /// Follows the speed of the store, where that decides the codec.
    speed: Option<Arc<StoreSpeed>>,
    unobserved_bytes: usize,
    /// Compares pages with their hashes, where those come from other processes.
    hasher: Option<PageHasher>,
}

impl Encoder {
    fn new(settings: &PackSettings, blocks: BlockEncoder, speed: Option<Arc<StoreSpeed>>) -> Self {
        let may_lend = settings.pool_bytes >= 4 * HELD_BYTES_MAX;
        let (page_bytes, unobserved_bytes) = (settings.page_bytes, 0);
        Self { blocks, page_bytes, may_lend, speed, unobserved_bytes, hasher: None }
    }

    /// Stores blocks as they are.
    pub(crate) fn raw(settings: &PackSettings) -> Self {
        let blocks = BlockEncoder::new(CodecSpec::NONE, settings.filter, settings.block_bytes);
        Self::new(settings, blocks, None)
    }

    /// Encodes and appends a block, while so many others wait.
    pub(crate) fn run(&mut self, block: Filled, flight: &mut Flight, waiting: usize) {
        let encode = || self.encode(block, &flight.file, waiting);
        let encoded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(encode));
        flight.outcome = encoded.unwrap_or(Err(Error::Panicked));
    }

    fn check(&self, raw: &[u8], head: &Head) -> Result<()> {
        let Some(hasher) = &self.hasher else { return Ok(()) };
        let mut hashes = vec![0; head.hashes.len()];
        hasher.hash_pages(raw, self.page_bytes, &mut hashes);
        match hashes == head.hashes {
            true => Ok(()),
            false => {
                Err(Error::Mismatch { id: head.stream, why: "a page is not what its hash says" })
            }
        }
    }

    fn encode(&mut self, block: Filled, file: &OpenSegment, waiting: usize) -> Result<Block> {
        let Filled { head, unit } = block;
        let (ahead_bytes, unit_bytes) = (waiting * unit.len(), unit.len());
        let raw = &unit[..head.pages as usize * self.page_bytes];
        self.check(raw, &head)?;
        self.unobserved_bytes += raw.len();
        self.blocks.set_rank(head.rank.0);
        let encoded = self.blocks.encode(raw, head.elem);
        let as_it_is = encoded.codec == CodecKind::None && encoded.bytes.len() == unit_bytes;
        let stored = match as_it_is && self.may_lend {
            true => Stored::Raw(Box::new(unit)),
            false => Stored::Encoded(encoded),
        };
        let written = file.append(head.pages, stored)?;
        if let Some(speed) = &self.speed
            && self.unobserved_bytes >= OBSERVE_BYTES
        {
            self.unobserved_bytes = 0;
            speed.observe(&file.progress(ahead_bytes));
        }
        Ok(written)
    }
}
