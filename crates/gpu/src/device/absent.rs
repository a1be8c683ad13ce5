//! A device that cannot be: the types of [`super`] without values.

use std::ops::{Deref, DerefMut};

use super::{Args, DeviceSlice, Shape};
use crate::error::{Result, Unavailable, Version};
use crate::kernels::Kernel;

/// Has no values.
#[derive(Clone, Copy, Debug)]
enum Never {}

/// A GPU that can run our kernels; there is none.
#[derive(Clone, Debug)]
pub struct Gpu(Never);
/// A queue of work on the device.
pub struct Stream(Never);
/// Memory of the device.
pub struct DeviceBuffer(Never);
/// Page-locked host memory.
pub struct PinnedBuffer(Never);

type Found<T> = std::result::Result<T, Unavailable>;

/// How many bytes this process has brought from devices to the host: none.
pub fn downloaded_bytes() -> u64 {
    0
}

#[expect(missing_docs, reason = "none of them can be called")]
impl Gpu {
    /// Says why there is no device.
    pub fn open() -> Found<Gpu> {
        Err(Unavailable::NotBuilt)
    }

    /// As [`Gpu::open`].
    pub fn open_ordinal(_: usize) -> Found<Gpu> {
        Err(Unavailable::NotBuilt)
    }

    /// As [`Gpu::open`].
    pub fn open_for_copies(_: usize) -> Found<Gpu> {
        Err(Unavailable::NotBuilt)
    }

    /// As [`Gpu::open`].
    pub fn ordinal_of(_: u64) -> Found<Option<usize>> {
        Err(Unavailable::NotBuilt)
    }

    pub fn name(&self) -> &str {
        match self.0 {}
    }

    pub fn driver(&self) -> Version {
        match self.0 {}
    }

    pub fn capability(&self) -> Version {
        match self.0 {}
    }

    pub fn multiprocessors(&self) -> u32 {
        match self.0 {}
    }

    pub fn memory_bytes(&self) -> usize {
        match self.0 {}
    }

    pub fn memory_free_bytes(&self) -> Result<usize> {
        match self.0 {}
    }

    pub fn finish_all(&self) -> Result<()> {
        match self.0 {}
    }

    pub fn stream(&self) -> Result<Stream> {
        match self.0 {}
    }

    pub(crate) fn stream_or_shared(&self) -> Result<Stream> {
        match self.0 {}
    }

    pub fn allocate(&self, _: &'static str, _: usize) -> Result<DeviceBuffer> {
        match self.0 {}
    }

    pub fn pinned(&self, _: &'static str, _: usize) -> Result<PinnedBuffer> {
        match self.0 {}
    }
}

#[expect(missing_docs, reason = "none of them can be called")]
impl Stream {
    pub fn gpu(&self) -> &Gpu {
        match self.0 {}
    }

    pub fn wait(&self) -> Result<()> {
        match self.0 {}
    }

    pub fn upload(&self, _: &[u8], _: DeviceSlice<'_>) -> Result<()> {
        match self.0 {}
    }

    pub fn download(&self, _: DeviceSlice<'_>, _: &mut [u8]) -> Result<()> {
        match self.0 {}
    }

    pub fn copy(&self, _: DeviceSlice<'_>, _: DeviceSlice<'_>) -> Result<()> {
        match self.0 {}
    }

    pub fn fill(&self, _: DeviceSlice<'_>, _: u8) -> Result<()> {
        match self.0 {}
    }

    /// # Safety
    /// Cannot be called.
    pub(crate) unsafe fn queue_upload(&self, _: &[u8], _: DeviceSlice<'_>) -> Result<()> {
        match self.0 {}
    }

    /// # Safety
    /// Cannot be called.
    pub(crate) unsafe fn queue_download(&self, _: DeviceSlice<'_>, _: &mut [u8]) -> Result<()> {
        match self.0 {}
    }

    /// # Safety
    /// Cannot be called.
    pub(crate) unsafe fn launch(&self, _: Kernel, _: Shape, _: Args) -> Result<()> {
        match self.0 {}
    }
}

#[expect(missing_docs, reason = "none of them can be called")]
impl DeviceBuffer {
    pub fn bytes(&self) -> usize {
        match self.0 {}
    }

    pub fn slice(&self) -> DeviceSlice<'_> {
        match self.0 {}
    }

    pub fn first(&self, _: usize) -> DeviceSlice<'_> {
        match self.0 {}
    }
}

impl Deref for PinnedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self.0 {}
    }
}

impl DerefMut for PinnedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self.0 {}
    }
}
