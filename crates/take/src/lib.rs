//! Taking a checkpoint: what a rank does from its memory to durable segments.
//!
//! ```text
//! program's thread                          another thread
//! ----------------                          --------------
//! take     freeze, or: look, assign, bring -> ingest   what is still to be read
//! return   level memory                        seal     segments are durable
//!                                              publish  by whoever knows the stores of the job
//! settle   what is remembered is back  <------
//! ```
//! A checkpoint is a source of pages (memory that is stopped, a snapshot, a device), a place
//! (each rank alone, or the ranks together) and a writer (this process or the node's agent). An
//! [`Attempt`] carries it, with what capturing remembers ([`Remembered`]), until it has settled. Where
//! a snapshot or a device has the pages, the program does not wait for them.
//!
//! One checkpoint is under way at a time: the next one may refer to its pages.
//!
//! Invariants:
//! - What capturing remembers belongs to one thread at a time: it is where the attempt is.
//! - After a failure nothing refers to the pages of the failed checkpoint any more.
//! - A rank that fails takes part until it has told the others.
//!
//! What this is not: it knows neither settings of users nor where a job's stores are, and commits
//! nothing by itself.

mod agent_commit;
mod attempt;
mod candidates;
mod choose;
mod compact;
mod describe;
mod device;
mod early;
mod error;
mod ingest;
mod ledger;
mod owners;
mod place;
mod remembered;
mod seal;
mod settings;
mod snapshot;
mod stopped;
mod stored;
mod storing;
mod take;
mod together;
mod tracks;
mod writer;

pub use attempt::{Attempt, Captured, Closed, Committed, Ended, Frozen, Published, Sealed, Taken};
pub use device::{SharedDevice, lock_device};
pub use error::{Error, Phase, Result, Stop};
pub use remembered::Remembered;
pub use settings::{Capture, Comparison, Sharing, TakeSettings};
pub use take::{TakeRequest, take};
