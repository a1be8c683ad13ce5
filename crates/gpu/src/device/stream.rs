//! Queues of work on the device, and the kernels that go into them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::result;
use cudarc::driver::sys;

use super::{Args, DeviceSlice, Gpu, Shape};
use crate::error::{Error, Result};
use crate::kernels::Kernel;

/// Bytes that were brought to the host.
static DOWNLOADED: AtomicU64 = AtomicU64::new(0);

/// How many bytes this process has brought from devices to the host through this crate so far.
pub fn downloaded_bytes() -> u64 {
    DOWNLOADED.load(Ordering::Relaxed)
}

impl Gpu {
    /// A new queue of work.
    pub fn stream(&self) -> Result<Stream> {
        self.bind()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(Error::of("creating a stream"))?;
        Ok(Stream { gpu: self.clone(), stream })
    }

    /// A new queue of work; for want of memory the one that is always there, and shared with the
    /// program.
    pub(crate) fn stream_or_shared(&self) -> Result<Stream> {
        match self.stream() {
            Err(error) if error.is_made_good() => {
                Ok(Stream { gpu: self.clone(), stream: std::ptr::null_mut() })
            }
            created => created,
        }
    }
}

/// A queue of work on the device: in order within, side by side with other streams.
pub struct Stream {
    gpu: Gpu,
    stream: sys::CUstream,
}

// SAFETY: the driver accepts a stream on any thread.
unsafe impl Send for Stream {}

impl Stream {
    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Waits until all work queued so far is done.
    pub fn wait(&self) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: the stream lives as long as `self`.
        unsafe { result::stream::synchronize(self.stream) }.map_err(Error::of("waiting for work"))
    }

    /// Copies to the device and waits.
    pub fn upload(&self, from: &[u8], to: DeviceSlice<'_>) -> Result<()> {
        // SAFETY: waited for before `from` can go away.
        unsafe { self.queue_upload(from, to)? };
        self.wait()
    }

    /// Copies to the host and waits.
    pub fn download(&self, from: DeviceSlice<'_>, to: &mut [u8]) -> Result<()> {
        // SAFETY: waited for before `to` can go away.
        unsafe { self.queue_download(from, to)? };
        self.wait()
    }

    /// Queues a copy within the device.
    pub fn copy(&self, from: DeviceSlice<'_>, to: DeviceSlice<'_>) -> Result<()> {
        assert_eq!(from.bytes(), to.bytes(), "equal lengths");
        self.gpu.bind()?;
        // SAFETY: both are allocated, and freeing waits for the device.
        unsafe {
            result::memcpy_dtod_async(to.address(), from.address(), from.bytes(), self.stream)
        }
        .map_err(Error::of("copying on the device"))
    }

    /// Queues setting every byte.
    pub fn fill(&self, to: DeviceSlice<'_>, byte: u8) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: allocated, and freeing waits for the device.
        unsafe { result::memset_d8_async(to.address(), byte, to.bytes(), self.stream) }
            .map_err(Error::of("filling device memory"))
    }

    /// Queues a copy to the device.
    ///
    /// # Safety
    /// `from` stays as it is until the stream was waited for.
    pub unsafe fn queue_upload(&self, from: &[u8], to: DeviceSlice<'_>) -> Result<()> {
        assert_eq!(from.len(), to.bytes(), "equal lengths");
        self.gpu.bind()?;
        // SAFETY: the caller keeps `from`; freeing `to` waits for the device.
        unsafe { result::memcpy_htod_async(to.address(), from, self.stream) }
            .map_err(Error::of("copying to the device"))
    }

    /// # Safety
    /// `to` is not used or freed until the stream was waited for.
    pub(crate) unsafe fn queue_download(&self, from: DeviceSlice<'_>, to: &mut [u8]) -> Result<()> {
        assert_eq!(from.bytes(), to.len(), "equal lengths");
        self.gpu.bind()?;
        DOWNLOADED.fetch_add(from.bytes() as u64, Ordering::Relaxed);
        // SAFETY: the caller keeps `to`; freeing `from` waits for the device.
        unsafe { result::memcpy_dtoh_async(to, from.address(), self.stream) }
            .map_err(Error::of("copying to the host"))
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// The arguments are those of the kernel's signature, in order, and what they point to is
    /// large enough and stays allocated until the stream was waited for.
    pub(crate) unsafe fn launch(&self, kernel: Kernel, shape: Shape, args: Args) -> Result<()> {
        let function = self.gpu.function(kernel)?;
        if shape.grid == (0, 0) || shape.grid.0 == 0 {
            return Ok(());
        }
        let mut pointers: Vec<*mut c_void> =
            args.0.iter().map(|arg| arg.as_ptr().cast_mut().cast()).collect();
        // SAFETY: the caller vouches for the arguments; the driver copies them before it returns.
        unsafe {
            result::launch_kernel(
                function,
                (shape.grid.0, shape.grid.1, 1),
                (shape.threads, 1, 1),
                shape.shared_bytes,
                self.stream,
                &mut pointers,
            )
        }
        .map_err(Error::of(kernel.name))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.stream.is_null() && self.gpu.bind().is_ok() {
            // SAFETY: created once, destroyed once. Work in flight still finishes.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
    }
}
