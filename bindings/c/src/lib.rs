//! libstandfast: the C library.
//!
//! Data: C arguments -> checked (`argument`) -> the job behind a handle ([`handle`]) -> the engine ->
//! a code and a text ([`error`]).
//!
//! `include/standfast.h` is generated from this crate, so names here are the names in C, and the
//! comments of functions and types are written for readers of the header.
//! `STANDFAST_TEST_BLESS=1 cargo test -p standfast-c --test header` writes it anew.
//!
//! Why integers instead of Rust enums in arguments: C may pass any number, and a Rust enum with a
//! value that it does not have is undefined.
//!
//! Invariants:
//! - No panic leaves a function: it becomes `SF_BUG`.
//! - A handle is a number to look up, not an address to follow: one that was finalized, or never
//!   existed, is refused without touching memory.
//! - The failure of a checkpoint in the background is returned by at least one later call.
//! - Results are written only on success, except that `sf_init` clears its handle first.

pub mod alloc;
mod argument;
pub mod checkpoint;
pub mod error;
pub mod handle;
pub mod init;
pub mod ranks;
pub mod region;
pub mod restart;
