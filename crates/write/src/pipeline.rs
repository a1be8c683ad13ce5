//! The three stages of a checkpoint's bytes, and how they take turns.
//!
//! ```text
//! collect --[blocks: the pool]--> compress --[chunks: the store's writer]--> store
//! ```
//! Both queues are bounded and their buffers are used again. Small pieces are gathered twice: pages
//! into blocks, stored blocks into chunks. The order is kept by the blocks' numbers in the index, so
//! that nobody waits for a block that takes longer.
//!
//! docs/PIPELINE.md compares this with the published pipeline.

use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
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

/// Measures how fast pages are collected: in processor time, for neither waiting for a buffer nor
/// giving way to the encoders is collecting. Where the stages take turns the thread's other work
/// counts too; there it is the same for every choice and decides nothing.
pub(crate) struct Collecting {
    adaptive: Arc<Adaptive>,
    since: Duration,
    page_bytes: u64,
    /// Collected since then.
    bytes: u64,
    /// What was told last, for a byte.
    told_s: Option<f64>,
}

impl Collecting {
    pub(crate) fn new(adaptive: Arc<Adaptive>, page_bytes: usize) -> Self {
        adaptive.begin_collecting();
        let page_bytes = page_bytes as u64;
        Self { adaptive, since: thread_time(), page_bytes, bytes: 0, told_s: None }
    }

    /// A block of so many pages is full.
    pub(crate) fn collected(&mut self, pages: u32) {
        self.bytes += u64::from(pages) * self.page_bytes;
        if self.bytes < TOLD_BYTES {
            return;
        }
        let now = thread_time();
        let took = now.saturating_sub(std::mem::replace(&mut self.since, now));
        let now_s = took.as_secs_f64() / self.bytes as f64;
        // The rate follows what happens without jumping.
        let told_s = (self.told_s.unwrap_or(now_s) + now_s) / 2.0;
        self.adaptive.collecting(told_s);
        (self.told_s, self.bytes) = (Some(told_s), 0);
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        self.adaptive.end_collecting();
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}
