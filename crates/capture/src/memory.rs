//! Memory for regions: whole pages of their own, with huge pages where they are large.
//!
//! Why not the heap: pages that a region shares with other data cannot be protected or watched
//! alone, arrays that start at different places within a page hide that they are equal, and huge
//! pages make every walk over a page table shorter.

use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::kernel::system_page;
use crate::region::{Error, Result};

/// From this size on, huge pages are asked for.
const HUGE: usize = 2 << 20;

/// Zeroed memory of whole pages.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    map: NonNull<u8>,
    map_bytes: usize,
}

// SAFETY: it owns its mapping alone, as a box does.
unsafe impl Send for Memory {}
// SAFETY: shared access gives only an address; using it is the user's responsibility.
unsafe impl Sync for Memory {}

impl Memory {
    /// Zeroed memory of so many bytes, at a multiple of `alignment`, a power of two; at least a
    /// page's.
    pub fn new(bytes: usize, alignment: usize) -> Result<Self> {
        if !alignment.is_power_of_two() {
            return Err(Error::Alignment { alignment });
        }
        let none = || Error::NoMemory { bytes };
        let page = system_page();
        let alignment = alignment.max(if bytes >= HUGE { HUGE } else { page });
        let whole = bytes.max(1).checked_next_multiple_of(page).ok_or_else(none)?;
        let slack = if alignment > page { alignment } else { 0 };
        let map_bytes = whole.checked_add(slack).ok_or_else(none)?;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice aliases nothing.
        let map =
            unsafe { mmap_anonymous(std::ptr::null_mut(), map_bytes, prot, MapFlags::PRIVATE) };
        let map = map.ok().and_then(|map| NonNull::new(map.cast::<u8>())).ok_or_else(none)?;
        let skip = map.addr().get().next_multiple_of(alignment) - map.addr().get();
        // SAFETY: the slack is at least what is skipped, so this stays inside of the mapping.
        let start = unsafe { map.add(skip) };
        if bytes >= HUGE {
            // Only advice: without huge pages everything still works.
            // SAFETY: the range lies in our own fresh mapping.
            let _ = unsafe { madvise(start.as_ptr().cast(), whole, Advice::LinuxHugepage) };
        }
        Ok(Self { start, bytes, map, map_bytes })
    }

    /// Where it starts.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and whoever used it had to stop before.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.map_bytes) };
    }
}

#[cfg(test)]
mod tests;
