//! Standfast: checkpoint/restart for long-running programs.
//!
//! A program protects regions of its memory. A checkpoint captures their pages, drops every page
//! that is zero or stored already, compresses the rest and writes it in large pieces, while the
//! program is running again. A restart rebuilds the regions and verifies every page.
//!
//! ```
//! use standfast::{Job, Kind, Level};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let store = dir.path().to_str().unwrap();
//! let job = Job::builder().store(store).job("heat").open()?;
//! let field = job.alloc::<f64>("field", 4096)?;
//! let step = job.value::<u64>("step")?;
//!
//! match job.restart(None) {
//!     Ok(restarted) => println!("goes on from checkpoint {}", restarted.version),
//!     Err(error) if error.kind() == Kind::Missing => println!("a fresh start"),
//!     Err(error) => return Err(error),
//! }
//! while step.get() < 100 {
//!     field.write().iter_mut().for_each(|value| *value += 1.0);
//!     step.set(step.get() + 1);
//!     if step.get() % 25 == 0 {
//!         job.checkpoint(None)?;
//!     }
//! }
//! job.close()?;
//! # Ok::<(), standfast::Error>(())
//! ```
//!
//! What this is not: it restores memory, not open files, sockets or the place in the code; the
//! program starts as always and asks for its state.

mod agent;
mod allocation;
mod arrive;
mod ask;
mod checkpoint;
pub mod config;
mod demand;
mod device;
mod doubt;
mod error;
mod exchange;
mod global;
mod identity;
mod interval;
mod job;
mod lazy;
pub mod location;
mod naming;
mod pledges;
mod point;
mod progress;
mod protected;
mod read_back;
mod report;
mod restart;
pub mod ring;
mod room;
mod sources;
mod stores;
mod value;

pub use ask::Ask;
pub use error::{Error, Result};
pub use job::{Job, JobBuilder};
pub use progress::Progress;
pub use protected::{Element, Protected, ReadGuard, WriteGuard};
#[doc(hidden)]
pub use report::human_ns;
pub use report::{Report, human_bytes, survives};
pub use restart::Restarted;
#[doc(hidden)]
pub use standfast_checkpoint::{FAILPOINTS, RING_FAILPOINTS};
pub use standfast_checkpoint::{mark, prune};
pub use standfast_format::{Image, Kind, Level, Manifest, Rank, Retry, Stats, Version};
pub use value::Value;
