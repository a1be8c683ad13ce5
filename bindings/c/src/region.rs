//! Protecting memory.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};

use crate::argument;
use crate::error::{Failure, Outcome};
use crate::handle::{Open, on_job, sf_job};

/// Types of elements, for `sf_protect_typed`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sf_type {
    /// Bytes of no particular type.
    SF_BYTE = 0,
    /// `int8_t`
    SF_I8 = 1,
    /// `uint8_t`
    SF_U8 = 2,
    /// `int16_t`
    SF_I16 = 3,
    /// `uint16_t`
    SF_U16 = 4,
    /// `int32_t`
    SF_I32 = 5,
    /// `uint32_t`
    SF_U32 = 6,
    /// `int64_t`
    SF_I64 = 7,
    /// `uint64_t`
    SF_U64 = 8,
    /// 16-bit floating point, IEEE 754
    SF_F16 = 9,
    /// 16-bit floating point, the upper half of a `float`
    SF_BF16 = 10,
    /// `float`
    SF_F32 = 11,
    /// `double`
    SF_F64 = 12,
    /// Complex number of two `float`
    SF_C32 = 13,
    /// Complex number of two `double`
    SF_C64 = 14,
}

/// Bytes of one element, and the size of the numbers it consists of (0: none in particular).
fn layout(number: c_int) -> Option<(usize, u8)> {
    use sf_type::*;
    const TABLE: [(sf_type, usize, u8); 15] = [
        (SF_BYTE, 1, 0),
        (SF_I8, 1, 1),
        (SF_U8, 1, 1),
        (SF_I16, 2, 2),
        (SF_U16, 2, 2),
        (SF_I32, 4, 4),
        (SF_U32, 4, 4),
        (SF_I64, 8, 8),
        (SF_U64, 8, 8),
        (SF_F16, 2, 2),
        (SF_BF16, 2, 2),
        (SF_F32, 4, 4),
        (SF_F64, 8, 8),
        (SF_C32, 8, 4),
        (SF_C64, 16, 8),
    ];
    TABLE.iter().find(|row| row.0 as c_int == number).map(|row| (row.1, row.2))
}

/// Protects memory: from now on it is part of every checkpoint and filled by every restart.
///
/// Where the type of the elements is known, `sf_protect_typed` compresses better.
///
/// @param job   An open job.
/// @param name  Name of the region: 1 to 255 bytes of UTF-8 without control characters. A restart
///              finds the region by it.
/// @param start Where it starts; any alignment.
/// @param bytes Its length. The same length is expected at a restart.
/// @return `SF_OK`; `SF_INVALID` if the name breaks the rules or is taken, if `start` is NULL, or
///         if the memory overlaps another region.
///
/// Until `sf_unprotect` or `sf_finalize` the memory must stay allocated and writable. No other
/// thread may write to it during `sf_checkpoint`, nor use it during `sf_restart`.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// `name` is NULL or a text that ends with 0. The memory is the program's own, and is left alone as
/// described above.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_protect(
    job: *mut sf_job,
    name: *const c_char,
    start: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller vouches for name and memory.
    on_job("sf_protect", job, |open| unsafe { protect(open, name, start, bytes, 0) })
}

/// Protects an array of numbers. Their type helps compression; it changes nothing else.
///
/// @param job   An open job.
/// @param name  Name of the region, as for `sf_protect`.
/// @param start The array; any alignment.
/// @param count How many elements it has.
/// @param type  One of `sf_type`, such as `SF_F64` for `double`.
/// @return As `sf_protect`; `SF_INVALID` also for a type that does not exist, or if the array
///         would be larger than memory.
///
/// The memory must be left alone as described for `sf_protect`.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// As for `sf_protect`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_protect_typed(
    job: *mut sf_job,
    name: *const c_char,
    start: *mut c_void,
    count: usize,
    r#type: c_int,
) -> c_int {
    on_job("sf_protect_typed", job, |open| {
        let (bytes, elem) = measure(count, r#type)?;
        // SAFETY: the caller vouches for name and memory.
        unsafe { protect(open, name, start, bytes, elem) }
    })
}

/// # Safety
/// As `sf_protect`.
unsafe fn protect(
    open: &Open,
    name: *const c_char,
    start: *mut c_void,
    bytes: usize,
    elem: u8,
) -> Outcome {
    // SAFETY: the caller vouches for the name.
    let name = unsafe { argument::text("name", name) }?;
    // SAFETY: the caller vouches for the memory.
    Ok(unsafe { open.job.protect(name, start.cast(), bytes, elem) }?)
}

/// Protects memory of a CUDA device: from now on it is part of every checkpoint and filled by every
/// restart.
///
/// A checkpoint waits for the work that the program has queued on the device, hashes the region
/// there and copies what changed aside, within the device; then the program goes on while new pages
/// are compressed there and cross to the host. What a device wrote any machine can restore: into
/// device memory, or by `sf_read_region` or a region of the same name and length into host memory.
///
/// @param job   An open job.
/// @param name  Name of the region, as for `sf_protect`.
/// @param start An address of the device, such as `cudaMalloc` gives; a multiple of 16. All device
///              regions of a job lie on one device.
/// @param bytes Its length. The same length is expected at a restart.
/// @return `SF_OK`; `SF_UNSUPPORTED` if there is no driver or no device; `SF_INVALID` as
///         `sf_protect`, and if `start` is no device memory.
///
/// Until `sf_unprotect` or `sf_finalize` the memory must stay allocated. Nothing that writes to it
/// may be queued on the device during `sf_checkpoint`, nor anything that uses it during
/// `sf_restart`.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// `name` is NULL or a text that ends with 0. The memory is the program's own, and is left alone as
/// described above.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_protect_device(
    job: *mut sf_job,
    name: *const c_char,
    start: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller vouches for name and memory.
    on_job("sf_protect_device", job, |open| unsafe { protect_device(open, name, start, bytes, 0) })
}

