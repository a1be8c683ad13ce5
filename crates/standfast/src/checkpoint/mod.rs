//! Checkpoints of a job: `standfast_take` takes them, a thread of its own brings them to their end.
//!
//! ```text
//! program's thread                          committer's thread
//! ----------------                          ------------------
//! settle   the previous one is finished
//! take     scan, hash, find, copy   -----> seal     segments are durable
//! return   level memory                     publish  images, manifest; prune what is beyond `keep`
//! settle   what is remembered is back <----          level local
//! ```
//! One checkpoint is under way at a time: the next call waits for the previous one, so that it may
//! refer to its pages.

pub(crate) mod commit;
pub(crate) mod committer;
pub(crate) mod ranks;
pub(crate) mod settings;
