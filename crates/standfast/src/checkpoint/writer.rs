//! Who writes what is captured: this process's own packer, or the node's agent.
//!
//! Data: settings -> [`Writer`] -> [`Storing`] for the pages of one checkpoint.
//!
//! With `pipeline = gpu` blocks of host memory are compressed on a device. Without a usable one
//! everything goes on as with `pipelined`, and the report says why.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_capture::Regions;
use standfast_gpu::broker::{BLOCK_BYTES, Broker};
use standfast_reduce::Catalog;
use standfast_write::{PackSettings, Packer, Pipeline, SegmentSettings, Writing};

use super::draft::Order;
use super::handing::Agency;
use super::remembered::Env;
use super::storing::Storing;
use crate::config::{Config, Write};

/// Less than this is taken so fast that nothing needs to be ready for it.
const WARM_BYTES_MIN: u64 = 16 << 20;

/// Where captured pages go.
#[derive(Default)]
pub(crate) struct Writer {
    pub(super) agency: Agency,
    /// Made with the first checkpoint: a program that only restarts needs no pool.
    packer: Option<Packer>,
    /// What the device that compresses blocks had to say.
    gpu_notes: Arc<Mutex<Vec<String>>>,
}

impl Writer {
    /// Whether the node's agent is used; the same on all ranks.
    pub(super) fn has_agent(&self) -> bool {
        self.agency.link.is_some()
    }

    /// Makes ready for a checkpoint.
    pub(super) fn prepare(&mut self, env: &Env) {
        if !self.has_agent() {
            self.packer(env);
        }
    }

    /// Makes ready what a first checkpoint of so many bytes needs, beside the program: where it is
    /// written from host memory alone.
    pub(crate) fn warm(&mut self, env: &Env, bytes: u64) {
        // Who writes piece by piece fills one buffer again and again.
        let needs_none = env.config.write == Write::Direct || env.config.pipeline == Pipeline::Gpu;
        if bytes < WARM_BYTES_MIN || needs_none {
            return;
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match &self.agency.link {
            Some(link) => link.warm(bytes, self.agency.ranks),
            None => self.packer(env).warm(bytes),
        }
    }

    /// What the device that compresses blocks had to say since.
    pub(super) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut lock(&self.gpu_notes))
    }

    fn packer(&mut self, env: &Env) -> &mut Packer {
        let notes = &self.gpu_notes;
        self.packer.get_or_insert_with(|| start_packer(env, notes))
    }

    /// Begins to store pages of a checkpoint; `expected_bytes` of them, as far as anybody knows.
    pub(super) fn begin<'a>(
        &'a mut self,
        env: &Env,
        catalog: &'a mut Catalog,
        (regions, order): (&Regions, Order),
        expected_bytes: u64,
    ) -> Storing<'a> {
        let config = &env.config;
        let segment_bytes = self.segment_bytes(config);
        let Self { agency, packer, gpu_notes } = self;
        let batch = match &agency.link {
            Some(link) => link.batch(order),
            None => {
                let settings = SegmentSettings {
                    job: env.header.id,
                    rank: env.rank,
                    hash: config.hash,
                    page_bytes: config.page.0 as u32,
                    created_ns: order.taken_ns,
                };
                let packer = packer.get_or_insert_with(|| start_packer(env, gpu_notes));
                packer.begin_as(settings, writing(config))
            }
        };
        Storing {
            elements: regions.iter().map(|region| region.elem()).collect(),
            catalog,
            batch,
            last: None,
            mode: config.mode,
            page_bytes: config.page.0 as usize,
            slots_max: (segment_bytes / config.page.0) as u32,
            segment_bytes,
            expected_bytes,
            begun: Vec::new(),
        }
    }

    /// Bytes of pages that a segment takes.
    pub(super) fn segment_bytes(&self, config: &Config) -> u64 {
        // A segment of the agent's holds a stream of every rank of its node.
        let streams = if self.has_agent() { self.agency.ranks as u64 } else { 1 };
        (config.segment.0 / streams).max(config.block.0)
    }
}

/// A packer whose blocks go to a device, if that is asked for and there is one.
fn start_packer(env: &Env, notes: &Arc<Mutex<Vec<String>>>) -> Packer {
    let config = &env.config;
    let settings = PackSettings {
        pool_bytes: config.pool.0 as usize,
        block_bytes: config.block.0 as usize,
        page_bytes: config.page.0 as usize,
        pipeline: config.pipeline,
        threads: config.threads(),
        codec: config.codec,
        filter: config.filter,
    };
    let (store, hasher) = (Arc::clone(&env.store), env.hasher.clone());
    if settings.pipeline != Pipeline::Gpu {
        return Packer::new(store, settings, hasher);
    }
    let notes = Arc::clone(notes);
    match Broker::open(move |note| lock(&notes).push(note)) {
        Some(broker) => {
            let block_bytes = BLOCK_BYTES.max(settings.page_bytes);
            let settings = PackSettings { block_bytes, ..settings };
            Packer::offloaded(store, settings, hasher, Arc::new(broker))
        }
        None => Packer::new(store, settings, hasher),
    }
}

fn lock(notes: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When this process writes what it captures.
fn writing(config: &Config) -> Writing {
    match config.write {
        Write::Direct => Writing::Direct,
        Write::Wag => Writing::Wag { threshold_bytes: config.wag_threshold.0 as usize },
        Write::Pool | Write::WagDbi => Writing::Behind,
    }
}
