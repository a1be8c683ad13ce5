//! Who writes what is captured: this process's own packer, or the node's agent.
//!
//! Data: settings -> [`PageWriter`] -> [`Storing`] for the pages of one checkpoint.
//!
//! With `pipeline = gpu` blocks of host memory are compressed on a device. Without a usable one
//! everything goes on as with `pipelined`, and the report says why.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_capture::Regions;
use standfast_checkpoint::Order;
use standfast_gpu::gpu_queue::{BLOCK_BYTES, GpuQueue};
use standfast_reduce::Catalog;
use standfast_write::{PackSettings, Packer, Pipeline, SegmentSettings, Writing};

use crate::agent_commit::AgentState;
use crate::remembered::Env;
use crate::settings::TakeSettings;
use crate::storing::Storing;

/// What is protected makes at least so many segments, unless they would be smaller than the least.
const SEGMENTS_LEAST: u64 = 16;
const SEGMENT_BYTES_MIN: u64 = 4 << 20;

/// Where captured pages go.
#[derive(Default)]
pub(crate) struct PageWriter {
    pub(crate) agent: AgentState,
    /// Made with the first checkpoint: a program that only restarts needs no pool.
    packer: Option<Packer>,
    /// What the device that compresses blocks had to say.
    gpu_notes: Arc<Mutex<Vec<String>>>,
}

impl PageWriter {
    /// Whether the node's agent is used; the same on all ranks.
    pub(crate) fn has_agent(&self) -> bool {
        self.agent.link.is_some()
    }

    /// Makes ready for a checkpoint.
    pub(crate) fn prepare(&mut self, env: &Env) {
        if !self.has_agent() {
            self.packer(env);
        }
    }

    /// Makes ready what a first checkpoint of so many bytes needs, beside the program: where it is
    /// written from host memory alone.
    pub(crate) fn warm(&mut self, env: &Env, bytes: u64) {
        // Who writes piece by piece fills one buffer again and again.
        let TakeSettings { writing, pack, .. } = &env.settings;
        let needs_none = *writing == Writing::Direct || pack.pipeline == Pipeline::Gpu;
        if needs_none {
            return;
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match &self.agent.link {
            Some(link) => link.warm(bytes, self.agent.ranks),
            None => self.packer(env).warm(bytes),
        }
    }

    /// What the device that compresses blocks had to say since.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut lock(&self.gpu_notes))
    }

    fn packer(&mut self, env: &Env) -> &mut Packer {
        let notes = &self.gpu_notes;
        self.packer.get_or_insert_with(|| start_packer(env, notes))
    }

    /// Begins to store pages of a checkpoint; `expected_bytes` of them, as far as anybody knows.
    pub(crate) fn begin<'a>(
        &'a mut self,
        env: &Env,
        catalog: &'a mut Catalog,
        (regions, order): (&Regions, Order),
        expected_bytes: u64,
    ) -> Storing<'a> {
        let settings = &env.settings;
        let segment_bytes = self.segment_bytes(settings, regions.bytes());
        let page_bytes = settings.pack.page_bytes;
        let Self { agent, packer, gpu_notes } = self;
        let batch = match &agent.link {
            Some(link) => link.batch(order),
            None => {
                let of = SegmentSettings {
                    job: env.header.id,
                    rank: env.rank,
                    hash: settings.hash,
                    page_bytes: page_bytes as u32,
                    created_ns: order.taken_ns,
                };
                let packer = packer.get_or_insert_with(|| start_packer(env, gpu_notes));
                packer.begin_as(of, settings.writing)
            }
        };
        Storing {
            elements: regions.iter().map(|region| region.elem()).collect(),
            catalog,
            batch,
            last: None,
            compare: settings.compare,
            page_bytes,
            slots_max: (segment_bytes / page_bytes as u64) as u32,
            segment_bytes,
            expected_bytes,
            begun: Vec::new(),
        }
    }

    /// Bytes of pages that a segment takes: little enough of all that is protected, for a segment that
    /// is mostly empty is stored again as a whole.
    pub(crate) fn segment_bytes(&self, settings: &TakeSettings, protected_bytes: u64) -> u64 {
        let share = (protected_bytes / SEGMENTS_LEAST).max(SEGMENT_BYTES_MIN);
        // A segment of the agent's holds a stream of every rank of its node.
        let streams = if self.has_agent() { self.agent.ranks as u64 } else { 1 };
        (settings.segment_bytes.min(share) / streams).max(settings.pack.block_bytes as u64)
    }
}

/// A packer whose blocks go to a device, if that is asked for and there is one.
fn start_packer(env: &Env, notes: &Arc<Mutex<Vec<String>>>) -> Packer {
    let settings = env.settings.pack.clone();
    let (store, hasher) = (Arc::clone(&env.store), env.hasher.clone());
    if settings.pipeline != Pipeline::Gpu {
        return Packer::new(store, settings, hasher);
    }
    let notes = Arc::clone(notes);
    match GpuQueue::open(move |note| lock(&notes).push(note)) {
        Some(queue) => {
            let block_bytes = BLOCK_BYTES.max(settings.page_bytes);
            let settings = PackSettings { block_bytes, ..settings };
            Packer::offloaded(store, settings, hasher, Arc::new(queue))
        }
        None => Packer::new(store, settings, hasher),
    }
}

fn lock(notes: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}
