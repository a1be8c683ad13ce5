//! Hashing, erasure coding and compression on an NVIDIA GPU, each with a CPU reference.
//!
//! Data: device memory of the program, or host memory in pieces -> kernels -> digests, parity,
//! compressed chunks -> pinned host buffers. docs/GPU.md has the formats, what runs where, and
//! measured figures.
//!
//! With the feature `cuda`, driver and compiler are loaded at run time: this crate builds and its CPU
//! halves work on machines without either. [`Gpu::open`] says what is missing. Whatever the device writes
//! a CPU alone can read, so a restart needs no GPU.
//!
//! ```
//! use standfast_gpu::Gpu;
//!
//! match Gpu::open() {
//!     Ok(gpu) => println!("{} with {} bytes", gpu.name(), gpu.memory_bytes()),
//!     Err(why) => println!("no GPU is used: {why}"),
//! }
//! ```
//!
//! What it is not: a general GPU toolkit, or a part of the checkpoint path that must be there.
//!
//! Invariants:
//! - Every kernel has a reference on the CPU that produces the same bytes (those that only tests need
//!   are in `tests/stand-in`), and both meet the same test vectors: the reference in tests, the kernel
//!   in the lab's `gpu-check`.
//! - No call takes memory that grows without a bound given by its caller.

pub mod deflate;
mod device;
mod encoder;
pub mod erasure;
mod error;
mod fair_queue;
pub mod float;
pub mod gpu_queue;
pub mod hash;
mod kernels;
pub mod lanes;
pub mod memory;
mod packed;
pub mod pages;

pub use device::{DeviceBuffer, DeviceSlice, Gpu, PinnedBuffer, Stream, downloaded_bytes};
pub use encoder::DeviceEncoder;
pub use error::{Error, Result, Unavailable, Version};
pub use packed::{CHUNK_ALIGN, Packed};
