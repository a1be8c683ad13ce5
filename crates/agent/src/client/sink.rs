//! A rank's blocks on their way to the agent.
//!
//! Data: units of the shared pool, filled by a [`Batch`] -> `Blocks` messages -> the agent, which
//! encodes and writes them.
//!
//! Invariants:
//! - What is not used of the leased units goes back when the capture is over.
//! - What is dropped before it is sealed is aborted at the agent.

use std::sync::Arc;

use standfast_checkpoint::Order;
use standfast_format::{AttemptId, Rank};
use standfast_write::{Batch, Filled, Head, SealedSegment, SegmentSink, Unit, Unsealed};

use super::link::Link;
use crate::error::Result;
use crate::message::Block;

/// Filled units that are sent at once.
const BLOCKS_SENT: usize = 16;

/// Sends blocks to the agent.
struct ThroughAgent {
    link: Arc<Link>,
    order: Order,
    /// Filled units that are still to be sent: each message wakes the agent, which would take the
    /// processor from ranks that are still capturing.
    filled: Vec<Filled>,
    is_complete: bool,
}

/// Pages that are in the agent's hands.
struct InHands {
    link: Arc<Link>,
    attempt: AttemptId,
    is_sealed: bool,
}

impl Link {
    /// Starts a checkpoint whose pages go to the agent.
    pub fn batch(self: &Arc<Self>, order: Order) -> Batch {
        let (link, filled) = (Arc::clone(self), Vec::with_capacity(BLOCKS_SENT));
        let sink = ThroughAgent { link, order, filled, is_complete: false };
        let member = &self.member;
        Batch::new(Box::new(sink), Rank(member.rank), member.hasher.clone(), member.page_bytes)
    }
}

impl ThroughAgent {
    fn send_filled(&mut self) -> Result<()> {
        if self.filled.is_empty() {
            return Ok(());
        }
        let blocks = self.filled.drain(..).map(|block| {
            let Head { stream, number, pages, elem, hashes, .. } = block.head;
            let unit = block.unit.hand_on();
            Block { order: self.order, stream, number, unit, pages, elem, hashes }
        });
        self.link.send_blocks(blocks.collect())
    }
}

impl SegmentSink for ThroughAgent {
    /// Before waiting for a unit, what is filled goes out: it may be what is waited for.
    fn unit(&mut self) -> standfast_write::Result<Unit> {
        if let Some(unit) = self.link.unit_in_stock()? {
            return Ok(unit);
        }
        self.send_filled()?;
        Ok(self.link.take_unit()?)
    }

    fn put(&mut self, block: Filled, _: bool) -> standfast_write::Result<()> {
        self.filled.push(block);
        match self.filled.len() < BLOCKS_SENT {
            true => Ok(()),
            false => Ok(self.send_filled()?),
        }
    }

    fn end_stream(&mut self) -> standfast_write::Result<()> {
        Ok(self.send_filled()?)
    }

    fn hand_over(mut self: Box<Self>) -> Box<dyn Unsealed> {
        self.is_complete = true;
        let (link, attempt) = (Arc::clone(&self.link), self.order.attempt);
        Box::new(InHands { link, attempt, is_sealed: false })
    }
}

impl Drop for ThroughAgent {
    fn drop(&mut self) {
        // Only of a checkpoint that is given up.
        self.filled.clear();
        self.link.return_stock();
        if !self.is_complete {
            self.link.abort(self.order.attempt);
        }
    }
}

impl Unsealed for InHands {
    /// The agent seals, after all its ranks have handed their parts over.
    fn seal(mut self: Box<Self>) -> standfast_write::Result<Vec<SealedSegment>> {
        self.is_sealed = true;
        Ok(Vec::new())
    }
}

impl Drop for InHands {
    fn drop(&mut self) {
        if !self.is_sealed {
            self.link.abort(self.attempt);
        }
    }
}
