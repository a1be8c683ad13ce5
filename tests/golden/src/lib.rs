//! Golden stores: small stores of every sort, frozen as a version of the code wrote them.
//!
//! ```text
//! cases.rs: what there is -> write.rs: stores below DIR -> archive.rs: stores/v0.1.tar.zst (committed)
//!                                                              |
//!               contents.rs: what memory held  ->  read.rs: every byte of every version compared
//! ```
//!
//! Why: FORMAT.md promises that stores of every tagged version stay readable. Tests that write and read
//! with the same code cannot see that promise broken.
//!
//! Nothing here may depend on chance or on the machine but what the library itself draws (ids, keys,
//! times): the reader computes what memory held, and has no copy of it.
//!
//! - `tests/read.rs` reads the archives that are committed. They are never made again: a later version
//!   gets an archive of its own.
//! - `tests/fresh.rs` writes the family with the code as it is and reads it, so that the writer does not
//!   rot before the next archive is due.

pub mod archive;
pub mod cases;
pub mod contents;
mod drained;
mod memory;
pub mod open;
pub mod read;
pub mod traces;
pub mod write;
