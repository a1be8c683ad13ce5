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

/// Methods of a type without values: they are there, and nobody can call one.
macro_rules! uncallable {
    ($type:ident { $($vis:vis fn $name:ident(&$self:ident $(, $arg:ty)*) -> $out:ty;)* }) => {
        #[expect(missing_docs, reason = "none of them can be called")]
        impl $type {
            $($vis fn $name(&$self $(, _: $arg)*) -> $out {
                match $self.0 {}
            })*
        }
    };
}

type Found<T> = std::result::Result<T, Unavailable>;

/// How many bytes this process has brought from devices to the host: none.
pub fn downloaded_bytes() -> u64 {
    0
}

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
}

uncallable!(Gpu {
    pub fn name(&self) -> &str;
    pub fn driver(&self) -> Version;
    pub fn capability(&self) -> Version;
    pub fn multiprocessors(&self) -> u32;
    pub fn memory_bytes(&self) -> usize;
    pub fn memory_free_bytes(&self) -> Result<usize>;
    pub fn finish_all(&self) -> Result<()>;
    pub fn stream(&self) -> Result<Stream>;
    pub(crate) fn stream_or_shared(&self) -> Result<Stream>;
    pub fn allocate(&self, &'static str, usize) -> Result<DeviceBuffer>;
    pub fn pinned(&self, &'static str, usize) -> Result<PinnedBuffer>;
});

uncallable!(Stream {
    pub fn gpu(&self) -> &Gpu;
    pub fn wait(&self) -> Result<()>;
    pub fn upload(&self, &[u8], DeviceSlice<'_>) -> Result<()>;
    pub fn download(&self, DeviceSlice<'_>, &mut [u8]) -> Result<()>;
    pub fn copy(&self, DeviceSlice<'_>, DeviceSlice<'_>) -> Result<()>;
    pub fn fill(&self, DeviceSlice<'_>, u8) -> Result<()>;
});

impl Stream {
    /// # Safety
    /// Cannot be called.
    pub unsafe fn queue_upload(&self, _: &[u8], _: DeviceSlice<'_>) -> Result<()> {
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

uncallable!(DeviceBuffer {
    pub fn bytes(&self) -> usize;
    pub fn slice(&self) -> DeviceSlice<'_>;
    pub fn first(&self, usize) -> DeviceSlice<'_>;
});

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
