//! Whether the memory of regions is still there: a vector that has grown, or freed memory, is not.
//!
//! ```text
//! msync(MS_ASYNC): does nothing but walk the mappings       -> is every page mapped?
//! first and last byte -> pwritev -> a file in memory        -> may they be read?
//!                     <- preadv  <- (what was there before) -> may they be written?
//! ```
//! Why by the kernel: whoever touches memory that is gone dies of it, where a system call fails.
//! The cost is that of a few system calls, whatever the size of the regions.

use std::ffi::c_void;
use std::io::{Error as OsError, Result as OsResult};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::region::{Error, Region, Regions, Result};

/// Regions that one call asks about.
const BATCH: usize = 256;

/// What will be done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A checkpoint reads it.
    Read,
    /// A restart fills it. The check writes what is there already: no other thread may be writing.
    Fill,
}

impl Regions {
    /// Finds a region whose memory went away since it was protected.
    pub fn check_mapped(&self, access: Access) -> Result<()> {
        let here: Vec<&Region> = self.iter().filter(|region| region.span().bytes > 0).collect();
        let gone = |region: &Region| {
            let (name, span) = (region.name().to_owned(), region.span());
            Err(Error::Gone { name, address: span.start, bytes: span.bytes })
        };
        if let Some(region) = here.iter().find(|region| !is_mapped(region)) {
            return gone(region);
        }
        // Without such a file the mappings are all that is looked at.
        let Ok(file) = memfd_create("standfast-probe", MemfdFlags::CLOEXEC) else { return Ok(()) };
        for batch in here.chunks(BATCH) {
            if let Some(at) = unusable(batch, &file, access) {
                return gone(batch[at]);
            }
        }
        Ok(())
    }
}

fn is_mapped(region: &Region) -> bool {
    let (span, page) = (region.span(), crate::system_page_bytes());
    let start = span.start / page * page;
    let bytes = (span.end() - start).next_multiple_of(page);
    let start = std::ptr::without_provenance_mut::<c_void>(start);
    // SAFETY: the kernel looks at its table of mappings, and changes nothing.
    let answer = unsafe { libc::msync(start, bytes, libc::MS_ASYNC) };
    answer == 0 || OsError::last_os_error().raw_os_error() != Some(libc::ENOMEM)
}

/// The first region of these whose ends may not be read, or written.
fn unusable(regions: &[&Region], file: &OwnedFd, access: Access) -> Option<usize> {
    let byte =
        |at: usize| libc::iovec { iov_base: std::ptr::without_provenance_mut(at), iov_len: 1 };
    let ends = |region: &&Region| [region.span().start, region.span().end() - 1].map(byte);
    let ends: Vec<libc::iovec> = regions.iter().flat_map(ends).collect();
    let count = ends.len() as libc::c_int;
    // SAFETY: the kernel reads the bytes, or says that it cannot.
    let read = counted(unsafe { libc::pwritev(file.as_raw_fd(), ends.as_ptr(), count, 0) });
    let done = match (read, access) {
        (Ok(read), Access::Fill) if read == ends.len() => {
            // SAFETY: the bytes get the values that they have, as nobody else writes to them.
            counted(unsafe { libc::preadv(file.as_raw_fd(), ends.as_ptr(), count, 0) })
        }
        (read, _) => read,
    };
    match done {
        Ok(done) => (done < ends.len()).then_some(done / 2),
        Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Some(0),
        // It says nothing about memory.
        Err(_) => None,
    }
}

fn counted(answer: isize) -> OsResult<usize> {
    usize::try_from(answer).map_err(|_| OsError::last_os_error())
}

#[cfg(test)]
mod tests;
