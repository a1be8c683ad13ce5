//! Draining: checkpoints go from the local store to global storage, off the program's path.
//!
//! Data: inventories of both stores -> [`policy`]: which checkpoint next -> [`Drain::carry`]: the
//! segments that the target lacks, compressed on their way (`segment.rs`), then the images, then the
//! manifest.
//!
//! A global store is a store like any other: the same files, the same chain of digests, the same
//! commands. It has the identity and key of the local one, so its checkpoints can be restarted from
//! anywhere, and its segments have the same slots. Only how blocks are encoded may differ, and with
//! it the lengths and digests that images and manifests name.
//!
//! Invariants:
//! - A manifest is written after everything it names is durable in the target: a checkpoint that
//!   the global level offers is whole. A drain that dies leaves files that no manifest names.
//! - What a dead drain left is used again after it was compared with the local index: a drain is
//!   resumed, not begun again, at the first segment that is missing.
//! - Every page is verified before it is sent. Damage stays where it is.
//! - The source is only read, but for the record of what arrived. The checkpoint that is carried is
//!   locked against pruning.

mod carry;
mod encoding;
mod error;
mod flow;
pub mod policy;
mod priority;
mod record;
mod retain;
mod run;
mod segment;

pub use carry::{Carried, Drain, lack};
pub use encoding::Encoding;
pub use error::{Error, Result};
pub use flow::{Flow, Progress};
pub use priority::{Cores, IoPriority, Priority};
pub use retain::Retention;
pub use run::{Event, Until};
