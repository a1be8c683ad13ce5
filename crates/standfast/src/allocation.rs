//! Memory that the job owns: allocated, grown and freed between checkpoints, by name.
//!
//! For languages without owners: C and Fortran get an address, and the job keeps the memory until
//! it is freed or the job ends. A program whose regions depend on its past asks for all regions of
//! a checkpoint to be made again before it restarts ([`Job::recreate`]).
//!
//! Invariants:
//! - An allocation lives at least as long as its region is protected.

use standfast_capture::Memory;
use standfast_format::Version;

use crate::error::{Cause, Result};
use crate::job::{Core, Job};

impl Job {
    /// Allocates zeroed memory on pages of its own, at a multiple of `alignment`, and protects it.
    /// It lives until [`Job::free_memory`] or the end of the job.
    ///
    /// Whoever uses the address leaves the memory alone while [`Job::checkpoint`] and
    /// [`Job::restart`] run, as described for [`Job::protect`].
    #[doc(hidden)]
    pub fn alloc_memory(
        &self,
        name: &str,
        bytes: usize,
        alignment: usize,
        elem: u8,
    ) -> Result<*mut u8> {
        self.core().alloc_memory(name, bytes, alignment, elem)
    }

    /// Gives an allocation another length: what fits is kept, what is new is zero. The address
    /// changes; the old one is no longer valid.
    #[doc(hidden)]
    pub fn resize_memory(&self, name: &str, bytes: usize) -> Result<*mut u8> {
        let mut core = self.core();
        core.wait_taken();
        let at = core.find_allocation(name)?;
        let (_, old, alignment) = &core.allocations[at];
        let alignment = *alignment;
        let fresh = Memory::new(bytes, alignment)?;
        // SAFETY: both are as long as they say, and apart; the caller leaves them alone.
        unsafe {
            let kept = old.bytes().min(bytes);
            std::ptr::copy_nonoverlapping(old.start(), fresh.start(), kept);
        }
        let start = fresh.start();
        if core.regions.get(name).is_some() {
            // SAFETY: the memory lives until it is unprotected.
            unsafe { core.regions.replace(name, start, bytes)? };
        }
        core.allocations[at] = (name.into(), fresh, alignment);
        Ok(start)
    }

    /// Frees an allocation, and ends its protection.
    #[doc(hidden)]
    pub fn free_memory(&self, name: &str) -> Result<()> {
        let mut core = self.core();
        let at = core.find_allocation(name)?;
        if core.regions.get(name).is_some() {
            core.unprotect(name)?;
        }
        core.wait_taken();
        core.allocations.remove(at);
        Ok(())
    }

    /// Address and length of an allocation.
    #[doc(hidden)]
    pub fn memory(&self, name: &str) -> Result<(*mut u8, usize)> {
        let core = self.core();
        let (_, memory, _) = &core.allocations[core.find_allocation(name)?];
        Ok((memory.start(), memory.bytes()))
    }

    /// Allocates every region of a checkpoint (the newest, unless one is named) that is not
    /// protected yet, so that a restart can fill it. Returns their names.
    ///
    /// Allocations of a region with another length than in the checkpoint are given that length.
    #[doc(hidden)]
    pub fn recreate(&self, version: Option<Version>) -> Result<Vec<String>> {
        let version = match version {
            Some(version) => version,
            None => {
                let newest = self.list().first().map(|manifest| manifest.version);
                newest.ok_or_else(|| Cause::NoCheckpoint { job: self.header.job.clone() })?
            }
        };
        let image = self.image(version)?;
        let mut made = Vec::new();
        for region in &image.regions {
            let bytes = usize::try_from(region.bytes)
                .map_err(|_| standfast_capture::Error::NoMemory { bytes: usize::MAX })?;
            let known = self.core().regions.get(&region.name).map(|own| own.bytes());
            match known {
                None => {
                    self.alloc_memory(&region.name, bytes, 1, region.elem)?;
                    made.push(region.name.clone());
                }
                Some(own) if own != bytes && self.memory(&region.name).is_ok() => {
                    self.resize_memory(&region.name, bytes)?;
                }
                Some(_) => {}
            }
        }
        Ok(made)
    }
}

impl Core {
    fn alloc_memory(
        &mut self,
        name: &str,
        bytes: usize,
        alignment: usize,
        elem: u8,
    ) -> Result<*mut u8> {
        if self.find_allocation(name).is_ok() {
            return Err(standfast_capture::Error::Taken { name: name.into() }.into());
        }
        let memory = Memory::new(bytes, alignment)?;
        let start = memory.start();
        // SAFETY: the memory lives until it is unprotected.
        unsafe { self.regions.protect(name, start, bytes, elem)? };
        self.warm();
        self.allocations.push((name.into(), memory, alignment));
        Ok(start)
    }

    fn find_allocation(&self, name: &str) -> Result<usize> {
        let at = self.allocations.iter().position(|(of, ..)| of == name);
        Ok(at.ok_or_else(|| standfast_capture::Error::Unknown { name: name.into() })?)
    }
}
