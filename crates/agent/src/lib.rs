//! The node agent: one pool and one writer for all ranks of a job on a node.
//!
//! ```text
//! rank: page -> leased unit of the shared pool --Block--> agent: encode -> shared segment -> store
//! rank: image description ----------------------HandOver-> agent: images, manifest, prune
//! ```
//! Ranks copy pages into units that the agent has leased to them, and go on when their pages and
//! their image description are in the agent's hands. From then on the agent makes the checkpoint
//! durable by itself, also if every rank is killed. `docs/AGENT.md` tells the whole story.
//!
//! - [`Daemon`] is the agent; [`command`] lets any binary be one.
//! - [`Link`] is a rank's connection to it; [`Link::batch`] takes the pages of one checkpoint.
//! - [`status`], [`stop`], [`flush`] and [`start`] are what commands and openings ask for.
//!
//! ```
//! use standfast_agent::{Daemon, Place};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let dir = dir.path().join("agent");
//! let place = Place::open(Some(&dir))?;
//! let daemon = Daemon::bind(&place, std::time::Duration::from_secs(60))?.expect("none runs yet");
//! let running = std::thread::spawn(move || daemon.run());
//! assert!(standfast_agent::status(&place)?.sessions.is_empty());
//! standfast_agent::stop(&place, false)?;
//! running.join().unwrap();
//! # Ok::<(), standfast_agent::Error>(())
//! ```
//!
//! What this is not: it captures nothing and decides nothing about which pages are stored; it is
//! trusted with what its own user's ranks hand it, and with nothing of other users.

mod client;
mod command;
mod daemon;
mod error;
mod lease;
mod memory;
mod message;
mod place;
mod status;
mod wire;

pub use client::{Link, Member, flush, start, status, stop};
pub use command::{command, start_beside};
pub use daemon::Daemon;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub use daemon::simulation;
pub use error::{Error, Result};
pub use message::{
    Begin, Failure, Figures, GlobalUse, HandOver, Manner, Packing, Pledged, Settled, StoreUse,
    Token,
};
pub use place::Place;
pub use standfast_checkpoint::StreamPlace;
pub use status::{DrainStatus, SessionStatus, Status};
