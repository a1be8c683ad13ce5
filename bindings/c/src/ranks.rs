//! Jobs of several ranks: who this rank is, and what other ranks have stored.

use std::ffi::{c_char, c_int, c_void};

use standfast::{Kind, Rank};

use crate::argument::{self, Out};
use crate::error::Failure;
use crate::handle::{on_job, sf_job};
use crate::restart::memory;

/// Tells this rank's number and how many ranks the job has.
///
/// @param job  An open job.
/// @param rank Where this rank's number goes, from 0; may be NULL.
/// @param size Where the number of ranks goes; may be NULL.
/// @return `SF_OK`; `SF_INVALID`.
///
/// Thread-safe.
///
/// # Safety
/// `rank` and `size` are NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_rank(job: *mut sf_job, rank: *mut u32, size: *mut u32) -> c_int {
    on_job("sf_rank", job, |open| {
        // SAFETY: the caller vouches for both.
        let (rank, size) = unsafe { (Out::optional("rank", rank)?, Out::optional("size", size)?) };
        let (own, all) = open.job.rank();
        rank.put(own.0);
        size.put(all as u32);
        Ok(())
    })
}

/// As `sf_region_bytes`, of any rank: also of a job that had more ranks or fewer.
///
/// @param job     An open job.
/// @param version Number of the checkpoint.
/// @param rank    Whose region it is.
/// @param name    Name of the region.
/// @param bytes   Where its length goes.
/// @return `SF_OK`; `SF_MISSING` if there is no such checkpoint, rank or region; `SF_CORRUPT` if
///         it cannot be read; `SF_INVALID`.
///
/// Thread-safe. Ranks need not call it together.
///
/// # Safety
/// `name` is NULL or a text that ends with 0; `bytes` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_region_bytes_of(
    job: *mut sf_job,
    version: u64,
    rank: u32,
    name: *const c_char,
    bytes: *mut u64,
) -> c_int {
    on_job("sf_region_bytes_of", job, |open| {
        // SAFETY: the caller vouches for both.
        let (name, out) =
            unsafe { (argument::text("name", name)?, Out::required("bytes", bytes)?) };
        let image = open.job.image_of(argument::version(version)?, Rank(rank))?;
        let missing = || {
            let why = format!("rank {rank} has no region {name:?} in checkpoint {version}");
            Failure::new(Kind::Missing, why)
        };
        out.put(image.region(name).ok_or_else(missing)?.bytes);
        Ok(())
    })
}

/// As `sf_read_region`, of any rank. So a program comes back with another number of ranks: each rank
/// reads what it needs of the regions of those that were.
///
/// @param job     An open job.
/// @param version Number of the checkpoint.
/// @param rank    Whose region it is.
/// @param name    Name of the region.
/// @param buf     Where its bytes go; may be NULL if `bytes` is 0.
/// @param bytes   Length of `buf`; must be that of the region (`sf_region_bytes_of`).
/// @return `SF_OK`; `SF_MISSING` if there is no such checkpoint, rank or region; `SF_INVALID` if
///         the lengths differ; `SF_CORRUPT` if it cannot be read: then the buffer holds a mixture.
///
/// Thread-safe. Ranks need not call it together. No other thread may use the buffer until it
/// returns.
///
/// # Safety
/// `name` is NULL or a text that ends with 0; `buf` is NULL or has room for `bytes`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_read_region_of(
    job: *mut sf_job,
    version: u64,
    rank: u32,
    name: *const c_char,
    buf: *mut c_void,
    bytes: usize,
) -> c_int {
    on_job("sf_read_region_of", job, |open| {
        // SAFETY: the caller vouches for both.
        let (name, buf) = unsafe { (argument::text("name", name)?, memory(buf, bytes)?) };
        let version = argument::version(version)?;
        Ok(open.job.read_region_of(version, Rank(rank), name, buf)?)
    })
}
