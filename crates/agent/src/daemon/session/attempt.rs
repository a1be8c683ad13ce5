//! The checkpoint under way: what its ranks have sent of it so far.

use std::collections::BTreeMap;

use standfast_checkpoint::Order;
use standfast_format::Kind;
use standfast_sys::Stopwatch;
use standfast_write::{Filled, Segments};

use super::refused;
use crate::error::Result;
use crate::message::HandOver;

/// An attempt at a checkpoint.
pub(super) struct Attempt {
    pub(super) order: Order,
    pub(super) segments: Segments,
    /// Blocks that wait until the ranks have captured or the pool fills up: writing them now
    /// would take processor and memory from programs that stand still.
    pub(super) held: Vec<Filled>,
    pub(super) goes_at_once: bool,
    /// Whether most of the pool was in use at some time.
    pub(super) fills_up: bool,
    pub(super) parts: BTreeMap<u32, (HandOver, Stopwatch)>,
}

impl Attempt {
    /// Sends what was held back on its way.
    pub(super) fn let_go(&mut self) -> Result<()> {
        for block in self.held.drain(..) {
            match self.segments.push(block) {
                Ok(()) => {}
                // Sealing tells it again, to all ranks.
                Err(error) if error.kind() != Kind::Corrupt => {}
                Err(error) => return Err(refused(error.kind(), &error)),
            }
        }
        Ok(())
    }
}
