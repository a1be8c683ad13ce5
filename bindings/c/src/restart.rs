//! Coming back to a checkpoint, whole or region by region.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};
use std::fmt::Write;
use std::sync::PoisonError;

use standfast::{Kind, Restarted, Version};

use crate::argument::{self, Buffer, Entries, Entry, Out};
use crate::error::{Failure, Outcome};
use crate::handle::{on_job, sf_job};

/// For `sf_restart`: the newest checkpoint that is whole.
pub const SF_NEWEST: u64 = 0;

/// Room for the name of a region, with the 0 at its end.
pub const SF_NAME_BYTES: usize = 256;

/// A region of a checkpoint, for `sf_regions`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sf_region_info {
    /// `sizeof(sf_region_info)`, set by the program in the first entry of an array.
    pub struct_bytes: usize,
    /// Its name, ended with 0.
    pub name: [c_char; SF_NAME_BYTES],
    /// Its length in bytes.
    pub bytes: u64,
    /// Size of the numbers in it as the program declared them (8 for `double`); 0 if it did not.
    pub elem: u32,
    /// Always 0: structs have a multiple of 8 bytes.
    pub reserved: u32,
}

// SAFETY: integers and characters that all fill their places, and the size is the first.
unsafe impl Entry for sf_region_info {
    const BYTES_MIN: usize = 280;
}

/// Fills every protected region from a checkpoint. Every page is verified.
///
/// Call it after the regions are protected and before the work begins. With `SF_NEWEST` damaged
/// checkpoints are skipped for older ones; `sf_restart_report` says which and why.
///
/// @param job      An open job.
/// @param version  Number of the checkpoint, or `SF_NEWEST`.
/// @param restored Where the number of the restored checkpoint goes; may be NULL.
/// @return `SF_OK`. `SF_MISSING` with `SF_NEWEST`: there is nothing to restart from, or the job has
///         finished, a fresh start; the regions are unchanged. `SF_INVALID`: the checkpoint does not
///         fit, for a protected region is not in it, has another length there or no memory any more,
///         or the job began with other values than the program declares (`sf_declare`). `SF_CORRUPT`: no checkpoint is whole.
///         After other failures than a fresh start the regions may hold a mixture: do not go on
///         with them.
///
/// Thread-safe. No other thread may use protected memory until it returns.
///
/// # Safety
/// `restored` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_restart(job: *mut sf_job, version: u64, restored: *mut u64) -> c_int {
    on_job("sf_restart", job, |open| {
        // SAFETY: the caller vouches for it.
        let out = unsafe { Out::optional("restored", restored) }?;
        let chosen = (version != SF_NEWEST).then_some(Version(version));
        let restarted = match chosen {
            Some(version) => open.job.restart_from(version)?,
            None => open.job.restart_or_reason()?,
        };
        out.put(restarted.version.0);
        *open.restarted.lock().unwrap_or_else(PoisonError::into_inner) = Some(restarted);
        Ok(())
    })
}

/// What the last successful `sf_restart` of this job has to say, as text: which checkpoint it
/// came back to, which newer ones it skipped and why, and which regions of the checkpoint
/// the program does not protect. With `restart = lazy` it also says so as long as pages are still
/// being loaded and verified; without that line all of them are.
///
/// @param job      An open job.
/// @param buf      Where the text goes, cut if need be and always ended with 0; may be NULL if
///                 `capacity` is 0.
/// @param capacity Room in `buf`, in bytes.
/// @param needed   Receives the required size, including the final 0; may be NULL.
/// @return `SF_OK`, also if the text was cut; `SF_MISSING` if this job has not been restarted;
///         `SF_INVALID`.
///
/// Thread-safe.
///
/// # Safety
/// `buf` is NULL or has room for `capacity`; `needed` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_restart_report(
    job: *mut sf_job,
    buf: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> c_int {
    on_job("sf_restart_report", job, |open| {
        // SAFETY: the caller vouches for both.
        let (buffer, out) =
            unsafe { (Buffer::new("buf", buf, capacity)?, Out::optional("needed", needed)?) };
        let restarted = open.restarted.lock().unwrap_or_else(PoisonError::into_inner);
        let restarted = restarted.as_ref().ok_or_else(|| {
            Failure::new(Kind::Missing, "no sf_restart of this job has succeeded")
        })?;
        let mut text = told(restarted);
        if open.job.is_loading() {
            text += "\n  pages are still being loaded and verified behind the program";
        }
        out.put(buffer.fill_text(&text));
        Ok(())
    })
}

fn told(restarted: &Restarted) -> String {
    let mut text = format!("restarted from checkpoint {}", restarted.version);
    for (object, why) in &restarted.skipped {
        let _ = write!(text, "\n  skipped {object}: {why}");
    }
    for region in &restarted.unclaimed {
        let _ = write!(text, "\n  region {region:?} of the checkpoint is not protected");
    }
    for note in &restarted.notes {
        let _ = write!(text, "\n  {note}");
    }
    text
}

