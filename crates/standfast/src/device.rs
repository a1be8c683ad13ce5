//! Regions in the memory of a GPU.
//!
//! The driver is loaded when the first such region is protected; programs without any never touch
//! it. docs/GPU.md tells what happens where, and what follows when a device fails.

use std::sync::{Arc, Mutex};

use standfast_capture::{Device, DeviceFill, DeviceResult};
use standfast_gpu::memory::{Settings, open, pointer_device};
use standfast_take::lock_device;

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
    /// [`Job::restart`] or [`Job::read_region`] runs, nothing may be queued on the device that writes to
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
    #[doc(hidden)]
    pub fn device_settings(&self) -> Settings {
        let config = &self.config().config;
        Settings {
            key: self.header.key,
            hash: config.pages.hash,
            page_bytes: config.pages.bytes.0 as usize,
            staging_bytes: config.device.staging.0 as usize,
            choice: config.device.codec,
        }
    }

    /// As [`Job::protect_device`], on a device of the caller's making: one of another vendor, or
    /// the stand-in of tests. `device` is made with [`Job::device_settings`] if this is the job's
    /// first device region, and not asked for otherwise.
    ///
    /// # Safety
    /// As [`Job::protect_device`].
    #[doc(hidden)]
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

    /// Begins to fill the regions that lie on a device, where there is one.
    pub(crate) fn fill_device(&self) -> DeviceResult<Option<Box<dyn DeviceFill>>> {
        self.device.as_ref().map(|device| lock_device(device).fill()).transpose()
    }
}
