//! Blocks compressed by a device that is none.

use std::sync::{Arc, Mutex};

use standfast_gpu::gpu_queue::{BLOCK_BYTES, Engine};
use standfast_gpu::memory::Encoding;
use standfast_gpu::{Packed, Result};

use crate::encode::{chunks_of, pack};
use crate::{Faults, Step, deflate};

/// The CPU references, with faults on demand.
pub struct StandInEngine {
    faults: Faults,
    done: [(Packed, Vec<u8>); 2],
    /// Blocks of every batch that was started.
    started: Arc<Mutex<Vec<usize>>>,
}

impl StandInEngine {
    /// With these faults to come. `started` gets the number of blocks of every batch.
    pub fn new(faults: Faults, started: Arc<Mutex<Vec<usize>>>) -> Self {
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
            chunks.extend(chunks_of(block, encoding, deflate::encode_part)?);
        }
        self.done[lane] = pack(&chunks);
        Ok(())
    }

    fn finish(&mut self, lane: usize) -> Result<(Packed, &[u8])> {
        self.faults.check(Step::Wait)?;
        let (packed, bytes) = &self.done[lane];
        Ok((packed.clone(), bytes))
    }
}
