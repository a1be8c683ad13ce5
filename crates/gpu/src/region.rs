//! Checkpoints of device memory: find what changed, take it aside, let the program run on.
//!
//! Data: region -> digests and marks ([`DeviceHasher`]) -> list of changed pages -> staging on the
//! device. That is the blocked part. From staging the pages are compressed and cross the bus while
//! the program's kernels run again; [`RegionTracker::accept`] then makes the new digests those to
//! compare with.
//!
//! Why a copy on the device: it runs at the speed of device memory, some eighty times that of the
//! bus, so the program waits for the hash and little else.
//!
//! Memory on the device: the staging that the caller allows, and 49 bytes a page (two digests of
//! 16, a mark, two lists of 8): 1.2 % with pages of 4 KiB.
//!
//! Invariants:
//! - Until `accept`, a failed checkpoint changes nothing: the next one finds the same pages.
//! - Where more pages changed than staging holds, nothing is lost: [`Capture::staged`] says how
//!   many were taken, and the caller drains them and takes the next while the program waits.

use crate::device::{DeviceBuffer, DeviceSlice, Gpu, Stream};
use crate::error::{Error, Result};
use crate::hash::{DIGEST_BYTES, DeviceHasher, MARK_CHANGED, MARK_ZERO, check_page_bytes};
use crate::pages::{self, PageList};

/// What a capture found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Pages of the region.
    pub pages: u64,
    /// Pages that changed and hold something.
    pub changed: u64,
    /// Pages that changed to nothing but zeros: they need no bytes.
    pub zeroed: u64,
    /// How many of the changed pages, from the first on, are staged.
    pub staged: u64,
}

/// Follows one region of device memory from checkpoint to checkpoint.
pub struct RegionTracker {
    hasher: DeviceHasher,
    pages: u64,
    page_bytes: usize,
    digests: [DeviceBuffer; 2],
    /// Which of the two belongs to the last accepted checkpoint, once there is one.
    accepted: Option<usize>,
    marks: DeviceBuffer,
    changed: PageList,
    zeroed: PageList,
    staging: DeviceBuffer,
}

impl RegionTracker {
    /// For a region of `pages` pages, staging at most `staging_pages` at a time.
    pub fn new(
        gpu: &Gpu,
        hasher: DeviceHasher,
        pages: u64,
        page_bytes: usize,
        staging_pages: u64,
    ) -> Result<Self> {
        check_page_bytes(page_bytes)?;
        if staging_pages == 0 {
            return Err(Error::invalid("staging for no page at all"));
        }
        let digests = || gpu.allocate("digests of a region", pages as usize * DIGEST_BYTES);
        Ok(RegionTracker {
            hasher,
            pages,
            page_bytes,
            digests: [digests()?, digests()?],
            accepted: None,
            marks: gpu.allocate("marks of a region", pages as usize)?,
            changed: PageList::new(gpu, pages)?,
            zeroed: PageList::new(gpu, pages)?,
            staging: gpu.allocate("staging", staging_pages as usize * page_bytes)?,
        })
    }

    /// Hashes the region, lists what changed and stages as much of it as fits. Waits: when it
    /// returns with `staged == changed`, the program may write to the region again.
    pub fn capture(&mut self, stream: &Stream, region: DeviceSlice<'_>) -> Result<Capture> {
        let bytes = self.pages as usize * self.page_bytes;
        if region.bytes() != bytes {
            return Err(Error::invalid(format!("{} bytes, not {bytes}", region.bytes())));
        }
        let before = self.accepted.map(|at| self.digests[at].slice());
        let fresh = self.digests[self.fresh()].slice();
        let marks = self.marks.first(self.pages as usize);
        self.hasher.queue(stream, region, self.page_bytes, before, fresh, marks)?;
        let both = MARK_ZERO | MARK_CHANGED;
        let changed = self.changed.fill(stream, marks, both, MARK_CHANGED)?;
        let zeroed = self.zeroed.fill(stream, marks, both, both)?;
        let staged = self.stage(stream, region, 0, changed)?;
        Ok(Capture { pages: self.pages, changed, zeroed, staged })
    }

    /// Stages the changed pages from `first` on in place of those before, and waits. Returns how
    /// many. The region must not have been written to since [`capture`](Self::capture).
    pub fn stage(
        &self,
        stream: &Stream,
        region: DeviceSlice<'_>,
        first: u64,
        changed: u64,
    ) -> Result<u64> {
        let room = (self.staging.bytes() / self.page_bytes) as u64;
        let count = (changed - first).min(room);
        let list = self.changed.part(first, count);
        pages::gather(stream, region, list, self.page_bytes, self.staging.slice())?;
        stream.wait()?;
        Ok(count)
    }

    /// The staged pages, one after the other.
    pub fn staged(&self, count: u64) -> DeviceSlice<'_> {
        self.staging.first(count as usize * self.page_bytes)
    }

    /// Numbers of the changed pages `first..first + count`.
    pub fn changed_pages(&self, stream: &Stream, first: u64, count: u64) -> Result<Vec<u64>> {
        download_words(stream, self.changed.part(first, count))
    }

    /// Numbers of the pages that changed to zeros.
    pub fn zeroed_pages(&self, stream: &Stream, count: u64) -> Result<Vec<u64>> {
        download_words(stream, self.zeroed.part(0, count))
    }

    /// Digests of the changed pages `first..first + count`, 16 bytes each: what a catalog is
    /// asked before pages cross the bus.
    pub fn changed_digests(&self, stream: &Stream, first: u64, count: u64) -> Result<Vec<u8>> {
        let bytes = count as usize * DIGEST_BYTES;
        let dense = stream.gpu().allocate("digests of changed pages", bytes)?;
        let fresh = self.digests[self.fresh()].slice();
        pages::gather(stream, fresh, self.changed.part(first, count), DIGEST_BYTES, dense.slice())?;
        let mut digests = vec![0; bytes];
        stream.download(dense.slice(), &mut digests)?;
        Ok(digests)
    }

    /// The checkpoint is safe: from now on pages are compared with it.
    pub fn accept(&mut self) {
        self.accepted = Some(self.fresh());
    }

    /// Forgets all checkpoints: the next capture takes every page.
    pub fn forget(&mut self) {
        self.accepted = None;
    }

    fn fresh(&self) -> usize {
        self.accepted.map_or(0, |at| 1 - at)
    }
}

/// Puts pages back at restart: page `i` of `from` becomes page `numbers[i]` of the region. Waits.
pub fn restore(
    stream: &Stream,
    from: DeviceSlice<'_>,
    numbers: &[u64],
    page_bytes: usize,
    region: DeviceSlice<'_>,
) -> Result<()> {
    check_page_bytes(page_bytes)?;
    let pages = (region.bytes() / page_bytes) as u64;
    if numbers.iter().any(|number| *number >= pages) {
        return Err(Error::invalid(format!("a page beyond the region's {pages}")));
    }
    let list = stream.gpu().allocate("a list of pages", numbers.len() * 8)?;
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    stream.upload(&bytes, list.slice())?;
    pages::scatter(stream, from, list.slice(), page_bytes, region)?;
    stream.wait()
}

fn download_words(stream: &Stream, from: DeviceSlice<'_>) -> Result<Vec<u64>> {
    let mut bytes = vec![0; from.bytes()];
    stream.download(from, &mut bytes)?;
    let (words, _) = bytes.as_chunks::<8>();
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
