//! Memory: the device's, and host memory that it reads and writes itself.
//!
//! Invariants:
//! - Memory is freed only when no stream of ours still uses it: freeing waits for the device.

use cudarc::driver::result;
use cudarc::driver::sys;

use super::{DeviceSlice, Gpu};
use crate::error::{Error, Result};

impl Gpu {
    /// Device memory, contents undefined.
    pub fn allocate(&self, what: &'static str, bytes: usize) -> Result<DeviceBuffer> {
        self.bind()?;
        // The driver refuses empty allocations.
        // SAFETY: plain memory; whoever reads it writes it first.
        let at =
            unsafe { result::malloc_sync(bytes.max(16)) }.map_err(Error::of_memory(what, bytes))?;
        Ok(DeviceBuffer { gpu: self.clone(), at, bytes })
    }

    /// Host memory that the device reads and writes at full speed, zeroed.
    pub fn pinned(&self, what: &'static str, bytes: usize) -> Result<PinnedBuffer> {
        self.bind()?;
        // SAFETY: plain memory, zeroed before anybody reads it.
        let at = unsafe {
            let at = result::malloc_host(bytes.max(1), 0).map_err(Error::of_memory(what, bytes))?;
            std::ptr::write_bytes(at.cast::<u8>(), 0, bytes);
            at.cast()
        };
        Ok(PinnedBuffer { gpu: self.clone(), at, bytes })
    }
}

/// Memory of the device, freed when dropped.
pub struct DeviceBuffer {
    gpu: Gpu,
    at: sys::CUdeviceptr,
    bytes: usize,
}

impl DeviceBuffer {
    /// Length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of it.
    pub fn slice(&self) -> DeviceSlice<'_> {
        // SAFETY: ours as long as `self` is borrowed, and aligned by the driver.
        unsafe { DeviceSlice::from_raw(self.at, self.bytes) }
    }

    /// The first `bytes` of it.
    pub fn first(&self, bytes: usize) -> DeviceSlice<'_> {
        self.slice().part(0, bytes)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.gpu.bind().is_ok() {
            // SAFETY: allocated once, freed once; the driver waits for work in flight. Memory of
            // a lost device is gone already, so its error changes nothing.
            let _ = unsafe { result::free_sync(self.at) };
        }
    }
}

/// Page-locked host memory, freed when dropped.
pub struct PinnedBuffer {
    gpu: Gpu,
    at: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for PinnedBuffer {}
// SAFETY: shared references only read.
unsafe impl Sync for PinnedBuffer {}

impl std::ops::Deref for PinnedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` initialised bytes, owned by us.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }
}

impl std::ops::DerefMut for PinnedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: `bytes` initialised bytes, owned by us and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.bytes) }
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if self.gpu.bind().is_ok() {
            // Copies in flight may still use it. On a lost device none do, and the error is told
            // by the next call.
            let _ = result::ctx::synchronize();
            // SAFETY: allocated once, freed once, no longer in use.
            let _ = unsafe { result::free_host(self.at.cast()) };
        }
    }
}