/// Protects an array of numbers in the memory of a CUDA device. Their type helps compression.
///
/// @param job   An open job.
/// @param name  Name of the region, as for `sf_protect`.
/// @param start The array on the device, as for `sf_protect_device`.
/// @param count How many elements it has.
/// @param type  One of `sf_type`, such as `SF_BF16`.
/// @return As `sf_protect_device`; `SF_INVALID` also for a type that does not exist, or if the
///         array would be larger than memory.
///
/// The memory must be left alone as described for `sf_protect_device`.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// As for `sf_protect_device`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_protect_device_typed(
    job: *mut sf_job,
    name: *const c_char,
    start: *mut c_void,
    count: usize,
    r#type: c_int,
) -> c_int {
    on_job("sf_protect_device_typed", job, |open| {
        let (bytes, elem) = measure(count, r#type)?;
        // SAFETY: the caller vouches for name and memory.
        unsafe { protect_device(open, name, start, bytes, elem) }
    })
}

/// # Safety
/// As `sf_protect_device`.
unsafe fn protect_device(
    open: &Open,
    name: *const c_char,
    start: *mut c_void,
    bytes: usize,
    elem: u8,
) -> Outcome {
    // SAFETY: the caller vouches for the name.
    let name = unsafe { argument::text("name", name) }?;
    if start.is_null() {
        return Err(Failure::invalid("start is NULL"));
    }
    // SAFETY: the caller vouches for the memory.
    Ok(unsafe { open.job.protect_device(name, start as u64, bytes, elem) }?)
}

/// Bytes of so many elements, and the size of their numbers.
fn measure(count: usize, number: c_int) -> Outcome<(usize, u8)> {
    let (size, elem) =
        layout(number).ok_or_else(|| Failure::invalid(format!("type {number} is no sf_type")))?;
    let bytes = count.checked_mul(size).ok_or_else(|| {
        Failure::invalid(format!("{count} elements of {size} bytes are more than memory holds"))
    })?;
    Ok((bytes, elem))
}

/// Ends the protection of a region. Do this before its memory is freed or moved by `realloc`.
/// Checkpoints that have been taken keep the region.
///
/// @param job  An open job.
/// @param name Name of the region.
/// @return `SF_OK`; `SF_MISSING` if no region of that name is protected; `SF_INVALID`.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// `name` is NULL or a text that ends with 0.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_unprotect(job: *mut sf_job, name: *const c_char) -> c_int {
    on_job("sf_unprotect", job, |open| {
        // SAFETY: the caller vouches for the name.
        let name = unsafe { argument::text("name", name) }?;
        Ok(open.job.unprotect(name)?)
    })
}

/// Keeps some bytes out of all later checkpoints, such as a password: they are zeros there.
///
/// The bytes may lie in any protected region, in part or whole; regions that are protected later count,
/// too. A restart leaves them as they are. Checkpoints that have been taken keep what they have.
///
/// @param job   An open job.
/// @param start Address of the first byte.
/// @param bytes How many; 0 does nothing.
/// @return `SF_OK`; `SF_INVALID` if `start` is NULL.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// `job` is a job that `sf_init` has opened. The bytes are never accessed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_exclude(job: *mut sf_job, start: *const c_void, bytes: usize) -> c_int {
    on_job("sf_exclude", job, |open| {
        if start.is_null() {
            return Err(Failure::invalid("start is NULL"));
        }
        open.job.exclude(start.cast(), bytes);
        Ok(())
    })
}

/// Takes back what `sf_exclude` has excluded: the next checkpoint holds these bytes.
///
/// @param job   An open job.
/// @param start Address of the first byte.
/// @param bytes How many; 0 does nothing.
/// @return `SF_OK`; `SF_INVALID` if `start` is NULL.
///
/// Thread-safe; waits while a checkpoint is being captured.
///
/// # Safety
/// As `sf_exclude`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_include(job: *mut sf_job, start: *const c_void, bytes: usize) -> c_int {
    on_job("sf_include", job, |open| {
        if start.is_null() {
            return Err(Failure::invalid("start is NULL"));
        }
        open.job.include(start.cast(), bytes);
        Ok(())
    })
}

#[cfg(test)]
mod tests;
