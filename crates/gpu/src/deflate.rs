//! Deflate on the device: the whole codec there, output that every inflater reads.
//!
//! Data: bytes -> chunks of 64 KiB -> filter (byte planes of numbers, or none) -> one raw Deflate
//! stream (RFC 1951) each. The kernel's reference on the CPU is `tests/stand-in`'s, which makes the
//! same bytes. A chunk is what the block decoder of `standfast-reduce` takes as a block with
//! codec Deflate and that filter.
//!
//! Why a stream per chunk: chunks are compressed side by side, and a reader can decompress any of
//! them alone, also side by side. Blocks of several chunks are made of parts that end between two
//! bytes ([`DeviceDeflate::parts`]): put together they are one stream.
//!
//! Why not zlib's algorithm: it walks from byte to byte. Here every position of a chunk looks for
//! matches at the same time, at fixed short offsets and where its hash was last seen; only the
//! choice among the matches walks, and only from match to match.
//!
//! Invariant: a chunk never grows by more than 10 bytes.

use standfast_format::FilterKind;

use crate::device::{Args, DeviceBuffer, DeviceSlice, Gpu, Shape, Stream};
use crate::error::Result;
use crate::kernels::{DEFLATE, Kernel};
use crate::packed::{Packed, Slots};
use crate::pages;

/// Ends a stream made of parts: an empty stored block, the last one.
pub const END_OF_STREAM: [u8; 5] = [1, 0, 0, 0xff, 0xff];

/// Raw bytes of a full chunk.
pub const CHUNK_BYTES: usize = 65536;

/// Element size of the filter; 1 where bytes stay as they are. Panics if the filter takes differences.
pub fn element_bytes(filter: FilterKind) -> usize {
    match filter {
        FilterKind::None => 1,
        FilterKind::Shuffle4 => 4,
        FilterKind::Shuffle8 => 8,
        // Chosen by the caller, never read from anywhere.
        FilterKind::Delta4 | FilterKind::Delta8 => panic!("the device has no filter {filter}"),
    }
}

/// A chunk's slot, threads and shared memory of a block; as in the source.
const SLOT_BYTES: usize = CHUNK_BYTES + 16;
const THREADS: u32 = 512;
const SHARED_BYTES: u32 = 110 * 1024;
/// Blocks that fit on a multiprocessor at a time.
const BLOCKS_EACH: u32 = 2;

const DEFLATE_CHUNKS: Kernel = Kernel::new(&DEFLATE, "deflate_chunks").shared(SHARED_BYTES);
#[cfg(test)]
pub(crate) const KERNELS: &[Kernel] = &[DEFLATE_CHUNKS];

/// Compresses on the device, with memory of its own for inputs of up to a given size.
pub struct DeviceDeflate {
    filter: FilterKind,
    /// Whether every chunk is a stream of its own.
    last: bool,
    slots: Slots,
    scratch: DeviceBuffer,
    blocks: u32,
    chunks: u64,
}

impl DeviceDeflate {
    /// For inputs of up to `bytes_max`, each chunk filtered first and a stream of its own. Takes that
    /// much device memory and 256 KiB for each block that runs at a time. Encoding panics if the
    /// filter takes differences: devices only shuffle.
    pub fn new(gpu: &Gpu, filter: FilterKind, bytes_max: usize) -> Result<Self> {
        Self::with(gpu, filter, bytes_max, true)
    }

    /// The same without a filter, every chunk a part of a stream that [`END_OF_STREAM`] ends.
    pub fn parts(gpu: &Gpu, bytes_max: usize) -> Result<Self> {
        Self::with(gpu, FilterKind::None, bytes_max, false)
    }

    fn with(gpu: &Gpu, filter: FilterKind, bytes_max: usize, last: bool) -> Result<Self> {
        let blocks = gpu.multiprocessors() * BLOCKS_EACH;
        Ok(DeviceDeflate {
            filter,
            last,
            slots: Slots::new(gpu, bytes_max, CHUNK_BYTES, SLOT_BYTES)?,
            scratch: gpu.allocate("matches", blocks as usize * CHUNK_BYTES * 4)?,
            blocks,
            chunks: 0,
        })
    }

    /// Room that the output of `bytes` of input must have.
    pub fn out_bytes_max(bytes: usize) -> usize {
        bytes.div_ceil(CHUNK_BYTES) * SLOT_BYTES
    }

    /// Queues compressing; [`packed`](Self::packed) tells the outcome after the stream was waited
    /// for. Every chunk of `out` is a raw Deflate stream of the filtered chunk: what a block with
    /// codec Deflate and this filter holds.
    pub fn queue_encode(
        &mut self,
        stream: &Stream,
        input: DeviceSlice<'_>,
        out: DeviceSlice<'_>,
    ) -> Result<()> {
        self.chunks = self.slots.admit(input, out)?;
        let args = Args::new()
            .slice(input)
            .word(input.bytes() as u64)
            .half(element_bytes(self.filter) as u32)
            .half(u32::from(self.last))
            .slice(self.scratch.slice())
            .slice(self.slots.slots.slice())
            .slice(self.slots.sizes.slice());
        let blocks = self.chunks.min(u64::from(self.blocks));
        let shape = Shape::blocks(blocks, THREADS).shared(SHARED_BYTES);
        // SAFETY: the kernels' arguments in order; `scratch` serves as many blocks as are
        // started, and `admit` checked that all chunks fit.
        unsafe {
            stream.launch(DEFLATE_CHUNKS, shape, args)?;
            self.slots.queue_starts(stream, self.chunks)?;
            pages::queue_pack(
                stream,
                self.slots.slots.slice(),
                SLOT_BYTES as u64,
                self.slots.sizes.slice(),
                self.slots.starts.slice(),
                self.chunks,
                out,
            )
        }
    }

    /// Lengths of the chunks of the last call, after its stream was waited for.
    pub fn packed(&self) -> Packed {
        self.slots.packed(self.chunks)
    }
}
