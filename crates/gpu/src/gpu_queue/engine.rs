//! What a device must be able to do to compress blocks, and a stand-in made of the CPU references.

use crate::deflate;
use crate::error::Result;
use crate::float;
use crate::gpu_queue::BLOCK_BYTES;
use crate::memory::{Encoding, Faults, Step};
use crate::packed::Packed;

/// Two lanes through a device.
pub trait Engine: Send {
    /// Memory of the host for a block, such as the device reads best.
    type Slot: std::ops::DerefMut<Target = [u8]> + Send + 'static;

    /// A slot.
    fn slot(&self) -> Result<Self::Slot>;

    /// Queues encoding these blocks on a lane. The slots are left alone until it has finished.
    fn start(
        &mut self,
        lane: usize,
        encoding: Encoding,
        blocks: &mut [&mut Self::Slot],
    ) -> Result<()>;

    /// Waits for a lane: lengths of its chunks, and the chunks, equally many for each block. Those
    /// of Deflate are parts of a stream.
    fn finish(&mut self, lane: usize) -> Result<(Packed, &[u8])>;
}

/// The CPU references, with faults on demand.
pub struct StandInEngine {
    faults: Faults,
    done: [(Packed, Vec<u8>); 2],
    /// Blocks of every batch that was started.
    started: std::sync::Arc<std::sync::Mutex<Vec<usize>>>,
}

impl StandInEngine {
    /// With these faults to come. `started` gets the number of blocks of every batch.
    pub fn new(faults: Faults, started: std::sync::Arc<std::sync::Mutex<Vec<usize>>>) -> Self {
        Self { faults, done: Default::default(), started }
    }
}

impl Engine for StandInEngine {
    type Slot = Box<[u8]>;

    fn slot(&self) -> Result<Box<[u8]>> {
        Ok(vec![0; BLOCK_BYTES].into())
    }

    fn start(
        &mut self,
        lane: usize,
        encoding: Encoding,
        blocks: &mut [&mut Box<[u8]>],
    ) -> Result<()> {
        self.faults.check(Step::Encode)?;
        self.started.lock().expect("nobody panics").push(blocks.len());
        let mut chunks: Vec<Vec<u8>> = Vec::new();
        for block in blocks {
            match encoding {
                Encoding::Raw => chunks.push(block.to_vec()),
                Encoding::Float(element) => {
                    let stream = float::encode(block, element);
                    let parsed = float::parse(&stream)?;
                    let own = parsed.packed.ranges().map(|range| parsed.payload[range].to_vec());
                    chunks.extend(own);
                }
                Encoding::Deflate => {
                    chunks.extend(block.chunks(deflate::CHUNK_BYTES).map(deflate::encode_part));
                }
            }
        }
        let packed = Packed::new(chunks.iter().map(|chunk| chunk.len() as u32).collect());
        let mut bytes = vec![0; packed.bytes()];
        for (range, chunk) in packed.ranges().zip(chunks) {
            bytes[range].copy_from_slice(&chunk);
        }
        self.done[lane] = (packed, bytes);
        Ok(())
    }

    fn finish(&mut self, lane: usize) -> Result<(Packed, &[u8])> {
        self.faults.check(Step::Wait)?;
        let (packed, bytes) = &self.done[lane];
        Ok((packed.clone(), bytes))
    }
}
