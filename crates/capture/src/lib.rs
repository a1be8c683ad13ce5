//! Capture: which memory of the program is protected, and its state at one instant.
//!
//! Data: `protect` calls -> [`Regions`] -> [`Watch`] (which pages may have changed) -> slices of
//! the program's memory, or a [`Snapshot`] of it while it goes on changing, for `reduce` (at a
//! checkpoint), and slices for `restart` (to be filled).
//!
//! Besides, signals that ask for a checkpoint -> [`Requests`], looked at where the program lets it.
//!
//! What this is not: it hashes nothing and writes nothing.
//!
//! ```
//! use standfast_capture::Regions;
//!
//! let mut field = vec![0.0f64; 1000];
//! let mut regions = Regions::default();
//! // SAFETY: `field` outlives the table and nobody else uses it while the slices live.
//! unsafe { regions.protect("field", field.as_mut_ptr().cast(), 8000, 8)? };
//! assert_eq!(regions.bytes(), 8000);
//! # Ok::<(), standfast_capture::Error>(())
//! ```

mod absent;
mod device;
mod excluded;
mod huge;
mod kernel;
mod mapped;
mod memory;
mod region;
mod signal;
mod snapshot;
mod tracker;

pub use absent::{Absent, Served, end_by_bus_error, system_page_bytes};
pub use device::{
    ChangedPages, Device, DeviceError, DeviceFill, DeviceRegion, DeviceResult, Drained, Scanned,
    Which,
};
pub use excluded::Excluded;
pub use huge::HugePageJoiner;
pub use mapped::Access;
pub use memory::Memory;
pub use region::{Error, Region, Regions, Result};
pub use signal::{Requests, Signal};
pub use snapshot::{Held, Lost, Refused, Snapshot, Snapshots, Wait, Wanted};
pub use tracker::{Dirty, Hashing, Mprotect, Span, Tracker, Uffd, Watch};
