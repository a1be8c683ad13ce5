//! Compressed chunks, one after the other: what both codecs of the device produce.
//!
//! Data: chunks in slots -> sizes -> starts (each a multiple of 16) -> packed bytes.
//!
//! Why the padding: copies of 16 bytes at once. It costs 8 bytes a chunk on average.

use crate::device::{DeviceBuffer, DeviceSlice, Gpu, PinnedBuffer, Stream};
use crate::error::{Error, Result};
use crate::pages;
pub use standfast_reduce::float::{CHUNK_ALIGN, Packed};

/// Memory in which chunks are compressed side by side before they are packed.
pub(crate) struct Slots {
    pub(crate) slots: DeviceBuffer,
    pub(crate) sizes: DeviceBuffer,
    pub(crate) starts: DeviceBuffer,
    told: PinnedBuffer,
    slot_bytes: usize,
    chunk_bytes: usize,
    chunks_max: usize,
}

impl Slots {
    /// For inputs of up to `bytes_max`.
    pub(crate) fn new(
        gpu: &Gpu,
        bytes_max: usize,
        chunk_bytes: usize,
        slot_bytes: usize,
    ) -> Result<Self> {
        let chunks_max = bytes_max.div_ceil(chunk_bytes);
        Ok(Slots {
            slots: gpu.allocate("chunks being compressed", chunks_max * slot_bytes)?,
            sizes: gpu.allocate("sizes of chunks", chunks_max * 8)?,
            starts: gpu.allocate("places of chunks", (chunks_max + 1) * 8)?,
            told: gpu.pinned("sizes of chunks", chunks_max * 8)?,
            slot_bytes,
            chunk_bytes,
            chunks_max,
        })
    }

    /// Number of chunks of an input, which must fit, into an output of the largest size.
    pub(crate) fn admit(&self, input: DeviceSlice<'_>, out: DeviceSlice<'_>) -> Result<u64> {
        let chunks = input.bytes().div_ceil(self.chunk_bytes);
        if chunks > self.chunks_max {
            return Err(Error::invalid(format!("{} bytes are too many at once", input.bytes())));
        }
        if !input.address().is_multiple_of(CHUNK_ALIGN as u64) {
            return Err(Error::invalid("input that does not start at a multiple of 16"));
        }
        if out.bytes() < chunks * self.slot_bytes {
            return Err(Error::invalid(format!("{} bytes of room are not enough", out.bytes())));
        }
        Ok(chunks as u64)
    }

    /// Queues computing the starts and telling the host the sizes.
    pub(crate) fn queue_starts(&mut self, stream: &Stream, chunks: u64) -> Result<()> {
        let bytes = chunks as usize * 8;
        // SAFETY: both hold `chunks_max` entries, `starts` one more; `told` is read only after
        // the stream was waited for.
        unsafe {
            pages::queue_scan(
                stream,
                self.sizes.slice(),
                self.starts.slice(),
                chunks,
                CHUNK_ALIGN as u64,
            )?;
            stream.queue_download(self.sizes.first(bytes), &mut self.told[..bytes])
        }
    }

    /// The sizes, after the stream was waited for.
    pub(crate) fn packed(&self, chunks: u64) -> Packed {
        let (words, _) = self.told[..chunks as usize * 8].as_chunks::<8>();
        let size = |word: &[u8; 8]| {
            u32::try_from(u64::from_le_bytes(*word)).expect("a chunk is shorter than 4 GiB")
        };
        Packed::new(words.iter().map(size).collect())
    }
}
