//! Memory that the job allocates and protects.

use std::ffi::{c_char, c_int, c_void};

use standfast::Version;

use crate::argument::{self, Out};
use crate::error::{Failure, Outcome};
use crate::handle::{Open, on_job, sf_job};

/// Allocates zeroed memory on pages of its own and protects it: from now on it is part of every
/// checkpoint and filled by every restart. Large allocations ask for huge pages.
///
/// @param job       An open job.
/// @param name      Name of the region, as for `sf_protect`.
/// @param bytes     How much; 0 is allowed.
/// @param elem      Size of the numbers in it: 1, 2, 4, 8 or 16; 0 if unknown. Helps compression.
/// @param out_start Where it starts.
/// @return `SF_OK`; `SF_INVALID` as `sf_protect`; `SF_FULL` if there is no memory.
///
/// The memory belongs to the job: `sf_free_protected` and `sf_finalize` free it. It must be left
/// alone during `sf_checkpoint` and `sf_restart` as described for `sf_protect`.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// `name` is NULL or a text that ends with 0; `out_start` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_alloc_protected(
    job: *mut sf_job,
    name: *const c_char,
    bytes: usize,
    elem: c_int,
    out_start: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller vouches for name and result.
    on_job("sf_alloc_protected", job, |open| unsafe {
        alloc(open, name, bytes, elem, 1, out_start)
    })
}

/// As `sf_alloc_protected`, at an address that is a multiple of a power of two.
///
/// @param job       An open job.
/// @param name      Name of the region, as for `sf_protect`.
/// @param bytes     How much; 0 is allowed.
/// @param elem      Size of the numbers in it, as for `sf_alloc_protected`.
/// @param alignment A power of two. Every allocation is aligned to pages at least.
/// @param out_start Where it starts.
/// @return As `sf_alloc_protected`; `SF_INVALID` also if the alignment is no power of two.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// `name` is NULL or a text that ends with 0; `out_start` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_alloc_protected_aligned(
    job: *mut sf_job,
    name: *const c_char,
    bytes: usize,
    elem: c_int,
    alignment: usize,
    out_start: *mut *mut c_void,
) -> c_int {
    on_job("sf_alloc_protected_aligned", job, |open| {
        // SAFETY: the caller vouches for name and result.
        unsafe { alloc(open, name, bytes, elem, alignment, out_start) }
    })
}

/// # Safety
/// As `sf_alloc_protected`.
unsafe fn alloc(
    open: &Open,
    name: *const c_char,
    bytes: usize,
    elem: c_int,
    alignment: usize,
    out_start: *mut *mut c_void,
) -> Outcome {
    // SAFETY: the caller vouches for both.
    let (name, out) =
        unsafe { (argument::text("name", name)?, Out::required("out_start", out_start)?) };
    let elem = u8::try_from(elem)
        .map_err(|_| Failure::invalid(format!("elem {elem} is none of 0, 1, 2, 4, 8, 16")))?;
    out.put(open.job.alloc_memory(name, bytes, alignment, elem)?.cast());
    Ok(())
}

/// Gives an allocation another length: what fits is kept, what is new is zero. The next checkpoint
/// has the new length; a restart to an older one needs the older length, which `sf_alloc_from_checkpoint` gives.
///
/// @param job       An open job.
/// @param name      Name of an allocation.
/// @param bytes     Its new length.
/// @param out_start Where it starts now. The old address is no longer valid.
/// @return `SF_OK`; `SF_MISSING` if there is no such allocation; `SF_FULL` if there is no memory:
///         then it is as it was.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// `name` is NULL or a text that ends with 0; `out_start` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_realloc_protected(
    job: *mut sf_job,
    name: *const c_char,
    bytes: usize,
    out_start: *mut *mut c_void,
) -> c_int {
    on_job("sf_realloc_protected", job, |open| {
        // SAFETY: the caller vouches for both.
        let (name, out) =
            unsafe { (argument::text("name", name)?, Out::required("out_start", out_start)?) };
        out.put(open.job.resize_memory(name, bytes)?.cast());
        Ok(())
    })
}

/// Frees an allocation and ends its protection. Checkpoints that have been taken keep the region.
///
/// @param job  An open job.
/// @param name Name of an allocation.
/// @return `SF_OK`; `SF_MISSING` if there is no such allocation; `SF_INVALID`.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// `name` is NULL or a text that ends with 0.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_free_protected(job: *mut sf_job, name: *const c_char) -> c_int {
    on_job("sf_free_protected", job, |open| {
        // SAFETY: the caller vouches for the name.
        let name = unsafe { argument::text("name", name) }?;
        Ok(open.job.free_memory(name)?)
    })
}

/// Where an allocation lies.
///
/// @param job       An open job.
/// @param name      Name of an allocation.
/// @param out_start Where it starts; NULL if not wanted.
/// @param out_bytes Its length; NULL if not wanted.
/// @return `SF_OK`; `SF_MISSING` if there is no such allocation; `SF_INVALID`.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// `name` is NULL or a text that ends with 0; `out_start` and `out_bytes` are NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_find_protected(
    job: *mut sf_job,
    name: *const c_char,
    out_start: *mut *mut c_void,
    out_bytes: *mut usize,
) -> c_int {
    on_job("sf_find_protected", job, |open| {
        // SAFETY: the caller vouches for all three.
        let (name, start, bytes) = unsafe {
            (
                argument::text("name", name)?,
                Out::optional("out_start", out_start)?,
                Out::optional("out_bytes", out_bytes)?,
            )
        };
        let (address, length) = open.job.memory(name)?;
        start.put(address.cast());
        bytes.put(length);
        Ok(())
    })
}

/// Allocates every region of a checkpoint that is not protected yet, and gives allocations that
/// have another length there that length: then `sf_restart` of the same checkpoint finds a place
/// for everything. `sf_regions` tells the names, `sf_find_protected` the addresses.
///
/// @param job       An open job.
/// @param version   Which checkpoint; 0 for the newest.
/// @param out_count How many regions were allocated; NULL if not wanted.
/// @return `SF_OK`; `SF_MISSING` if there is no such checkpoint; `SF_CORRUPT`; `SF_FULL` if there
///         is no memory.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// `out_count` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_alloc_from_checkpoint(
    job: *mut sf_job,
    version: u64,
    out_count: *mut usize,
) -> c_int {
    on_job("sf_alloc_from_checkpoint", job, |open| {
        // SAFETY: the caller vouches for the result.
        let count = unsafe { Out::optional("out_count", out_count)? };
        let version = (version != 0).then_some(Version(version));
        count.put(open.job.recreate(version)?.len());
        Ok(())
    })
}
