//! The heap's range of addresses: memory at fixed places, given to mimalloc.
//!
//! mimalloc's arenas hold less than 16 GiB each, so there are several. What does not fit, such as
//! one very large object, it takes from the kernel, and it is captured like any other memory.

use std::ffi::c_void;

use crate::system::{self, sys};
use crate::zone;

const ARENAS: usize = 8;
const ARENA_BYTES: usize = 8 << 30;

unsafe extern "C" {
    fn mi_process_init();
    fn mi_manage_os_memory(
        start: *mut c_void,
        size: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: i32,
    ) -> bool;
}

/// Gives the range to mimalloc. Where the system forbids so large a reservation, mimalloc asks it
/// each time instead, and a checkpoint has more pieces.
pub(crate) fn give() {
    // SAFETY: may be called at any time and more than once.
    unsafe { mi_process_init() };
    for number in 0..ARENAS {
        if let Some(start) = system::map(zone::ARENA + number * ARENA_BYTES, ARENA_BYTES) {
            // SAFETY: fresh zeroed memory that nobody else uses. Huge pages are what mimalloc asks
            // for itself; where there are none it does without.
            unsafe {
                sys!(libc::SYS_madvise, start, ARENA_BYTES, libc::MADV_HUGEPAGE);
                mi_manage_os_memory(start.cast(), ARENA_BYTES, true, false, true, -1);
            }
        }
    }
}
