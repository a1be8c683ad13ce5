//! Capture: which memory of the program is protected.
//!
//! Data: `protect` calls -> [`Regions`] -> [`Watch`] (which pages may have changed) -> slices of
//! the program's memory for `reduce` (at a checkpoint) and for `restart` (to be filled).
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

mod region;
mod tracker;

pub use region::{Error, Region, Regions, Result};
pub use tracker::{Dirty, Span, Tracker, Uffd, Watch};
