//! The device through its driver.

use std::sync::{Arc, Mutex};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use sys::CUdevice_attribute as Attribute;

use crate::error::{Error, Result, Unavailable, Version};
use crate::kernels::{Kernel, Loaded};

/// The oldest driver that runs what we compile.
const DRIVER_MIN: Version = Version { major: 12, minor: 0 };
/// Warp-wide reductions came with this capability.
const CAPABILITY_MIN: Version = Version { major: 8, minor: 0 };

/// A GPU that can run our kernels. Clones share it.
#[derive(Clone)]
pub struct Gpu {
    inner: Arc<Inner>,
}

struct Inner {
    device: sys::CUdevice,
    context: sys::CUcontext,
    name: String,
    driver: Version,
    capability: Version,
    multiprocessors: u32,
    memory_bytes: usize,
    loaded: Mutex<Loaded>,
}

// SAFETY: a context may be made current on any thread; every use does so first.
unsafe impl Send for Inner {}
// SAFETY: the driver's functions are thread-safe; `loaded` is behind a mutex.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: retained once by `open`, released once here.
        let released = unsafe { result::primary_ctx::release(self.device) };
        // A lost device cannot be released any more than it can be used.
        let _ = released;
    }
}

impl Gpu {
    /// The first device.
    pub fn open() -> std::result::Result<Gpu, Unavailable> {
        Gpu::open_ordinal(0)
    }

    /// The device with this number among those visible to the process.
    pub fn open_ordinal(ordinal: usize) -> std::result::Result<Gpu, Unavailable> {
        let (driver, count) = start_driver()?;
        if driver < DRIVER_MIN {
            return Err(Unavailable::DriverTooOld { found: driver, needed: DRIVER_MIN });
        }
        if ordinal >= count {
            return Err(Unavailable::NoDevice);
        }
        // SAFETY: only tries to load the library, which has no initialisers of ours.
        if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
            return Err(Unavailable::NoCompiler);
        }
        let inner = retain(ordinal, driver).map_err(Unavailable::of)?;
        if inner.capability < CAPABILITY_MIN {
            return Err(Unavailable::DeviceTooOld {
                name: inner.name.clone(),
                found: inner.capability,
                needed: CAPABILITY_MIN,
            });
        }
        Ok(Gpu { inner: Arc::new(inner) })
    }

    /// The device for plain copies only: also where our kernels cannot run.
    pub fn open_for_copies(ordinal: usize) -> std::result::Result<Gpu, Unavailable> {
        let (driver, count) = start_driver()?;
        if ordinal >= count {
            return Err(Unavailable::NoDevice);
        }
        Ok(Gpu { inner: Arc::new(retain(ordinal, driver).map_err(Unavailable::of)?) })
    }

    /// The number of the device whose memory lies at this address; `None` if none has it.
    pub fn ordinal_of(at: u64) -> std::result::Result<Option<usize>, Unavailable> {
        start_driver()?;
        let ask = |which| {
            let mut answer = 0_i32;
            // SAFETY: the driver is there, and both attributes are numbers of 32 bits.
            let asked = unsafe { sys::cuPointerGetAttribute((&raw mut answer).cast(), which, at) };
            asked.result().ok().map(|()| answer)
        };
        let device_memory = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as i32;
        let kind = ask(sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
        if kind != Some(device_memory) {
            return Ok(None);
        }
        let ordinal = ask(sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
        Ok(ordinal.and_then(|ordinal| usize::try_from(ordinal).ok()))
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The CUDA version of the driver.
    pub fn driver(&self) -> Version {
        self.inner.driver
    }

    /// The device's compute capability.
    pub fn capability(&self) -> Version {
        self.inner.capability
    }

    /// Number of multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.inner.multiprocessors
    }

    /// All memory of the device.
    pub fn memory_bytes(&self) -> usize {
        self.inner.memory_bytes
    }

    /// Device memory that is free now.
    pub fn memory_free_bytes(&self) -> Result<usize> {
        self.bind()?;
        let (free, _) = result::mem_get_info().map_err(Error::of("asking for free memory"))?;
        Ok(free)
    }

    /// Waits for all work on the device, the program's too.
    pub fn finish_all(&self) -> Result<()> {
        self.bind()?;
        result::ctx::synchronize().map_err(Error::of("waiting for the program's work"))
    }

    pub(crate) fn bind(&self) -> Result<()> {
        // SAFETY: the context is retained as long as `inner` lives.
        unsafe { result::ctx::set_current(self.inner.context) }
            .map_err(Error::of("using the device"))
    }

    pub(crate) fn function(&self, kernel: Kernel) -> Result<sys::CUfunction> {
        self.bind()?;
        let mut loaded = self.inner.loaded.lock().unwrap_or_else(|broken| broken.into_inner());
        loaded.function(kernel, self.inner.capability)
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Starts the driver: its version, and how many devices it shows.
fn start_driver() -> std::result::Result<(Version, usize), Unavailable> {
    // SAFETY: only tries to load the library, which has no initialisers of ours.
    if !unsafe { sys::is_culib_present() } {
        return Err(Unavailable::NoDriver);
    }
    let driver = driver_version().map_err(Unavailable::of)?;
    result::init().map_err(Unavailable::of)?;
    let count = result::device::get_count().map_err(Unavailable::of)?;
    Ok((driver, count as usize))
}

fn driver_version() -> std::result::Result<Version, DriverError> {
    let mut number = 0;
    // SAFETY: the driver library is present; this function has been in it from the start and
    // needs no initialisation.
    unsafe { sys::cuDriverGetVersion(&mut number) }.result()?;
    let number = number as u32;
    Ok(Version { major: number / 1000, minor: number % 1000 / 10 })
}

fn retain(ordinal: usize, driver: Version) -> std::result::Result<Inner, DriverError> {
    let device = result::device::get(ordinal as i32)?;
    // SAFETY: `device` was just returned by the driver.
    let attribute = |which| unsafe { result::device::get_attribute(device, which) };
    let capability = Version {
        major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32,
        minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32,
    };
    let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
    let name = result::device::get_name(device)?;
    // SAFETY: as above.
    let memory_bytes = unsafe { result::device::total_mem(device)? };
    // SAFETY: as above; released when `Inner` is dropped.
    let context = unsafe { result::primary_ctx::retain(device)? };
    let loaded = Mutex::new(Loaded::default());
    Ok(Inner { device, context, name, driver, capability, multiprocessors, memory_bytes, loaded })
}
