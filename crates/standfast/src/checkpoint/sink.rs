//! Where captured pages go: into this process's own pool, or into the one that the node's agent
//! shares out. Storing and committing need not know which.

use std::sync::Arc;

use standfast_agent::Link;
use standfast_format::{AttemptId, Image, SegmentId};
use standfast_reduce::Encoded;
use standfast_write::Batch;

use crate::error::{Error, Result};

/// The pages of one checkpoint on their way.
pub(super) enum Sink<'a> {
    Own(Batch<'a>),
    Agent(standfast_agent::Batch<'a>, Arc<Link>, AttemptId),
}

impl Sink<'_> {
    pub(super) fn open_segment(&mut self, id: SegmentId, size_hint: Option<u64>) {
        match self {
            Sink::Own(batch) => batch.open_segment(id, size_hint),
            Sink::Agent(batch, ..) => batch.open_stream(id),
        }
    }

    pub(super) fn slots(&self) -> Option<u32> {
        match self {
            Sink::Own(batch) => batch.slots(),
            Sink::Agent(batch, ..) => batch.slots(),
        }
    }

    pub(super) fn push(&mut self, page: &[u8], hash: &[u8], elem: u8) -> Result<()> {
        match self {
            Sink::Own(batch) => Ok(batch.push(page, hash, elem)?),
            Sink::Agent(batch, ..) => Ok(batch.push(page, hash, elem)?),
        }
    }

    pub(super) fn stage(&mut self, page: &[u8], elem: u8, hash: &mut [u8]) -> Result<()> {
        match self {
            Sink::Own(batch) => Ok(batch.stage(page, elem, hash)?),
            Sink::Agent(batch, ..) => Ok(batch.stage(page, elem, hash)?),
        }
    }

    pub(super) fn keep_staged(&mut self) -> Result<()> {
        match self {
            Sink::Own(batch) => {
                batch.keep_staged();
                Ok(())
            }
            Sink::Agent(batch, ..) => Ok(batch.keep_staged()?),
        }
    }

    /// Whether blocks that were encoded elsewhere can be taken.
    pub(super) fn takes_blocks(&self) -> bool {
        match self {
            Sink::Own(_) => true,
            // The agent encodes what it finds in its pool.
            Sink::Agent(..) => false,
        }
    }

    /// Makes a block that was encoded elsewhere the next slots.
    ///
    /// # Panics
    /// If no blocks can be taken.
    pub(super) fn push_block(&mut self, pages: u32, encoded: Encoded<'_>) -> Result<()> {
        match self {
            Sink::Own(batch) => Ok(batch.push_block(pages, encoded)?),
            Sink::Agent(..) => panic!("the agent takes pages"),
        }
    }

    /// What comes next does not follow in memory.
    pub(super) fn end_piece(&mut self) {
        match self {
            Sink::Own(batch) => batch.end_piece(),
            // Pieces of all sizes share units.
            Sink::Agent(..) => {}
        }
    }

    pub(super) fn close_segment(&mut self, hashes: Arc<Vec<u8>>) -> Result<()> {
        match self {
            Sink::Own(batch) => {
                batch.close_segment(hashes);
                Ok(())
            }
            // Hashes went along with the blocks.
            Sink::Agent(batch, ..) => Ok(batch.close_stream()?),
        }
    }

    /// Ends the capture.
    pub(super) fn finish(self) -> Pending {
        match self {
            Sink::Own(batch) => Pending::Own(batch.finish()),
            Sink::Agent(batch, link, attempt) => {
                let standfast_agent::Handed { streams, pages } = batch.finish();
                let stage = Stage::Captured;
                Pending::Agent(Ticket { link, attempt, streams, pages, stage, unplaced: None })
            }
        }
    }
}

/// Pages that are captured and not yet durable.
pub(crate) enum Pending {
    Own(standfast_write::Pending),
    Agent(Ticket),
}

impl Pending {
    /// Takes in another part of the same checkpoint, which goes the same way.
    pub(super) fn join(&mut self, other: Pending) {
        match (self, other) {
            (Pending::Own(own), Pending::Own(other)) => own.join(other),
            (Pending::Agent(own), Pending::Agent(other)) => own.join(other),
            _ => unreachable!("a checkpoint goes one way"),
        }
    }

    pub(super) fn pages(&self) -> u64 {
        match self {
            Pending::Own(pending) => pending.pages(),
            Pending::Agent(ticket) => ticket.pages,
        }
    }
}

/// A checkpoint in the agent's hands; dropped before it was handed over, it is given up.
pub(crate) struct Ticket {
    pub(super) link: Arc<Link>,
    pub(super) attempt: AttemptId,
    streams: Vec<SegmentId>,
    pages: u64,
    pub(super) stage: Stage,
    /// Where the ranks commit: this rank's image, in which streams of this attempt stand by id.
    pub(super) unplaced: Option<Unplaced>,
}

/// An image in which streams of this attempt stand by id.
pub(super) struct Unplaced {
    pub(super) image: Box<Image>,
    /// Those streams, of any rank.
    pub(super) streams: Vec<SegmentId>,
}

/// How far a ticket has come.
pub(super) enum Stage {
    Captured,
    HandedOver,
    Failed(Error),
}

impl Ticket {
    /// This rank's streams of it.
    pub(super) fn streams(&self) -> &[SegmentId] {
        &self.streams
    }

    fn join(&mut self, mut other: Ticket) {
        self.streams.append(&mut other.streams);
        self.pages += other.pages;
        // It goes on with this one.
        other.stage = Stage::HandedOver;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::HandedOver) {
            self.link.abort(self.attempt);
        }
    }
}
