//! Codec for arrays of numbers on the device.
//!
//! Format and decoder for the CPU are in [`standfast_reduce::float`]: a restart needs no device to read
//! what [`DeviceFloat`] writes. The encoder's reference on the CPU is `tests/stand-in`'s.

pub use standfast_reduce::float::{
    CHUNK_BYTES, CHUNK_HEADER_BYTES, Element, STREAM_HEADER_BYTES, decode, frame, parse,
};

use crate::device::{Args, DeviceSlice, Gpu, Shape, Stream};
use crate::error::{Error, Result};
use crate::kernels::{FLOAT, Kernel};
use crate::packed::{Packed, Slots};

/// A chunk's slot while it is encoded; as in the source.
const SLOT_BYTES: usize = CHUNK_HEADER_BYTES + 8 * 512 + 8 * (128 + 32768 + 1024);
const THREADS: u32 = 256;
/// Decoding tables of one plane, and what else a decoding block shares.
const TABLE_BYTES: u32 = 8192;
const SHARED_BYTES: u32 = 128;

const ENCODE: [Kernel; 3] = [
    Kernel::new(&FLOAT, "float_encode_2"),
    Kernel::new(&FLOAT, "float_encode_4"),
    Kernel::new(&FLOAT, "float_encode_8"),
];
const PACK: Kernel = Kernel::new(&FLOAT, "float_pack");
const DECODE: [Kernel; 3] = [
    Kernel::new(&FLOAT, "float_decode_2").shared(decode_shared(2)),
    Kernel::new(&FLOAT, "float_decode_4").shared(decode_shared(4)),
    Kernel::new(&FLOAT, "float_decode_8").shared(decode_shared(8)),
];
#[cfg(test)]
pub(crate) const KERNELS: &[Kernel] =
    &[ENCODE[0], ENCODE[1], ENCODE[2], PACK, DECODE[0], DECODE[1], DECODE[2]];

const fn decode_shared(element_bytes: u32) -> u32 {
    element_bytes * TABLE_BYTES + SHARED_BYTES
}

/// Encodes and decodes on the device, with memory of its own for inputs of up to a given size.
pub struct DeviceFloat {
    element: Element,
    slots: Slots,
    chunks: u64,
}

impl DeviceFloat {
    /// For inputs of up to `bytes_max`; takes a little more than that of device memory.
    pub fn new(gpu: &Gpu, element: Element, bytes_max: usize) -> Result<Self> {
        let slots = Slots::new(gpu, bytes_max, CHUNK_BYTES, SLOT_BYTES)?;
        Ok(DeviceFloat { element, slots, chunks: 0 })
    }

    /// Room that the output of `bytes` of input must have.
    pub fn out_bytes_max(bytes: usize) -> usize {
        bytes.div_ceil(CHUNK_BYTES) * SLOT_BYTES
    }

    /// Queues encoding; [`packed`](Self::packed) tells the outcome after the stream was waited
    /// for.
    pub fn queue_encode(
        &mut self,
        stream: &Stream,
        input: DeviceSlice<'_>,
        out: DeviceSlice<'_>,
    ) -> Result<()> {
        self.chunks = self.slots.admit(input, out)?;
        let bytes = input.bytes() as u64;
        let shape = Shape::blocks(self.chunks, THREADS);
        let encode = Args::new()
            .slice(input)
            .word(bytes)
            .slice(self.slots.slots.slice())
            .slice(self.slots.sizes.slice());
        let pack = Args::new()
            .slice(input)
            .word(bytes)
            .slice(self.slots.slots.slice())
            .slice(self.slots.starts.slice())
            .slice(out);
        // SAFETY: the kernels' arguments in order; `admit` checked that all chunks fit.
        unsafe {
            stream.launch(pick(&ENCODE, self.element), shape, encode)?;
            self.slots.queue_starts(stream, self.chunks)?;
            stream.launch(PACK, shape, pack)
        }
    }

    /// Lengths of the chunks of the last encoding, after its stream was waited for.
    pub fn packed(&self) -> Packed {
        self.slots.packed(self.chunks)
    }

    /// Decodes and waits. `packed` and the bytes are those of an encoding to `out.bytes()` bytes.
    pub fn decode(
        &self,
        stream: &Stream,
        bytes: DeviceSlice<'_>,
        packed: &Packed,
        out: DeviceSlice<'_>,
    ) -> Result<()> {
        let chunks = out.bytes().div_ceil(CHUNK_BYTES);
        if packed.sizes().len() != chunks || packed.bytes() > bytes.bytes() {
            return Err(Error::damaged("float", "not as many chunks as announced"));
        }
        if out.bytes() == 0 {
            return Ok(());
        }
        let gpu = stream.gpu();
        let places: Vec<u8> = packed
            .ranges()
            .map(|range| range.start)
            .chain(packed.sizes().iter().map(|size| *size as usize))
            .flat_map(|word| (word as u64).to_le_bytes())
            .chain([0; 8])
            .collect();
        let table = gpu.allocate("places of chunks", places.len())?;
        stream.upload(&places, table.slice())?;
        let bad = table.slice().part(chunks * 16, 8);
        let args = Args::new()
            .slice(bytes)
            .slice(table.first(chunks * 8))
            .slice(table.slice().part(chunks * 8, chunks * 8))
            .slice(out)
            .word(out.bytes() as u64)
            .slice(bad);
        let shape = Shape::blocks(chunks as u64, THREADS)
            .shared(decode_shared(self.element.bytes() as u32));
        // SAFETY: the kernel's arguments in order; every chunk lies within `bytes`, the kernel
        // reads no further than a chunk's size and writes `out.bytes()` bytes.
        unsafe { stream.launch(pick(&DECODE, self.element), shape, args)? };
        let mut bad_chunks = [0; 8];
        stream.download(bad, &mut bad_chunks)?;
        match u64::from_le_bytes(bad_chunks) {
            0 => Ok(()),
            _ => Err(Error::damaged("float", "a chunk does not decode")),
        }
    }
}

fn pick(kernels: &[Kernel; 3], element: Element) -> Kernel {
    let at = match element {
        Element::Bf16 => 0,
        Element::F32 => 1,
        Element::F64 => 2,
    };
    kernels[at]
}
