//! The device: found at run time, with typed reasons where it is not.
//!
//! Data: nothing -> [`Gpu::open`] -> memory ([`DeviceBuffer`], [`PinnedBuffer`]), queues
//! ([`Stream`]) and kernels.
//!
//! Why a layer of our own over the driver: the program that we checkpoint uses the device too.
//! We take the device's primary context, which the CUDA run time of the program shares, so its
//! pointers are valid in our kernels; and we allocate only what is asked for here.
//!
//! Invariants:
//! - Without driver, compiler or device, [`Gpu::open`] returns an error; nothing panics.

//! - Without the feature `cuda` the types are there and have no values: what needs a device still
//!   compiles, and [`Gpu::open`] says why there is none.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod buffer;
#[cfg(feature = "cuda")]
mod failure;
#[cfg(feature = "cuda")]
mod gpu;
mod launch;
mod slice;
#[cfg(feature = "cuda")]
mod stream;

#[cfg(not(feature = "cuda"))]
pub use absent::{DeviceBuffer, Gpu, PinnedBuffer, Stream, downloaded_bytes};
#[cfg(feature = "cuda")]
pub use buffer::{DeviceBuffer, PinnedBuffer};
#[cfg(feature = "cuda")]
pub use gpu::Gpu;
pub(crate) use launch::{Args, Shape};
pub use slice::DeviceSlice;
#[cfg(feature = "cuda")]
pub use stream::{Stream, downloaded_bytes};
