//! The packer: what a process needs to write its own pages, from checkpoint to checkpoint.
//!
//! ```text
//! Batch (program's thread) -> block in the pool -> encoder threads -> segments -> store
//!                             (or the same thread, where the stages take turns)
//! ```

use std::sync::{Arc, Mutex};

use standfast_reduce::{CodecChoice, FilterChoice, Offload, PageHasher};
use standfast_store::Store;
use standfast_sys::Warming;

use crate::batch::Batch;
use crate::encode::{Encoder, SegmentCore};
use crate::inside::{Behind, InTurn, Writing};
use crate::pipeline::Pipeline;
use crate::pool::Pool;
use crate::segment::SegmentSettings;
use crate::sink::SegmentSink;

/// What is protected grows region by region: it is made ready for whole steps of this.
const WARM_STEP: usize = 8 << 20;

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
    core: Arc<SegmentCore>,
    hasher: PageHasher,
    pool: Pool,
    warming: Option<Warming>,
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
        Self::start(store, settings, hasher, Some(offload))
    }

    fn start(
        store: Arc<dyn Store>,
        settings: PackSettings,
        hasher: PageHasher,
        offload: Option<Arc<dyn Offload>>,
    ) -> Self {
        let buffers = (settings.pool_bytes / settings.block_bytes).max(2);
        let pool = Pool::new(buffers, settings.block_bytes);
        let core = SegmentCore::start(store, settings, offload, None);
        Self { core, hasher, pool, warming: None }
    }

    /// Makes ready, beside the program, what a first checkpoint of so many bytes needs.
    pub fn warm(&mut self, bytes: usize) {
        let bytes = bytes.min(self.core.settings().pool_bytes) / WARM_STEP * WARM_STEP;
        if bytes <= self.warming.as_ref().map_or(0, Warming::bytes) {
            return;
        }
        self.warming = None;
        let (store, pool) = (Arc::clone(self.core.store()), self.pool.clone());
        self.warming = Some(Warming::start(bytes, move |stop| {
            store.prepare();
            pool.warm(bytes, stop);
        }));
    }

    /// Waits until everything is ready that was to be made so.
    pub fn wait_warm(&mut self) {
        self.warming.iter_mut().for_each(Warming::wait);
    }

    /// Units that are being filled, wait for an encoder, are compressed, or are lent to the store.
    pub fn units_in_use(&self) -> usize {
        self.pool.buffers() - self.pool.empty()
    }

    /// Starts one checkpoint, written while the program runs.
    pub fn begin(&self, segments: SegmentSettings) -> Batch {
        self.begin_as(segments, Writing::Behind)
    }

    /// Starts one checkpoint, written in this way.
    pub fn begin_as(&self, of: SegmentSettings, writing: Writing) -> Batch {
        let (segments, pool) = (self.core.begin(of, 1), self.pool.clone());
        let settings = self.core.settings();
        let page_bytes = settings.page_bytes;
        let raw = || Arc::new(Mutex::new(Encoder::raw(settings)));
        let in_turn = match (writing, self.core.in_turn()) {
            (Writing::Behind, None) => None,
            (Writing::Behind, Some(encoder)) => Some((Arc::clone(encoder), None)),
            (Writing::Direct, _) => Some((raw(), Some(0))),
            (Writing::Wag { threshold_bytes }, _) => Some((raw(), Some(threshold_bytes))),
        };
        let sink: Box<dyn SegmentSink> = match in_turn {
            None => Box::new(Behind { segments, pool, full: Vec::new() }),
            Some((encoder, piece_bytes_min)) => {
                let (held, file) = (Vec::new(), None);
                Box::new(InTurn { segments, pool, encoder, piece_bytes_min, held, file })
            }
        };
        Batch::new(sink, of.rank, self.hasher.clone(), page_bytes)
    }
}
