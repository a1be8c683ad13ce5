//! Regions being filled by a restart, from several threads.
//!
//! Data: verified pages -> a lane of its own for every thread that comes: two pinned buffers, one
//! being filled while the other crosses -> the region. Where there is no memory for a lane, the
//! copy waits.
//!
//! Why not one copy after the other: a copy from ordinary memory makes the driver copy it to pinned
//! memory first, on the thread that asks, and one such thread moves a quarter of what the bus can.
//!
//! Memory: 4 MiB of pinned memory for every thread that fills, until the restart is over.

use std::sync::{Mutex, MutexGuard, PoisonError};

use standfast_capture::{DeviceFill, DeviceRegion, DeviceResult};

use super::backend::{Filler, Place};
use crate::device::{DeviceSlice, Gpu, PinnedBuffer, Stream};
use crate::error::{Error, Result};

/// Bytes of one of a lane's two buffers.
const HALF_BYTES: usize = 2 << 20;

/// The regions of a device, and what fills them.
pub(super) struct Filling<F> {
    pub(super) filler: F,
    pub(super) places: Vec<Option<Place>>,
}

impl<F: Filler> Filling<F> {
    /// The address of a part of a region.
    fn address(&self, region: DeviceRegion, offset: u64, bytes: u64) -> Result<u64> {
        let place = self.places.get(region.0 as usize).copied().flatten();
        let place =
            place.ok_or_else(|| Error::invalid(format!("no device region {}", region.0)))?;
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= place.bytes as u64);
        match fits {
            true => Ok(place.at + offset),
            false => Err(Error::invalid(format!("{bytes} bytes at {offset} of a device region"))),
        }
    }
}

impl<F: Filler> DeviceFill for Filling<F> {
    fn pages(&self, region: DeviceRegion, offset: u64, bytes: &[u8]) -> DeviceResult<()> {
        let at = self.address(region, offset, bytes.len() as u64)?;
        Ok(self.filler.write(at, bytes)?)
    }

    fn zeros(&self, region: DeviceRegion, offset: u64, bytes: u64) -> DeviceResult<()> {
        let at = self.address(region, offset, bytes)?;
        Ok(self.filler.zero(at, bytes as usize)?)
    }

    fn finish(&self) -> DeviceResult<()> {
        Ok(self.filler.finish()?)
    }
}

/// Fills memory of an NVIDIA device.
pub struct CudaFiller {
    gpu: Gpu,
    /// Lanes that no thread has.
    idle: Mutex<Vec<Lane>>,
    /// For zeros, and for pages where there is no lane.
    plain: Mutex<Stream>,
}

impl CudaFiller {
    pub(super) fn new(gpu: &Gpu) -> Result<Self> {
        let (idle, plain) = (Mutex::default(), Mutex::new(gpu.stream_or_shared()?));
        Ok(Self { gpu: gpu.clone(), idle, plain })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plain(&self) -> MutexGuard<'_, Stream> {
        self.plain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_lane(&self) -> Result<Lane> {
        let idle = self.idle().pop();
        idle.map_or_else(|| Lane::new(&self.gpu), Ok)
    }
}

impl Filler for CudaFiller {
    fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        match self.take_lane() {
            Ok(mut lane) => {
                let put = lane.put(at, bytes);
                self.idle().push(lane);
                put
            }
            Err(error) if error.is_made_good() => {
                // SAFETY: whoever registered the region keeps it allocated until it is released.
                self.plain().upload(bytes, unsafe { DeviceSlice::from_raw(at, bytes.len()) })
            }
            Err(error) => Err(error),
        }
    }

    fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        // SAFETY: as above.
        self.plain().fill(unsafe { DeviceSlice::from_raw(at, bytes) }, 0)
    }

    fn finish(&self) -> Result<()> {
        let mut outcome = self.plain().wait();
        for lane in self.idle().drain(..) {
            outcome = outcome.and(lane.finish());
        }
        outcome
    }
}

/// Two buffers, one being filled while the other crosses.
struct Lane {
    halves: [Half; 2],
    current: usize,
}

struct Half {
    stream: Stream,
    buffer: PinnedBuffer,
    used: usize,
}

impl Lane {
    fn new(gpu: &Gpu) -> Result<Self> {
        let half = || -> Result<Half> {
            let (stream, buffer) = (gpu.stream()?, gpu.pinned("pages to put back", HALF_BYTES)?);
            Ok(Half { stream, buffer, used: 0 })
        };
        Ok(Self { halves: [half()?, half()?], current: 0 })
    }

    fn put(&mut self, mut at: u64, bytes: &[u8]) -> Result<()> {
        for part in bytes.chunks(HALF_BYTES) {
            if self.halves[self.current].used + part.len() > HALF_BYTES {
                self.current = 1 - self.current;
                let half = &mut self.halves[self.current];
                half.stream.wait()?;
                half.used = 0;
            }
            let Half { stream, buffer, used } = &mut self.halves[self.current];
            let from = &mut buffer[*used..*used + part.len()];
            from.copy_from_slice(part);
            *used += part.len();
            // SAFETY: whoever registered the region keeps it allocated until it is released; `from`
            // is written again only after a wait.
            unsafe { stream.queue_upload(from, DeviceSlice::from_raw(at, part.len()))? };
            at += part.len() as u64;
        }
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        self.halves[0].stream.wait().and(self.halves[1].stream.wait())
    }
}
