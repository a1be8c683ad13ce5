//! The checkpoints of a store: which there are, and how another is committed, in the one documented
//! order.
//!
//! Data: manifests -> [`Inventory`]. Sealed segments and [`Described`] images -> [`publishing`], which
//! says what comes next, and [`Publisher`], which does it to a store: images, manifest (now the
//! checkpoint exists), prune of what is beyond `keep`.
//!
//! Why a room of its own: ranks that write by themselves, agents that write for them and who redeems
//! pledges do the same steps. `docs/FORMAT.md` has the order and what a crash leaves where.
//!
//! Invariants:
//! - Each step is durable before the next begins; nothing here knows how ranks talk.
//! - A manifest that may be there although writing it failed keeps its files.

pub mod busy;
pub mod compact;
mod described;
mod error;
pub mod failpoint;
mod header;
pub mod history;
mod holdings;
mod inventory;
pub mod mark;
pub mod prune;
mod publish;
pub mod publishing;
mod relocate;
mod unreadable;

pub use described::{Described, Part, StreamPlace, known_segments, unplaced};
pub use error::{Error, Result};
pub use failpoint::{FAILPOINTS, RING_FAILPOINTS};
pub use header::{
    check_manifests, check_manifests_strictly, complete_header, damaged_headers, read_header,
};
pub use holdings::Holdings;
pub use inventory::{Damaged, Inventory, decode_image, read_drains, read_image};
pub use publish::{Entry, Order, Publisher, refresh};
pub use relocate::{Moved, relocate};
pub use unreadable::Unreadable;
