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
//! let job = Job::open(&[("store", store), ("job", "heat")])?;
//! let field = job.alloc::<f64>("field", 4096)?;
//! let step = job.alloc::<u64>("step", 1)?;
//!
//! match job.restart(None) {
//!     Ok(restarted) => println!("goes on from checkpoint {}", restarted.version),
//!     Err(error) if error.kind() == Kind::Missing => println!("a fresh start"),
//!     Err(error) => return Err(error),
//! }
//! while step.read()[0] < 100 {
//!     field.write().iter_mut().for_each(|value| *value += 1.0);
//!     step.write()[0] += 1;
//!     if step.read()[0] % 25 == 0 {
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

pub use ask::Ask;
pub use error::{Error, Result};
pub use job::Job;
pub use progress::Progress;
pub use protected::{Element, Protected, ReadGuard, WriteGuard};
pub use report::{Report, human_bytes, human_ns, survives};
pub use restart::Restarted;
pub use standfast_checkpoint::{FAILPOINTS, RING_FAILPOINTS, mark, prune};
pub use standfast_format::{Image, Kind, Level, Manifest, Rank, Retry, Stats, Version};
