//! The device: found at run time, with typed reasons where it is not.
//!
//! Data: nothing -> [`Gpu::open`] -> memory ([`DeviceBuffer`], [`PinnedBuffer`]), queues
//! ([`Stream`]) and kernels.
//!
//! Why a layer of our own over the driver: the program that we checkpoint uses the device too.
//! We take the device's primary context, which the CUDA run time of the program shares, so its
//! pointers are valid in our kernels; and we allocate only what is asked for here.
//!
//! Invariants:
//! - Without driver, compiler or device, [`Gpu::open`] returns an error; nothing panics.
//! - Memory is freed only when no stream of ours still uses it: freeing waits for the device.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Bytes that were brought to the host.
static DOWNLOADED: AtomicU64 = AtomicU64::new(0);

/// How many bytes this process has brought from devices to the host through this crate so far.
pub fn downloaded_bytes() -> u64 {
    DOWNLOADED.load(Ordering::Relaxed)
}

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
        DeviceSlice { at: self.at, bytes: self.bytes, life: std::marker::PhantomData }
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

/// A part of device memory: ours, or the program's.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSlice<'a> {
    at: sys::CUdeviceptr,
    bytes: usize,
    life: std::marker::PhantomData<&'a ()>,
}

impl<'a> DeviceSlice<'a> {
    /// Memory that the program allocated.
    ///
    /// # Safety
    /// `bytes` bytes at `at` stay allocated on the device for `'a`, and `at` is a multiple of 16.
    pub unsafe fn from_raw(at: u64, bytes: usize) -> Self {
        DeviceSlice { at, bytes, life: std::marker::PhantomData }
    }

    /// Address on the device.
    pub fn address(self) -> u64 {
        self.at
    }

    /// Length.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// `bytes` bytes from `offset` on. Panics if they are not all in it.
    pub fn part(self, offset: usize, bytes: usize) -> Self {
        assert!(
            offset.checked_add(bytes).is_some_and(|end| end <= self.bytes),
            "{bytes} bytes at {offset} of {}",
            self.bytes
        );
        DeviceSlice { at: self.at + offset as u64, bytes, life: self.life }
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
        assert_eq!(from.bytes, to.bytes, "equal lengths");
        self.gpu.bind()?;
        // SAFETY: both are allocated, and freeing waits for the device.
        unsafe { result::memcpy_dtod_async(to.at, from.at, from.bytes, self.stream) }
            .map_err(Error::of("copying on the device"))
    }

    /// Queues setting every byte.
    pub fn fill(&self, to: DeviceSlice<'_>, byte: u8) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: allocated, and freeing waits for the device.
        unsafe { result::memset_d8_async(to.at, byte, to.bytes, self.stream) }
            .map_err(Error::of("filling device memory"))
    }

    /// # Safety
    /// `from` stays as it is until the stream was waited for.
    pub(crate) unsafe fn queue_upload(&self, from: &[u8], to: DeviceSlice<'_>) -> Result<()> {
        assert_eq!(from.len(), to.bytes, "equal lengths");
        self.gpu.bind()?;
        // SAFETY: the caller keeps `from`; freeing `to` waits for the device.
        unsafe { result::memcpy_htod_async(to.at, from, self.stream) }
            .map_err(Error::of("copying to the device"))
    }

    /// # Safety
    /// `to` is not used or freed until the stream was waited for.
    pub(crate) unsafe fn queue_download(&self, from: DeviceSlice<'_>, to: &mut [u8]) -> Result<()> {
        assert_eq!(from.bytes, to.len(), "equal lengths");
        self.gpu.bind()?;
        DOWNLOADED.fetch_add(from.bytes as u64, Ordering::Relaxed);
        // SAFETY: the caller keeps `to`; freeing `from` waits for the device.
        unsafe { result::memcpy_dtoh_async(to, from.at, self.stream) }
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

/// How many blocks of how many threads, with how much dynamic shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: (u32, u32),
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
}

impl Shape {
    pub(crate) fn blocks(blocks: u64, threads: u32) -> Self {
        let blocks = u32::try_from(blocks).expect("a grid's blocks fit 32 bits");
        Shape { grid: (blocks, 1), threads, shared_bytes: 0 }
    }

    pub(crate) fn shared(self, shared_bytes: u32) -> Self {
        Shape { shared_bytes, ..self }
    }
}

/// A kernel's arguments, each in memory of its own.
#[derive(Default)]
pub(crate) struct Args(Vec<Box<[u64]>>);

impl Args {
    pub(crate) fn new() -> Self {
        Args::default()
    }

    pub(crate) fn word(mut self, value: u64) -> Self {
        self.0.push(Box::new([value]));
        self
    }

    /// Little-endian, so the low half is what a 32-bit argument reads.
    pub(crate) fn half(self, value: u32) -> Self {
        self.word(u64::from(value))
    }

    pub(crate) fn slice(self, slice: DeviceSlice<'_>) -> Self {
        self.word(slice.at)
    }

    /// A structure of 64-bit words.
    pub(crate) fn words(mut self, words: &[u64]) -> Self {
        self.0.push(words.into());
        self
    }
}
