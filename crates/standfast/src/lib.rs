//! Standfast: checkpoint/restart for long-running programs.
//!
//! A program protects regions of its memory. A checkpoint captures their pages, drops every page
//! that is zero or stored already, compresses the rest and writes it in large pieces, while the
//! program is running again. A restart rebuilds the regions and verifies every page.
//!
//! ```
//! use standfast::Job;
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let store = dir.path().to_str().unwrap();
//! let job = Job::builder().store(store).job("heat").open()?;
//! let field = job.alloc::<f64>("field", 4096)?;
//! let step = job.value::<u64>("step")?;
//!
//! match job.restart()? {
//!     Some(restarted) => println!("goes on from checkpoint {}", restarted.version),
//!     None => println!("a fresh start"),
//! }
//! while step.get() < 100 {
//!     field.write().iter_mut().for_each(|value| *value += 1.0);
//!     step.set(step.get() + 1);
//!     if step.get() % 25 == 0 {
//!         job.checkpoint(None)?;
//!     }
//! }
//! job.finish()?;
//! # Ok::<(), standfast::Error>(())
//! ```
//!
//! Arrays are [`Job::alloc`], single numbers [`Job::value`], everything else that serde can write
//! [`Job::state`], and memory that somebody else owns [`Job::protect`]. Settings are words in
//! `standfast.toml`, the environment or [`Job::builder`].
//!
//! What this is not: it restores memory, not open files, sockets or the place in the code; the
//! program starts as always and asks for its state.
//!
//! What may change between versions is in `docs/STABILITY.md` of the sources. What these pages do not
//! show is for Standfast's own commands and libraries, and no promise covers it.

mod agent;
mod allocation;
mod checkpoint;
pub mod config;
mod device;
mod error;
mod global;
#[doc(hidden)]
pub mod history;
mod identity;
mod interval;
mod job;
#[doc(hidden)]
pub mod location;
mod naming;
mod pledges;
mod point;
mod progress;
mod protected;
mod report;
mod restart;
#[doc(hidden)]
pub mod ring;
mod run_request;
mod space;
mod state;
mod stores;
mod value;

pub use error::{Error, Result};
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub use identity::simulation;
pub use job::{Job, JobBuilder};
pub use progress::Progress;
pub use protected::{Element, Protected, ReadGuard, WriteGuard};
pub use report::Report;
pub use restart::Restarted;
pub use standfast_comm::Comm;
pub use standfast_format::{Kind, Level, Rank, Retry, Stats, Version};
pub use state::State;
pub use value::Value;
/// What an [`Element`] is made of: `#[derive(FromBytes, IntoBytes, Immutable)]`.
#[doc(no_inline)]
pub use zerocopy;

// For the commands and libraries of this project; no promise covers it.
#[doc(hidden)]
pub use run_request::{RunRequest, Told};
#[doc(hidden)]
pub use standfast_checkpoint::{mark, prune};
#[doc(hidden)]
pub use standfast_format::{Image, Manifest};
