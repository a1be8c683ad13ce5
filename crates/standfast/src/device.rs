//! Regions in the memory of a GPU.
//!
//! The driver is loaded when the first such region is protected; programs without any never touch
//! it. docs/GPU.md tells what happens where, and what follows when a device fails.

use std::sync::{Arc, Mutex};

use standfast_capture::{Device, DeviceError, DeviceFill, DeviceRegion, DeviceResult};
use standfast_format::RegionImage;
use standfast_gpu::memory::{Settings, open, pointer_device};
use standfast_restart::{MemorySink, Sink};

use crate::checkpoint::device::lock_device;
use crate::error::Result;
use crate::job::{Core, Job};

impl Job {
    /// Protects memory of a CUDA device under a name. `elem` is the size of its numbers (2 for
    /// bf16, 4, 8) or 0 if unknown: numbers compress better.
    ///
    /// A checkpoint first waits for all work that the program has queued on the device, hashes the
    /// region there and copies what changed aside, within the device; then the program goes on
    /// while new pages are compressed there and cross. A restart puts the pages back. All device
    /// regions of a job lie on one device.
    ///
    /// Without a driver or a device this fails ([`Kind::Unsupported`](crate::Kind::Unsupported)),
    /// and so it does for an address that is no device memory
    /// ([`Kind::Invalid`](crate::Kind::Invalid)).
    ///
    /// # Safety
    /// Until [`Job::unprotect`] the memory must stay allocated. While [`Job::checkpoint`],
    /// [`Job::restart`] or [`Job::recover`] runs, nothing may be queued on the device that writes to
    /// it.
    pub unsafe fn protect_device(&self, name: &str, at: u64, bytes: usize, elem: u8) -> Result<()> {
        let ordinal = pointer_device(at)?;
        let mut core = self.core();
        if core.device.is_none() {
            core.device = Some(Arc::new(Mutex::new(open(ordinal, self.device_settings())?)));
        }
        // SAFETY: the caller vouches for the memory.
        unsafe { core.protect_device(name, at, bytes, elem) }
    }

    /// How devices are to follow the regions of this job.
    pub fn device_settings(&self) -> Settings {
        let config = &self.config().config;
        Settings {
            key: self.header.key,
            hash: config.hash,
            page_bytes: config.page.0 as usize,
            staging_bytes: config.device_staging.0 as usize,
            choice: config.device_codec,
        }
    }

    /// As [`Job::protect_device`], on a device of the caller's making: one of another vendor, or
    /// the stand-in of tests. `device` is made with [`Job::device_settings`] if this is the job's
    /// first device region, and not asked for otherwise.
    ///
    /// # Safety
    /// As [`Job::protect_device`].
    pub unsafe fn protect_on(
        &self,
        device: impl FnOnce(Settings) -> Box<dyn Device>,
        name: &str,
        at: u64,
        bytes: usize,
        elem: u8,
    ) -> Result<()> {
        let mut core = self.core();
        if core.device.is_none() {
            core.device = Some(Arc::new(Mutex::new(device(self.device_settings()))));
        }
        // SAFETY: the caller vouches for the memory.
        unsafe { core.protect_device(name, at, bytes, elem) }
    }
}

impl Core {
    /// # Safety
    /// As [`Job::protect_device`].
    unsafe fn protect_device(&mut self, name: &str, at: u64, bytes: usize, elem: u8) -> Result<()> {
        let device = Arc::clone(self.device.as_ref().expect("it was opened"));
        let mut device = lock_device(&device);
        // SAFETY: the caller vouches for the memory.
        let region = unsafe { device.register(at, bytes) }?;
        self.regions.protect_device(name, at, bytes, elem, region).inspect_err(|_| {
            device.release(region);
        })?;
        Ok(())
    }

    /// Whether a region lies on a device.
    pub(crate) fn has_device_regions(&self) -> bool {
        self.regions.iter().any(|region| region.device().is_some())
    }
}

/// Puts regions back, wherever they lie.
pub(crate) struct RegionSink<'a> {
    memory: MemorySink<'a>,
    filling: Option<Box<dyn DeviceFill>>,
    /// By region of the image: the region on the device, and its length.
    there: Vec<Option<(DeviceRegion, u64)>>,
}

impl<'a> RegionSink<'a> {
    /// `memory` takes what lies in memory of the process.
    pub(crate) fn new(
        memory: MemorySink<'a>,
        core: &Core,
        regions: &[RegionImage],
    ) -> Result<Self> {
        let there = regions.iter().map(|region| {
            let own = core.regions.get(&region.name)?;
            Some((own.device()?, own.bytes() as u64))
        });
        let there: Vec<_> = there.collect();
        let device = core.device.as_ref().filter(|_| there.iter().any(Option::is_some));
        let filling = device.map(|device| lock_device(device).fill()).transpose()?;
        Ok(Self { memory, filling, there })
    }

    /// Waits until everything is where it belongs.
    pub(crate) fn finish(&self) -> Result<()> {
        Ok(self.filling.as_ref().map_or(Ok(()), |filling| filling.finish())?)
    }

    /// The device's region, and as many bytes as lie in it.
    fn there(
        &self,
        region: usize,
        offset: u64,
        bytes: u64,
    ) -> Option<(&dyn DeviceFill, DeviceRegion, u64)> {
        let (region, all) = self.there[region]?;
        let filling = self.filling.as_deref().expect("a region lies there");
        Some((filling, region, bytes.min(all.saturating_sub(offset))))
    }
}

impl Sink for RegionSink<'_> {
    type Error = DeviceError;

    fn pages(&self, region: usize, offset: u64, bytes: &[u8]) -> DeviceResult<()> {
        match self.there(region, offset, bytes.len() as u64) {
            Some((filling, region, count)) => {
                filling.pages(region, offset, &bytes[..count as usize])
            }
            None => {
                let Ok(()) = self.memory.pages(region, offset, bytes);
                Ok(())
            }
        }
    }

    fn zeros(&self, region: usize, offset: u64, bytes: u64) -> DeviceResult<()> {
        match self.there(region, offset, bytes) {
            Some((filling, region, count)) => filling.zeros(region, offset, count),
            None => {
                let Ok(()) = self.memory.zeros(region, offset, bytes);
                Ok(())
            }
        }
    }
}
