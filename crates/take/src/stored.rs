//! What the pages of an attempt became, before anything of it is durable.

use std::panic::{AssertUnwindSafe, catch_unwind};

use standfast_format::SegmentId;

use crate::error::Error;
use crate::together::Reserved;

/// Pages that were stored.
pub(crate) struct Stored {
    pub(crate) pending: standfast_write::Pending,
    /// New segments of this rank.
    pub(crate) own: Vec<SegmentId>,
    /// New segments of other ranks that this one refers to.
    pub(crate) foreign: Vec<SegmentId>,
    /// New segments of this rank whose pages are still on a device.
    pub(crate) reserved: Vec<Reserved>,
    pub(crate) scan_ns: u64,
    pub(crate) agree_ns: u64,
    pub(crate) copy_ns: u64,
}

impl Stored {
    pub(crate) fn of(pending: standfast_write::Pending, own: Vec<SegmentId>) -> Self {
        let (foreign, reserved) = (Vec::new(), Vec::new());
        Self { pending, own, foreign, reserved, scan_ns: 0, agree_ns: 0, copy_ns: 0 }
    }

    /// Takes in another part of the same checkpoint.
    pub(crate) fn join(&mut self, other: Stored) {
        self.pending.join(other.pending);
        self.own.extend(other.own);
    }

    /// New segments, of this rank or not.
    pub(crate) fn begun(&self) -> impl Iterator<Item = SegmentId> {
        self.own.iter().chain(&self.foreign).copied()
    }
}

/// Why pages could not be stored, and which segments were begun.
pub(crate) struct Aborted {
    pub(crate) error: Error,
    pub(crate) begun: Vec<SegmentId>,
}

impl Aborted {
    /// After another part of the same checkpoint was stored.
    pub(crate) fn after(mut self, stored: &Stored) -> Self {
        self.begun.extend(&stored.own);
        self
    }
}

/// Before any segment was begun.
impl From<Error> for Aborted {
    fn from(error: Error) -> Self {
        Self { error, begun: Vec::new() }
    }
}

/// Makes a panic a failure: whoever panicked goes on, so that no other rank waits for it.
/// `what`: as in "storing the checkpoint panicked".
pub(crate) fn guarded<T, E: From<Error>>(
    what: &'static str,
    run: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(Error::Broken { what }.into()))
}
