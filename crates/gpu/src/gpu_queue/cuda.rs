//! Blocks through an NVIDIA device: each lane has a stream and buffers of its own.

use super::engine::Engine;
use super::{BLOCK_BYTES, LANE_BLOCKS, LANES};
use crate::deflate::DeviceDeflate;
use crate::device::{DeviceBuffer, Gpu, PinnedBuffer, Stream};
use crate::encoder::DeviceEncoder;
use crate::error::Result;
use crate::float::DeviceFloat;
use crate::memory::Encoding;
use crate::packed::Packed;

const LANE_BYTES: usize = LANE_BLOCKS * BLOCK_BYTES;

/// Two lanes through a device.
pub struct CudaEngine {
    gpu: Gpu,
    lanes: Vec<Lane>,
}

struct Lane {
    stream: Stream,
    input: DeviceBuffer,
    filled: usize,
    /// Made when first wanted, and kept.
    encoders: Vec<(Encoding, DeviceEncoder)>,
    current: Option<usize>,
    out: DeviceBuffer,
    host: PinnedBuffer,
}

impl CudaEngine {
    /// With all its memory, but for what each codec needs.
    pub fn new(gpu: &Gpu) -> Result<Self> {
        let out_bytes =
            DeviceFloat::out_bytes_max(LANE_BYTES).max(DeviceDeflate::out_bytes_max(LANE_BYTES));
        let lane = || {
            Ok(Lane {
                stream: gpu.stream()?,
                input: gpu.allocate("blocks to compress", LANE_BYTES)?,
                filled: 0,
                encoders: Vec::new(),
                current: None,
                out: gpu.allocate("compressed blocks", out_bytes)?,
                host: gpu.pinned("compressed blocks", out_bytes)?,
            })
        };
        let lanes = (0..LANES).map(|_| lane()).collect::<Result<_>>()?;
        Ok(Self { gpu: gpu.clone(), lanes })
    }
}

impl Engine for CudaEngine {
    type Slot = PinnedBuffer;

    fn slot(&self) -> Result<PinnedBuffer> {
        self.gpu.pinned("a block", BLOCK_BYTES)
    }

    fn start(
        &mut self,
        lane: usize,
        encoding: Encoding,
        blocks: &mut [&mut PinnedBuffer],
    ) -> Result<()> {
        let lane = &mut self.lanes[lane];
        lane.filled = blocks.len() * BLOCK_BYTES;
        for (at, block) in blocks.iter().enumerate() {
            let to = lane.input.slice().part(at * BLOCK_BYTES, BLOCK_BYTES);
            // SAFETY: the queue leaves the slot alone until this lane has finished, which waits.
            unsafe { lane.stream.queue_upload(block, to)? };
        }
        lane.current = lane.encoder(&self.gpu, encoding)?;
        let (input, out) = (lane.input.first(lane.filled), lane.out.slice());
        match lane.current {
            Some(at) => lane.encoders[at].1.queue_encode(&lane.stream, input, out),
            None => Ok(()),
        }
    }

    fn finish(&mut self, lane: usize) -> Result<(Packed, &[u8])> {
        let Lane { stream, input, filled, encoders, current, out, host } = &mut self.lanes[lane];
        stream.wait()?;
        let (packed, from) = match current {
            Some(at) => (encoders[*at].1.packed(), out),
            None => (Packed::new(vec![BLOCK_BYTES as u32; *filled / BLOCK_BYTES]), input),
        };
        let bytes = packed.bytes();
        stream.download(from.first(bytes), &mut host[..bytes])?;
        Ok((packed, &host[..bytes]))
    }
}

impl Lane {
    /// What encodes in this way; `None`: nothing does.
    fn encoder(&mut self, gpu: &Gpu, encoding: Encoding) -> Result<Option<usize>> {
        if let Some(at) = self.encoders.iter().position(|(known, _)| *known == encoding) {
            return Ok(Some(at));
        }
        let encoder = match encoding {
            Encoding::Raw => return Ok(None),
            Encoding::Float(element) => {
                DeviceEncoder::Float(DeviceFloat::new(gpu, element, LANE_BYTES)?)
            }
            Encoding::Deflate => DeviceEncoder::Deflate(DeviceDeflate::parts(gpu, LANE_BYTES)?),
        };
        self.encoders.push((encoding, encoder));
        Ok(Some(self.encoders.len() - 1))
    }
}
