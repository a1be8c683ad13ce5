//! What a device must be able to do for its memory to be checkpointed.
//!
//! [`Cuda`](super::Cuda) is one. Tests have another (`tests/stand-in`), which does the same with the
//! CPU references on memory of the process, so that machines without a device take exactly the same
//! path above this line.

use standfast_capture::{ChangedPages, Scanned, Which};

use crate::error::Result;
use crate::float::Element;
use crate::packed::Packed;

/// What pages are encoded with on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// They cross as they are.
    Raw,
    /// Byte planes of numbers.
    Float(Element),
    /// Deflate in chunks of 64 KiB.
    Deflate,
}

/// A region: where it lies and how it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its address on the device.
    pub at: u64,
    /// Its length.
    pub bytes: usize,
    /// Length of a page.
    pub page_bytes: usize,
}

impl Place {
    /// Pages, the last one perhaps not whole.
    pub fn pages(&self) -> usize {
        self.bytes.div_ceil(self.page_bytes)
    }
}

/// A device, its copies and its kernels. Everything that waits says so.
pub trait Backend: Send {
    /// Follows one region: hashes of two scans, marks, lists.
    type Tracker: Send;
    /// Staging for pages.
    type Arena: Send;
    /// One piece on its way through an encoder.
    type Lane: Send;
    /// Fills memory, from several threads.
    type Filler: Filler + 'static;

    /// Waits for everything that the program has queued.
    fn finish_program(&self) -> Result<()>;

    /// Copies from the device, without kernels; waits.
    fn read(&self, at: u64, out: &mut [u8]) -> Result<()>;

    /// Begins to fill memory of the device, without kernels.
    fn filler(&self) -> Result<Self::Filler>;

    /// Starts to follow a region.
    fn tracker(&self, place: Place) -> Result<Self::Tracker>;

    /// Hashes the region and lists what differs: from these hashes of all its pages, or from those
    /// of the last scan. With neither everything differs. Waits.
    fn scan(&self, tracker: &mut Self::Tracker, before: Before<'_>) -> Result<Scanned>;

    /// Numbers and hashes of changed pages; waits.
    fn changed(&self, tracker: &Self::Tracker, first: u64, count: u64) -> Result<ChangedPages>;

    /// Numbers of the pages that turned to zeros; waits.
    fn zeroed(&self, tracker: &Self::Tracker) -> Result<Vec<u64>>;

    /// Staging for so many pages.
    fn arena(&self, pages: usize, page_bytes: usize) -> Result<Self::Arena>;

    /// Copies `count` pages to the arena, from `slot` on, and checks that each copy still has the
    /// hash that the scan found; waits.
    fn stage(
        &self,
        tracker: &Self::Tracker,
        which: Which<'_>,
        count: usize,
        arena: &Self::Arena,
        slot: usize,
    ) -> Result<()>;

    /// Copies a staged page to the host, without kernels; waits.
    fn read_staged(&self, arena: &Self::Arena, slot: usize, page: &mut [u8]) -> Result<()>;

    /// Buffers for pieces of up to so many bytes.
    fn lane(&self, encoding: Encoding, bytes: usize) -> Result<Self::Lane>;

    /// Queues bringing the pages of these slots through the encoder.
    fn start(&self, lane: &mut Self::Lane, arena: &Self::Arena, slots: &[u32]) -> Result<()>;

    /// Waits for a piece: lengths of its chunks, and the chunks, in memory of the host. A raw piece
    /// is one chunk.
    fn finish<'a>(&self, lane: &'a mut Self::Lane) -> Result<(Packed, &'a [u8])>;
}

/// What a scan compares with.
#[derive(Clone, Copy, Debug)]
pub enum Before<'a> {
    /// Nothing: all pages differ.
    Nothing,
    /// The last scan.
    Last,
    /// Hashes of all pages, end to end.
    Hashes(&'a [u8]),
}

/// Fills memory of a device, from several threads, without kernels.
pub trait Filler: Send + Sync {
    /// Copies to the device; what `bytes` holds may change when this returns.
    fn write(&self, at: u64, bytes: &[u8]) -> Result<()>;

    /// Sets bytes to zero.
    fn zero(&self, at: u64, bytes: usize) -> Result<()>;

    /// Waits for all of it.
    fn finish(&self) -> Result<()>;
}
