//! `/proc/self/pagemap`: which pages are there, and which were written.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use linux_raw_sys::general::{
    PAGE_IS_HUGE, PAGE_IS_WRITTEN, PM_SCAN_CHECK_WPASYNC, PM_SCAN_WP_MATCHING, page_region,
    pm_scan_arg,
};

use super::system_page;

/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
/// Stretches of written pages fetched by one call.
const BATCH: usize = 4096;
/// The page is in memory.
const PRESENT: u64 = 1 << 63;
/// The page is in the swap.
const SWAPPED: u64 = 1 << 62;
/// The page is in memory and in no other process: neither the common page of zeros nor shared
/// with a forked child.
const EXCLUSIVE: u64 = 1 << 56;

/// The table of this process's pages.
pub(crate) struct Pagemap(File);

impl Pagemap {
    pub(crate) fn open() -> io::Result<Self> {
        File::open("/proc/self/pagemap").map(Self)
    }

    /// Reads and resets what was written in a range of whole pages that a userfaultfd watches in
    /// its asynchronous mode; false if part of the range is not watched like that.
    pub(crate) fn take_written(
        &self,
        range: Range<usize>,
        mut written: impl FnMut(Range<usize>),
    ) -> bool {
        let mut found = vec![page_region { start: 0, end: 0, categories: 0 }; BATCH];
        let mut from = range.start;
        while from < range.end {
            let mut call = pm_scan_arg {
                size: size_of::<pm_scan_arg>() as u64,
                flags: u64::from(PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC),
                start: from as u64,
                end: range.end as u64,
                walk_end: 0,
                vec: found.as_mut_ptr() as u64,
                vec_len: found.len() as u64,
                max_pages: 0,
                category_inverted: 0,
                category_mask: u64::from(PAGE_IS_WRITTEN),
                category_anyof_mask: 0,
                return_mask: u64::from(PAGE_IS_WRITTEN),
            };
            // SAFETY: the structure is the one this call uses; `vec` has `vec_len` entries.
            let count = unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN, &raw mut call) };
            let Ok(count) = usize::try_from(count) else { return false };
            for region in &found[..count.min(BATCH)] {
                written(region.start as usize..region.end as usize);
            }
            let next = call.walk_end as usize;
            if next <= from {
                return false;
            }
            from = next;
        }
        true
    }

    /// Whether a range of whole huge pages is mapped by huge pages.
    pub(crate) fn is_huge(&self, range: Range<usize>) -> bool {
        let mut found = page_region { start: 0, end: 0, categories: 0 };
        let mut call = pm_scan_arg {
            size: size_of::<pm_scan_arg>() as u64,
            flags: 0,
            start: range.start as u64,
            end: range.end as u64,
            walk_end: 0,
            vec: &raw mut found as u64,
            vec_len: 1,
            max_pages: 0,
            category_inverted: 0,
            category_mask: u64::from(PAGE_IS_HUGE),
            category_anyof_mask: 0,
            return_mask: u64::from(PAGE_IS_HUGE),
        };
        // SAFETY: the structure is the one this call uses; `vec` has one entry.
        let count = unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN, &raw mut call) };
        count == 1 && (found.start as usize..found.end as usize) == range
    }

    /// Calls for every page of a range of whole pages that holds nothing of this process's own:
    /// never touched, given back, or shared with a forked child.
    pub(crate) fn each_foreign(
        &self,
        range: Range<usize>,
        mut each: impl FnMut(usize),
    ) -> io::Result<()> {
        let page = system_page();
        let mut entries = vec![0u8; 8 * BATCH];
        let mut from = range.start;
        while from < range.end {
            let pages = ((range.end - from) / page).min(BATCH);
            let bytes = &mut entries[..8 * pages];
            self.0.read_exact_at(bytes, (from / page * 8) as u64)?;
            for (at, entry) in bytes.chunks_exact(8).enumerate() {
                let entry = u64::from_le_bytes(entry.try_into().expect("8 bytes"));
                let own =
                    entry & SWAPPED != 0 || entry & (PRESENT | EXCLUSIVE) == PRESENT | EXCLUSIVE;
                if !own {
                    each(from + at * page);
                }
            }
            from += pages * page;
        }
        Ok(())
    }
}
