//! The checkpoints of a store: which there are, and how another is committed, in the one documented
//! order.
//!
//! Data: manifests -> [`Inventory`]. Sealed segments -> [`Publisher::write_image`] for every rank -> [`Publisher::publish`]:
//! now the checkpoint exists -> what is beyond `keep` is pruned.
//!
//! Why a room of its own: ranks that write by themselves and the agent that writes for them do the
//! same steps. `docs/FORMAT.md` has the order and what a crash leaves where.
//!
//! Invariants:
//! - Each step is durable before the next begins; nothing here knows how ranks agree on that.
//! - A manifest that may be there although writing it failed keeps its files.

pub mod busy;
mod described;
mod error;
pub mod failpoint;
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
pub use holdings::Holdings;
pub use inventory::{Damaged, Inventory, decode_image, read_drains, read_header, read_image};
pub use publish::{Entry, Order, Publisher, refresh};
pub use relocate::{Moved, relocate};
pub use unreadable::Unreadable;
