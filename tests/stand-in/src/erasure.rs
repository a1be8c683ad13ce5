//! Products and pieces of a star on a device that is none: memory of the process and the CPU kernels.

use standfast_gpu::erasure::{HostErasure, Input, Lane, Matrix, Output, Room, multiply};
use standfast_gpu::{DeviceSlice, Result};

use crate::{Body, DevicePieces, Faults, Step};

/// Multiplies as a device would, with these faults to come.
pub fn host_erasure(room: Room, faults: &Faults) -> Result<HostErasure> {
    HostErasure::with(room, || Ok(Box::new(StandInLane::new(faults.clone())?)))
}

/// Keeps pieces as a device would, with these faults to come.
pub fn device_pieces(faults: &Faults) -> DevicePieces {
    let faults = faults.clone();
    DevicePieces::with(move |bytes| Ok(Box::new(StandInBody::new(bytes, faults.clone())?)))
}

/// One piece, multiplied at once.
struct StandInLane {
    faults: Faults,
    rows: Vec<Vec<u8>>,
}

impl StandInLane {
    fn new(faults: Faults) -> Result<Self> {
        faults.check(Step::Lane)?;
        Ok(Self { faults, rows: Vec::new() })
    }
}

impl Lane for StandInLane {
    fn start(&mut self, matrix: &Matrix, shards: &[Input<'_>], _: &mut [Output<'_>]) -> Result<()> {
        self.faults.check(Step::Copy)?;
        let shards: Vec<&[u8]> = shards
            .iter()
            .map(|shard| match *shard {
                Input::Pageable(bytes) | Input::Pinned(bytes) => bytes,
                // SAFETY: a slice of a stand-in is memory of this process, which outlives it and
                // which nobody writes while it is multiplied.
                Input::Device(slice) => unsafe {
                    std::slice::from_raw_parts(address(slice), slice.bytes())
                },
            })
            .collect();
        self.faults.check(Step::Encode)?;
        self.rows = multiply(matrix, &shards);
        Ok(())
    }

    fn finish(&mut self, out: &mut [Output<'_>]) -> Result<()> {
        self.faults.check(Step::Wait)?;
        for (row, to) in self.rows.iter().zip(out) {
            let (Output::Pageable(to) | Output::Pinned(to)) = to;
            to.copy_from_slice(row);
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }
}

fn address(slice: DeviceSlice<'_>) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(slice.address() as usize)
}

/// Memory of the process as if it were a device's.
struct StandInBody {
    at: *mut u8,
    bytes: usize,
    faults: Faults,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for StandInBody {}

impl StandInBody {
    fn new(bytes: usize, faults: Faults) -> Result<Self> {
        faults.check(Step::Arena)?;
        let at = Box::into_raw(vec![0_u8; bytes].into_boxed_slice()).cast::<u8>();
        Ok(Self { at, bytes, faults })
    }
}

impl Drop for StandInBody {
    fn drop(&mut self) {
        let all = std::ptr::slice_from_raw_parts_mut(self.at, self.bytes);
        // SAFETY: what `new` took, given back once.
        drop(unsafe { Box::from_raw(all) });
    }
}

impl Body for StandInBody {
    fn slice(&self) -> DeviceSlice<'_> {
        // SAFETY: it lives as long as `self`; a stand-in knows no alignment.
        unsafe { DeviceSlice::from_raw(self.at.expose_provenance() as u64, self.bytes) }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        self.faults.check(Step::Copy)?;
        let to = address(self.slice().part(at, bytes.len()));
        // SAFETY: within our memory, which is borrowed exclusively.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn read(&self, at: usize, into: &mut [u8]) -> Result<()> {
        self.faults.check(Step::Copy)?;
        let from = address(self.slice().part(at, into.len()));
        // SAFETY: within our memory.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }
}
