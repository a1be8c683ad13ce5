//! Opening the device that a pointer belongs to.

use standfast_capture::{Device, DeviceError, DeviceResult};
use standfast_format::Kind;

use super::{Cuda, DeviceMemory, Settings};
use crate::device::Gpu;
use crate::error::Unavailable;

/// The device with this number, for device regions. Where our kernels cannot run (an old driver, no
/// compiler) it still is one: the processor then works on copies, and says so.
pub fn open(ordinal: usize, settings: Settings) -> DeviceResult<Box<dyn Device>> {
    let (gpu, without) = match Gpu::open_ordinal(ordinal) {
        Ok(gpu) => (gpu, None),
        Err(
            why @ (Unavailable::DriverTooOld { .. }
            | Unavailable::NoCompiler
            | Unavailable::DeviceTooOld { .. }),
        ) => (plain(ordinal)?, Some(why.to_string())),
        Err(why) => return Err(unavailable(&why)),
    };
    let cuda = Cuda::new(gpu, &settings.key)?;
    Ok(Box::new(DeviceMemory::new(cuda, settings, without)))
}

/// The number of the device on which this address lies.
pub fn pointer_device(at: u64) -> DeviceResult<usize> {
    match Gpu::ordinal_of(at).map_err(|why| unavailable(&why))? {
        Some(ordinal) => Ok(ordinal),
        None => {
            let why = format!("{at:#x} is no memory of a CUDA device: cudaMalloc gives some");
            Err(DeviceError { kind: Kind::Invalid, why })
        }
    }
}

fn plain(ordinal: usize) -> DeviceResult<Gpu> {
    Gpu::open_for_copies(ordinal).map_err(|why| unavailable(&why))
}

fn unavailable(why: &Unavailable) -> DeviceError {
    DeviceError { kind: Kind::Unsupported, why: why.to_string() }
}
