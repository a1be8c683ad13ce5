//! Restarting: from what a store holds back to a rank's memory, every page verified.
//!
//! ```text
//! manifests -> merge -> Restart::newest, Restart::restore
//!   image -> Rebuild::open (segments, references proven) -> plan -> Rebuild::rebuild -> Sink
//! ```
//! A [`Sink`] is memory, files, or only a check. Below [`Restart`], which ranks do together, stands
//! how one of them brings a checkpoint back, or says exactly which object keeps it from coming back.

mod distrust;
mod error;
mod exchange;
mod holders;
mod lazy;
mod plan;
mod read_back;
mod read_sharing;
mod rebuild;
mod region_sink;
mod remote;
mod restart;
mod restart_plan;
mod sink;
mod slots;
mod stores;

pub use error::{Error, Phase, Result, Stop};
pub use lazy::Lazy;
pub use plan::{EXTENT_BYTES_MAX, Extent, Piece, plan, plan_all};
pub use rebuild::{
    Failed, Rebuild, Stranded, Stream, Unproven, WholeBlock, check_segment, each_block,
};
pub use region_sink::Destinations;
pub use remote::{Slots, wanted_pages};
pub use restart::{
    Filled, GlobalStore, Restart, Restored, Ring, RingRebuilt, Skipped, Way, segments_of,
};
pub use restart_plan::{Candidate, merge, split_line};
pub use sink::{MemorySink, Sink};
pub use slots::SlotReader;
pub use standfast_checkpoint::{
    Damaged, Inventory, Unreadable, check_manifests, complete_header, damaged_headers,
    decode_image, history, read_drains, read_header, read_image,
};
pub use stores::StoreGroups;
