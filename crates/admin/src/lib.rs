//! What can be done with stores of checkpoints, for the command and for other languages.
//!
//! Data: a [`Place`] -> [`OpenJob`] -> one module per task -> typed results. Nothing is printed, and
//! nothing asks: callers show results, draw progress from counters, and set a flag to stop.
//!
//! | module | answers |
//! |---|---|
//! | [`list`] | which jobs and checkpoints there are |
//! | [`show`] | what a checkpoint holds, by region and segment |
//! | [`references`], [`writes`], [`ring`] | pages of other ranks; how bytes were written; who protects whom |
//! | [`verify`] | what is damaged, and which checkpoints need it |
//! | [`restart_plan`] | what a restart would do |
//! | [`diff`] | which pages differ between two checkpoints |
//! | [`export`], [`prune`], [`drain`] | regions as files; old checkpoints go; to global storage and back |
//!
//! Invariants:
//! - Stores are untrusted bytes: whatever they hold gives an answer or an error, never a panic.
//! - What reads creates nothing in a place that is not a store.
//!
//! ```no_run
//! use standfast_admin::{Place, list, open};
//!
//! let job = open(&Place { store: Some("/scratch/sf".into()), ..Place::default() })?;
//! for checkpoint in list::of_job(&job)?.checkpoints {
//!     println!("{} {}", checkpoint.manifest.version, checkpoint.stored_bytes());
//! }
//! # Ok::<(), standfast_admin::Error>(())
//! ```

pub mod diff;
pub mod drain;
mod error;
pub mod export;
pub mod list;
mod nodes;
mod place;
pub mod prune;
pub mod references;
pub mod restart_plan;
pub mod ring;
pub mod show;
pub mod verify;
pub mod writes;

pub use error::{Error, Result};
pub use place::{OpenJob, Place, choose, forgets_the_dead, jobs, load, open, open_job};

/// The planner, for what a job's past tells it.
pub use standfast_model as model;
/// Codecs by name, for options.
pub use standfast_reduce::{CodecChoice, CodecSpec};
/// What a store has, and what reading it can fail with.
pub use standfast_restart::{Error as ReadError, Inventory, Unreadable};
/// Why a store cannot be used.
pub use standfast_store::{Error as StoreError, Lock};

/// Digest of bytes, as people compare it.
pub use standfast_format::Digest;
/// The names of objects in a store.
pub use standfast_format::name;
/// Figures as people read them.
pub use standfast_format::{human_bytes, human_ns};
