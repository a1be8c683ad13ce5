//! The three stages of a checkpoint's bytes, and how they take turns.
//!
//! ```text
//! collect --[blocks: the pool]--> compress --[chunks: the store's writer]--> store
//! ```
//! Both queues are bounded and their buffers are used again. A buffer is *empty* (nobody has it),
//! *busy* (being filled, compressed or written) or *ready* (full, nobody has taken it up). Small
//! pieces are gathered twice: pages into blocks, stored blocks into chunks. The order is kept by
//! the blocks' numbers in the index, so that nobody waits for a block that takes longer.
//!
//! docs/PIPELINE.md compares this with the published pipeline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use standfast_reduce::{Adaptive, BlockEncoder, CodecChoice, CodecSpec};

use crate::packer::PackSettings;

/// How the stages take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pipeline {
    /// Blocks are stored as they are.
    None,
    /// One thread collects, compresses and stores, each after the other.
    Serial,
    /// All three at the same time.
    #[default]
    Pipelined,
    /// The same, compressed elsewhere: see [`Packer::offloaded`](crate::Packer::offloaded).
    Gpu,
}

/// How many buffers of the first queue are in which state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Nobody has them.
    pub empty: usize,
    /// Being filled, compressed, or lent to the store.
    pub busy: usize,
    /// Full, not yet taken up by a compressing thread.
    pub ready: usize,
}

impl PackSettings {
    /// Threads that compress beside the collecting one.
    pub(crate) fn encoders(&self) -> usize {
        match self.pipeline {
            Pipeline::Serial => 0,
            Pipeline::None | Pipeline::Pipelined | Pipeline::Gpu => self.threads.max(1),
        }
    }

    /// What the encoders know together, where they choose the codec themselves.
    pub(crate) fn adaptive(&self) -> Option<Arc<Adaptive>> {
        if self.pipeline == Pipeline::None || self.codec != CodecChoice::Auto {
            return None;
        }
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let in_turn = self.pipeline == Pipeline::Serial;
        Some(Arc::new(Adaptive::new(self.encoders(), cores, in_turn)))
    }

    pub(crate) fn encoder(&self, adaptive: Option<&Arc<Adaptive>>) -> BlockEncoder {
        let (filter, block_bytes) = (self.filter, self.block_bytes);
        match (adaptive, self.codec) {
            (Some(adaptive), _) => {
                BlockEncoder::adaptive(Arc::clone(adaptive), filter, block_bytes)
            }
            (None, CodecChoice::Fixed(spec)) if self.pipeline != Pipeline::None => {
                BlockEncoder::new(spec, filter, block_bytes)
            }
            _ => BlockEncoder::new(CodecSpec::NONE, filter, block_bytes),
        }
    }
}

/// The rate of collecting is told after so many bytes.
const TOLD_BYTES: u64 = 1 << 20;

/// Measures how fast pages are collected, without the time spent waiting for a buffer.
pub(crate) struct Collecting {
    adaptive: Arc<Adaptive>,
    since: Instant,
    waited: Duration,
    bytes: u64,
    busy: Duration,
}

impl Collecting {
    pub(crate) fn new(adaptive: Arc<Adaptive>) -> Self {
        adaptive.begin_collecting();
        let (since, zero) = (Instant::now(), Duration::ZERO);
        Self { adaptive, since, waited: zero, bytes: 0, busy: zero }
    }

    /// Runs what waits for a buffer.
    pub(crate) fn waiting<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let got = wait();
        self.waited += started.elapsed();
        got
    }

    /// A block of so many bytes is full.
    pub(crate) fn collected(&mut self, bytes: usize) {
        let now = Instant::now();
        let waited = std::mem::take(&mut self.waited);
        self.busy += (now - std::mem::replace(&mut self.since, now)).saturating_sub(waited);
        self.bytes += bytes as u64;
        if self.bytes >= TOLD_BYTES {
            self.adaptive.collecting(self.busy.as_secs_f64() / self.bytes as f64);
            // Half of it stays: the rate follows what happens without jumping.
            self.bytes /= 2;
            self.busy /= 2;
        }
    }

    /// What was done since the last block was no collecting.
    pub(crate) fn resume(&mut self) {
        self.since = Instant::now();
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        self.adaptive.end_collecting();
    }
}
