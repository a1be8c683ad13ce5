//! Codec for arrays of numbers on the device.
//!
//! Format, encoder and decoder for the CPU are in [`standfast_reduce::float`]; the bytes that
//! [`DeviceFloat`] writes are the same, and a restart needs no device to read them.

mod device;

pub use device::DeviceFloat;
#[cfg(test)]
pub(crate) use device::KERNELS;
pub use standfast_reduce::float::{
    CHUNK_BYTES, CHUNK_HEADER_BYTES, Element, STREAM_HEADER_BYTES, Stream, decode, encode, frame,
    parse,
};

#[cfg(test)]
mod tests;
