//! Where Standfast's objects live: a directory, memory, or an object store.
//!
//! Data: `pack` and `drain` append bytes to an object and seal it; `restart` and the commands
//! list objects and read them back. A store knows names and bytes, nothing of what they mean.
//!
//! ```
//! use standfast_store::{MemoryStore, Store};
//!
//! let store = MemoryStore::new();
//! let mut writer = store.create("segments/0001", None)?;
//! writer.append(b"some pages")?;
//! assert!(store.list("segments")?.is_empty(), "invisible until sealed");
//! writer.seal()?;
//! assert_eq!(store.get("segments/0001", 1024)?, b"some pages");
//! # Ok::<(), standfast_store::Error>(())
//! ```
//!
//! What this is not: a cache, a network protocol, or a checker of contents. Checksums belong to
//! the formats above; a store returns the bytes that the medium returns.

mod absence;
mod contract;
mod count;
mod dir;
mod encrypted;
mod error;
mod failpoint;
mod holder;
mod location;
mod memory;
mod meter;
mod name;
#[cfg(feature = "object")]
mod object;
mod sizes;
mod union;

pub use absence::prove_absent;
pub use contract::{
    HELD_BYTES_MAX, Lock, LockGuard, ObjectMeta, ObjectReader, ObjectWriter, OwnedBytes, Store,
};
pub use count::{Written, written};
pub use dir::DirStore;
pub use encrypted::{EncryptedStore, Key, KeySource};
pub use error::{Error, Object, Result};
pub use failpoint::FAILPOINTS;
pub use location::{Io, Options, open};
pub use memory::MemoryStore;
pub use meter::{Pace, WriteMeter};
pub use name::{NAME_BYTES_MAX, check_name, check_prefix};
#[cfg(feature = "object")]
pub use object::ObjectStore;
pub use sizes::WriteSizes;
pub use union::UnionStore;
