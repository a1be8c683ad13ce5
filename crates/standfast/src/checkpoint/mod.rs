//! The checkpoint, phase by phase.
//!
//! ```text
//! program's thread                          committer's thread
//! ----------------                          ------------------
//! settle   the previous one is finished
//! capture  scan, hash, find, copy   -----> commit  seal segments, write image, write manifest
//! return   level memory                     prune   what is beyond `keep`
//!                                            level local, settled
//! ```
//! With `capture = cow` the program's thread only freezes the state ([`snapshot`]); scan, hash, find
//! and copy are then the committer's thread's work, and so are catalog and positions until the
//! checkpoint has settled. The same goes for pages that are staged on a device ([`device`]).
//!
//! One checkpoint is under way at a time: the next call waits for the commit of the previous
//! one, so that it may refer to its pages.
//!
//! Invariants:
//! - The catalog and the positions belong to one thread at a time. The committer tells what
//!   became of a checkpoint by an [`commit::Outcome`], and `settle` applies it.
//! - After a failure nothing refers to the pages of the failed checkpoint any more.

mod agent_outcome;
pub(crate) mod capture;
pub(crate) mod commit;
pub(crate) mod committer;
mod describe;
pub(crate) mod device;
pub(crate) mod draft;
mod gpu;
mod handing;
mod owners;
pub(crate) mod ranks;
mod share;
mod sharing;
mod sink;
pub(crate) mod snapshot;
pub(crate) mod stop;
mod storing;
mod together;
