//! Restarting: from what a store holds back to a rank's memory, every page verified.
//!
//! Data: [`Inventory`] (manifests) -> [`read_image`] -> [`Rebuild::open`] (segments, references
//! proven) -> plan -> [`Rebuild::rebuild`] -> a [`Sink`]: memory, files, or only a check.
//!
//! Which checkpoint to take is the caller's choice; here is how to bring one back, or to say
//! exactly which object keeps it from coming back.

mod error;
mod plan;
mod rebuild;
mod remote;
mod sink;
mod slots;

pub use error::{Error, Result};
pub use plan::{EXTENT_BYTES_MAX, Extent, Piece, plan, plan_all};
pub use rebuild::{
    Failed, Rebuild, Stranded, Stream, Unproven, WholeBlock, check_segment, each_block,
};
pub use remote::{Slots, wanted_pages};
pub use sink::{CheckSink, MemorySink, Sink};
pub use slots::SlotReader;
pub use standfast_checkpoint::{
    Damaged, Inventory, Unreadable, decode_image, read_drains, read_header, read_image,
};
