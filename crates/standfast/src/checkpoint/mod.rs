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
//! Where a snapshot or a device has the pages ([`take`]), the program's thread does not wait for
//! them: they are taken in by the committer's thread, which then has what capturing remembers until
//! the checkpoint has settled.
//!
//! One checkpoint is under way at a time: the next call waits for the commit of the previous
//! one, so that it may refer to its pages.
//!
//! Invariants:
//! - The catalog and the positions belong to one thread at a time. The committer tells what
//!   became of a checkpoint by an [`commit::Outcome`], and `settle` applies it.
//! - After a failure nothing refers to the pages of the failed checkpoint any more.

mod agent_outcome;
pub(crate) mod attempt;
mod bring;
mod candidates;
pub(crate) mod commit;
pub(crate) mod committer;
mod cow;
mod describe;
pub(crate) mod device;
pub(crate) mod draft;
mod handing;
mod ledger;
mod owners;
mod phase;
mod place;
pub(crate) mod ranks;
mod refer;
pub(crate) mod remembered;
mod sink;
mod stopped;
mod storing;
pub(crate) mod take;
mod together;
mod tracks;
pub(crate) mod under_way;
mod writer;
