//! Memory that direct I/O accepts: aligned to 4096, huge pages where it pays.
//!
//! Why a mapping of its own instead of the heap: fresh anonymous memory is zero already, so a
//! large buffer costs nothing until it is used, and huge pages can be asked for before the first
//! touch (one fault per 2 MiB instead of 512).

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Alignment of address, offset and length that direct I/O needs everywhere.
pub const ALIGN: usize = 4096;
const HUGE: usize = 2 << 20;

/// A zeroed buffer aligned to 4096 bytes, for the readers and writers of big data.
pub struct AlignedBuf {
    data: NonNull<u8>,
    len: usize,
    map: NonNull<u8>,
    map_len: usize,
}

// SAFETY: the buffer owns its mapping alone, like a `Box<[u8]>`.
unsafe impl Send for AlignedBuf {}
// SAFETY: shared access only reads.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// A zeroed buffer of `len` bytes. Like `Vec`, it aborts when the system has no memory.
    pub fn with_len(len: usize) -> Self {
        Self::try_with_len(len).unwrap_or_else(|| out_of_memory(len))
    }

    /// A zeroed buffer of `len` bytes, if the system has so much address space for this process.
    pub fn try_with_len(len: usize) -> Option<Self> {
        if len == 0 {
            let data = NonNull::without_provenance(ALIGN_NONZERO);
            return Some(AlignedBuf { data, len, map: data, map_len: 0 });
        }
        // Huge pages need an aligned start; the slack is never touched and costs no memory.
        let slack = if len >= HUGE { HUGE } else { 0 };
        let map_len = len.checked_next_multiple_of(ALIGN)?.checked_add(slack)?;
        let map = map_zeroed(map_len)?;
        let skip = if slack > 0 { map.as_ptr().align_offset(HUGE).min(slack) } else { 0 };
        // SAFETY: `skip <= slack`, so the result and the `len` bytes after it are in the mapping.
        let data = unsafe { map.add(skip) };
        if slack > 0 {
            // Only advice: without huge pages everything still works.
            // SAFETY: the range lies in our own fresh mapping.
            let _ = unsafe { madvise(data.as_ptr().cast(), len, Advice::LinuxHugepage) };
        }
        Some(AlignedBuf { data, len, map, map_len })
    }

    /// Lets the system put memory behind some bytes now, so that whoever uses them first need not
    /// wait for it; what they hold stays. Whether that is done: older kernels cannot.
    pub fn populate(&self, bytes: Range<usize>) -> bool {
        let Some(part) = self.get(bytes) else { return false };
        let start = part.as_ptr() as usize / ALIGN * ALIGN;
        let len = part.as_ptr() as usize + part.len() - start;
        // SAFETY: whole pages of our own mapping, whose contents this leaves as they are.
        unsafe { madvise(start as *mut _, len, Advice::LinuxPopulateWrite) }.is_ok()
    }
}

const ALIGN_NONZERO: std::num::NonZeroUsize = std::num::NonZeroUsize::new(ALIGN).unwrap();

fn map_zeroed(len: usize) -> Option<NonNull<u8>> {
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address of the kernel's choice aliases nothing.
    let map = unsafe { mmap_anonymous(ptr::null_mut(), len, prot, MapFlags::PRIVATE) };
    NonNull::new(map.ok()?.cast())
}

fn out_of_memory(len: usize) -> ! {
    match std::alloc::Layout::from_size_align(len, ALIGN) {
        Ok(layout) => std::alloc::handle_alloc_error(layout),
        Err(_) => panic!("a buffer of {len} bytes is beyond the address space"),
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if self.map_len > 0 {
            // SAFETY: the mapping is ours and nobody can borrow from it any more.
            let _ = unsafe { munmap(self.map.as_ptr().cast(), self.map_len) };
        }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `data` points to `len` initialised (zero-mapped) bytes that we own.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests;
