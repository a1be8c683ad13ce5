//! Regions in the memory of a device, which the processor cannot read by itself.
//!
//! Data: region -> [`Device::scan`]: hashed where it lies, what differs is listed ->
//! [`Device::stage`]: those pages are copied aside, still on the device; the program goes on ->
//! [`Device::changed`]: their hashes cross, the catalog says which are new -> [`Device::drain`]:
//! only those cross, encoded there where that pays. [`Device::fill`] puts pages back.
//!
//! # Contract
//! - A hash is that of the processor: equal pages have equal hashes wherever they lie. The last
//!   page of a region counts as filled up with zeros.
//! - `scan` first waits for all work that the program has queued on the device.
//! - What is staged stays until [`Device::clear`], whatever the program writes meanwhile. Its place
//!   is bounded: `stage` takes what fits, and 0 when nothing does.
//! - Whatever a device can fail at while its memory can still be read, it does in another way, and
//!   says so once ([`Device::messages`]). An error means that the memory cannot be read.

use standfast_format::{CodecKind, FilterKind, Kind};

/// Result of a device's work.
pub type DeviceResult<T> = std::result::Result<T, DeviceError>;

/// Why the memory of a device cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("device memory: {why}")]
pub struct DeviceError {
    /// What sort of failure it is.
    pub kind: Kind,
    /// What happened.
    pub why: String,
}

/// A region as its device knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceRegion(pub u32);

/// What a scan found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Pages that differ and hold something.
    pub changed: u64,
    /// Pages that differ and hold nothing but zeros.
    pub zeroed: u64,
}

/// Pages of a region, and their hashes end to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedPages {
    /// Their numbers, ascending.
    pub pages: Vec<u64>,
    /// Their hashes.
    pub hashes: Vec<u8>,
}

/// Which pages are to be staged.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// Those that the last scan found changed, from this one of them on.
    Changed {
        /// How many of them to pass over.
        first: u64,
    },
    /// These, ascending, all of which the last scan has looked at.
    Pages(&'a [u64]),
}

/// Staged pages on their way out, in the order asked for.
#[derive(Clone, Copy, Debug)]
pub enum Drained<'a> {
    /// A block, ready to be stored.
    Block {
        /// Pages that it holds.
        pages: u32,
        /// What undoes it.
        codec: CodecKind,
        /// What is undone after the codec.
        filter: FilterKind,
        /// What to store.
        bytes: &'a [u8],
    },
    /// Whole pages as they are: the processor encodes them.
    Pages(&'a [u8]),
}

/// Memory of a device and what is done with it there.
pub trait Device: Send {
    /// Starts to follow `bytes` bytes at an address of the device.
    ///
    /// # Safety
    /// The memory stays allocated on the device until [`Device::release`].
    unsafe fn register(&mut self, at: u64, bytes: usize) -> DeviceResult<DeviceRegion>;

    /// Ends it.
    fn release(&mut self, region: DeviceRegion);

    /// Hashes all pages and finds those that differ from `before`, the hashes of all pages; without
    /// it, all do.
    fn scan(&mut self, region: DeviceRegion, before: Option<&[u8]>) -> DeviceResult<Scanned>;

    /// Numbers and hashes of `count` changed pages from the `first` on.
    fn changed(
        &mut self,
        region: DeviceRegion,
        first: u64,
        count: u64,
    ) -> DeviceResult<ChangedPages>;

    /// Numbers of the pages that turned to zeros.
    fn zeroed(&mut self, region: DeviceRegion) -> DeviceResult<Vec<u64>>;

    /// Copies pages aside, as many as there is room for; returns how many.
    fn stage(&mut self, region: DeviceRegion, which: Which<'_>) -> DeviceResult<u64>;

    /// Brings staged pages over: those with these numbers, counted from 0 since the last `clear`,
    /// ascending. `elem` is the size of their numbers, 0 if unknown. Where `encoded` is false, no
    /// blocks are wanted, only pages. Ends early, without an error, when `take` returns false.
    fn drain(
        &mut self,
        staged: &[u32],
        elem: u8,
        encoded: bool,
        take: &mut dyn FnMut(Drained<'_>) -> bool,
    ) -> DeviceResult<()>;

    /// Forgets what is staged.
    fn clear(&mut self);

    /// Begins to put pages back into regions.
    fn fill(&mut self) -> DeviceResult<Box<dyn DeviceFill>>;

    /// What its user should know and was not told yet.
    fn messages(&mut self) -> Vec<String>;
}

/// Puts pages back, from several threads, each page once.
pub trait DeviceFill: Send + Sync {
    /// Takes bytes of a region from this one on.
    fn pages(&self, region: DeviceRegion, offset: u64, bytes: &[u8]) -> DeviceResult<()>;

    /// Takes zeros for so many bytes of a region from this one on.
    fn zeros(&self, region: DeviceRegion, offset: u64, bytes: u64) -> DeviceResult<()>;

    /// Waits until everything has arrived. Nothing has for sure before.
    fn finish(&self) -> DeviceResult<()>;
}
