//! The pool's memory: one memfd, mapped by the agent and by every rank of a job.
//!
//! Why sealed against resizing: whoever maps it must not be ended by a signal because another
//! process has cut it short.
//!
//! Invariant: a unit's bytes are touched by one holder at a time: the rank that leased it, then the
//! agent it was handed to. The lease table ([`crate::lease`]) enforces that as far as the agent's
//! bookkeeping goes; a rank of this user that writes where it should not spoils its own pages, whose
//! hashes then tell.

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::error::{Error, Result};

/// A mapped pool of equal units.
pub(crate) struct Memory {
    base: NonNull<u8>,
    units: usize,
    unit_bytes: usize,
}

// SAFETY: the mapping is owned; access to units is disjoint by the lease table, see the module.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// New memory, and the descriptor to hand to ranks.
    pub(crate) fn create(units: usize, unit_bytes: usize) -> Result<(Self, OwnedFd)> {
        let os = Error::os::<rustix::io::Errno>;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create("standfast-pool", flags).map_err(os("make the pool's memory"))?;
        let bytes = (units * unit_bytes) as u64;
        rustix::fs::ftruncate(&fd, bytes).map_err(os("size the pool's memory"))?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&fd, seals).map_err(os("seal the pool's memory"))?;
        Ok((Self::map(fd.as_fd(), units, unit_bytes)?, fd))
    }

    /// Memory that the agent has handed over.
    pub(crate) fn open(fd: &OwnedFd, units: usize, unit_bytes: usize) -> Result<Self> {
        let bytes = units.checked_mul(unit_bytes).filter(|bytes| *bytes > 0);
        let length = fstat(fd).map_err(Error::os("look at the pool's memory"))?.st_size;
        let sealed = fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        if !sealed || bytes.is_none_or(|bytes| bytes as i64 != length) {
            return Err(Error::Protocol("the pool's memory is not what was announced"));
        }
        Self::map(fd.as_fd(), units, unit_bytes)
    }

    fn map(fd: impl AsFd, units: usize, unit_bytes: usize) -> Result<Self> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing of ours.
        let base =
            unsafe { mmap(ptr::null_mut(), units * unit_bytes, prot, MapFlags::SHARED, fd, 0) };
        let base = base.map_err(Error::os("map the pool's memory"))?.cast();
        let base = NonNull::new(base).ok_or(Error::Protocol("the pool has no address"))?;
        Ok(Self { base, units, unit_bytes })
    }

    pub(crate) fn units(&self) -> usize {
        self.units
    }

    pub(crate) fn unit_bytes(&self) -> usize {
        self.unit_bytes
    }

    /// Faults a unit in, if the kernel can do that at once: a fault for each page would cost more
    /// than the copy that it is for. The pool takes as much memory as was ever in use.
    pub(crate) fn populate(&self, number: u32) {
        let start = self.unit(number).as_ptr().cast();
        // SAFETY: the unit is inside of the mapping; no byte of it changes.
        let _ = unsafe { madvise(start, self.unit_bytes, Advice::LinuxPopulateWrite) };
    }

    /// The start of a unit.
    ///
    /// # Panics
    /// If there is no such unit.
    pub(crate) fn unit(&self, number: u32) -> NonNull<u8> {
        assert!((number as usize) < self.units, "units are checked when they arrive");
        // SAFETY: inside of the mapping, as just checked.
        unsafe { self.base.add(number as usize * self.unit_bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and whoever had a pointer into it had a borrow of `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.units * self.unit_bytes) };
    }
}

#[cfg(test)]
mod tests;
