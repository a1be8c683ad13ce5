//! A GPU that is none: memory of the process, the CPU references for kernels, and faults on demand.
//!
//! Data: what `crates/gpu` asks of a device in -> the same bytes that a device gives out, or the
//! fault that a test has planned. [`StandIn`] holds regions, [`StandInEngine`] compresses blocks,
//! [`host_erasure`] multiplies for a star, [`DevicePieces`] keep its pieces, here or on a real device.
//! [`deflate`] and [`float`] are the references of the kernels that compress. Everything above is the
//! same as with a device, so machines without one test it all.

pub mod deflate;
mod encode;
mod erasure;
mod faults;
pub mod float;
mod memory;
mod pieces;
mod queue;

pub use erasure::{device_pieces, host_erasure};
pub use faults::{Faults, Step};
pub use memory::{Arena, Lane, StandIn, StandInFiller, Tracker};
pub use pieces::{Body, DevicePieces};
pub use queue::StandInEngine;