/// Lists the regions of a checkpoint, in the order in which they were protected.
///
/// @param job      An open job.
/// @param version  Number of the checkpoint.
/// @param buf      Where the list goes; may be NULL if `capacity` is 0. `buf[0].struct_bytes` is
///                 `sizeof buf[0]`.
/// @param capacity For how many regions `buf` has room.
/// @param count    Where the number of all regions goes; may be larger than `capacity`.
/// @return `SF_OK`; `SF_MISSING` if there is no such checkpoint; `SF_CORRUPT` if it cannot be
///         read; `SF_INVALID`.
///
/// Thread-safe.
///
/// # Safety
/// `buf` is NULL or has room for `capacity`; `count` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_regions(
    job: *mut sf_job,
    version: u64,
    buf: *mut sf_region_info,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    on_job("sf_regions", job, |open| {
        // SAFETY: the caller vouches for both.
        let (buffer, out) =
            unsafe { (Entries::new("buf", buf, capacity)?, Out::required("count", count)?) };
        let regions = open.job.image(argument::version(version)?)?.regions;
        buffer.fill(regions.iter().map(|region| sf_region_info {
            struct_bytes: size_of::<sf_region_info>(),
            name: name_of(&region.name),
            bytes: region.bytes,
            elem: u32::from(region.elem),
            reserved: 0,
        }));
        out.put(regions.len());
        Ok(())
    })
}

/// Names have at most 255 bytes, so there is always room for the 0.
fn name_of(name: &str) -> [c_char; SF_NAME_BYTES] {
    let mut room = [0; SF_NAME_BYTES];
    for (place, byte) in room[..SF_NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
        *place = byte as c_char;
    }
    room
}

/// Tells how long a region of a checkpoint is, so that a buffer for it can be allocated.
///
/// @param job     An open job.
/// @param version Number of the checkpoint.
/// @param name    Name of the region.
/// @param bytes   Where its length goes.
/// @return `SF_OK`; `SF_MISSING` if there is no such checkpoint or region; `SF_CORRUPT` if it
///         cannot be read; `SF_INVALID`.
///
/// Thread-safe.
///
/// # Safety
/// `name` is NULL or a text that ends with 0; `bytes` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_region_bytes(
    job: *mut sf_job,
    version: u64,
    name: *const c_char,
    bytes: *mut u64,
) -> c_int {
    on_job("sf_region_bytes", job, |open| {
        // SAFETY: the caller vouches for both.
        let (name, out) =
            unsafe { (argument::text("name", name)?, Out::required("bytes", bytes)?) };
        out.put(open.job.region_bytes(argument::version(version)?, name)?);
        Ok(())
    })
}

/// Reads one region of a checkpoint into a buffer. The region need not be protected. Every page
/// is verified.
///
/// @param job     An open job.
/// @param version Number of the checkpoint.
/// @param name    Name of the region.
/// @param buf     Where its bytes go; may be NULL if `bytes` is 0.
/// @param bytes   Length of `buf`; must be that of the region (`sf_region_bytes`).
/// @return `SF_OK`; `SF_MISSING` if there is no such checkpoint or region; `SF_INVALID` if the
///         lengths differ; `SF_CORRUPT` if it cannot be read: then the buffer holds a mixture.
///
/// Thread-safe. No other thread may use the buffer until it returns.
///
/// # Safety
/// `name` is NULL or a text that ends with 0; `buf` is NULL or has room for `bytes`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_read_region(
    job: *mut sf_job,
    version: u64,
    name: *const c_char,
    buf: *mut c_void,
    bytes: usize,
) -> c_int {
    on_job("sf_read_region", job, |open| {
        // SAFETY: the caller vouches for both.
        let (name, buf) = unsafe { (argument::text("name", name)?, memory(buf, bytes)?) };
        Ok(open.job.read_region(argument::version(version)?, name, buf)?)
    })
}

/// # Safety
/// `start` is null or has `bytes` bytes that nobody else uses while the result lives.
pub(crate) unsafe fn memory<'a>(start: *mut c_void, bytes: usize) -> Outcome<&'a mut [u8]> {
    match (start.is_null(), bytes) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Failure::invalid(format!("buf is NULL, yet it has {bytes} bytes"))),
        (_, bytes) if bytes > isize::MAX as usize => {
            Err(Failure::invalid(format!("buf: {bytes} bytes are more than any memory holds")))
        }
        // SAFETY: not null; the caller vouches for the rest.
        (false, bytes) => Ok(unsafe { std::slice::from_raw_parts_mut(start.cast(), bytes) }),
    }
}

#[cfg(test)]
mod tests;
