//! A checkpoint in the making: what its pages became, before anything of it is durable.

use std::time::Instant;

use standfast_format::{Reference, RegionImage, SegmentId, SegmentRef, Stats};

use super::sink::Pending;
use super::together::Reserved;
use crate::error::Error;

pub(crate) use standfast_checkpoint::Order;

/// Pages that were stored.
pub(super) struct Stored {
    pub(super) pending: standfast_write::Pending,
    /// New segments of this rank.
    pub(super) own: Vec<SegmentId>,
    /// New segments of other ranks that this one refers to.
    pub(super) foreign: Vec<SegmentId>,
    /// New segments of this rank whose pages are still on a device.
    pub(super) reserved: Vec<Reserved>,
    pub(super) scan_ns: u64,
    pub(super) agree_ns: u64,
    pub(super) copy_ns: u64,
}

impl Stored {
    pub(super) fn of(pending: standfast_write::Pending, own: Vec<SegmentId>) -> Self {
        let (foreign, reserved) = (Vec::new(), Vec::new());
        Self { pending, own, foreign, reserved, scan_ns: 0, agree_ns: 0, copy_ns: 0 }
    }

    /// Takes in another part of the same checkpoint.
    pub(super) fn join(&mut self, other: Stored) {
        self.pending.join(other.pending);
        self.own.extend(other.own);
    }
}

/// Why pages could not be stored, and which segments were begun.
pub(super) struct GivenUp {
    pub(super) error: Error,
    pub(super) begun: Vec<SegmentId>,
}

impl GivenUp {
    /// Before any segment was begun.
    pub(super) fn early(error: impl Into<Error>) -> Self {
        Self { error: error.into(), begun: Vec::new() }
    }

    /// After another part of the same checkpoint was stored.
    pub(super) fn after(mut self, stored: &Stored) -> Self {
        self.begun.extend(&stored.own);
        self
    }
}

/// A checkpoint whose pages are captured and whose files are not yet durable.
pub(crate) struct Draft {
    pub(crate) order: Order,
    pub(crate) started: Instant,
    pub(crate) pending: Pending,
    /// New segments of other ranks that this one refers to.
    pub(crate) foreign: Vec<SegmentId>,
    pub(crate) regions: Vec<RegionImage>,
    /// The image's segment table; the references of new segments are known once sealed.
    pub(crate) table: Vec<(SegmentId, Option<SegmentRef>)>,
    /// The pages that other ranks store, where the strategy has them written down.
    pub(crate) references: Option<Vec<Reference>>,
    pub(crate) stats: Stats,
    /// What its reader should know.
    pub(crate) notes: Vec<String>,
}

pub(crate) fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
