//! A GPU that is none: memory of the process, the CPU references for kernels, and faults on demand.
//!
//! Data: what `crates/gpu` asks of a device in -> the same bytes that a device gives out, or the
//! fault that a test has planned. [`StandIn`] holds regions, [`StandInEngine`] compresses blocks,
//! [`host_erasure`] and [`device_pieces`] multiply and keep pieces of a star, [`deflate`] is the reference
//! of a kernel that has none in the product. Everything above those
//! traits is the same as with a device, so machines without one test it all.

pub mod deflate;
mod encode;
mod erasure;
mod faults;
mod memory;
mod queue;

pub use erasure::{device_pieces, host_erasure};
pub use faults::{Faults, Step};
pub use memory::{Arena, Lane, StandIn, StandInFiller, Tracker};
pub use queue::StandInEngine;
