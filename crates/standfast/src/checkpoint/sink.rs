//! Who makes captured pages durable: this process, or the node's agent.

use std::sync::Arc;

use standfast_agent::Link;
use standfast_format::{AttemptId, Image, SegmentId};

use super::draft::Order;
use super::writer::Writer;
use crate::error::Error;

/// Pages that are captured and not yet durable, with whoever makes them so.
pub(crate) enum Pending {
    Own(standfast_write::Pending),
    Agent(Ticket),
}

impl Writer {
    /// Captured pages, with whoever makes them durable.
    pub(super) fn pending(&self, order: Order, captured: standfast_write::Pending) -> Pending {
        match &self.agency.link {
            Some(link) => Pending::Agent(Ticket::new(Arc::clone(link), order.attempt, captured)),
            None => Pending::Own(captured),
        }
    }
}

/// A checkpoint in the agent's hands; dropped before it was handed over, it is given up.
pub(crate) struct Ticket {
    pub(super) link: Arc<Link>,
    pub(super) attempt: AttemptId,
    streams: Vec<SegmentId>,
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
    Captured(standfast_write::Pending),
    HandedOver,
    Failed(Error),
}

impl Ticket {
    fn new(link: Arc<Link>, attempt: AttemptId, captured: standfast_write::Pending) -> Self {
        let streams = captured.ids().collect();
        Self { link, attempt, streams, stage: Stage::Captured(captured), unplaced: None }
    }

    /// This rank's streams of it.
    pub(super) fn streams(&self) -> &[SegmentId] {
        &self.streams
    }
}
