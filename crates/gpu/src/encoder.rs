//! What encodes on the device, whichever codec it is.

use crate::deflate::DeviceDeflate;
use crate::device::{DeviceSlice, Stream};
use crate::error::Result;
use crate::float::DeviceFloat;
use crate::packed::Packed;

/// An encoder on the device, with memory of its own.
pub enum DeviceEncoder {
    /// Byte planes of numbers.
    Float(DeviceFloat),
    /// Deflate in chunks of 64 KiB.
    Deflate(DeviceDeflate),
}

impl DeviceEncoder {
    /// Queues encoding; [`packed`](Self::packed) tells the outcome after the stream was waited for.
    pub fn queue_encode(
        &mut self,
        stream: &Stream,
        input: DeviceSlice<'_>,
        out: DeviceSlice<'_>,
    ) -> Result<()> {
        match self {
            DeviceEncoder::Float(float) => float.queue_encode(stream, input, out),
            DeviceEncoder::Deflate(deflate) => deflate.queue_encode(stream, input, out),
        }
    }

    /// Lengths of the chunks of the last encoding.
    pub fn packed(&self) -> Packed {
        match self {
            DeviceEncoder::Float(float) => float.packed(),
            DeviceEncoder::Deflate(deflate) => deflate.packed(),
        }
    }
}
