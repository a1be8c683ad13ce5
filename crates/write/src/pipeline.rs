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
        let in_turn = self.pipeline == Pipeline::Serial;
        Some(Arc::new(Adaptive::new(self.encoders(), in_turn)))
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
