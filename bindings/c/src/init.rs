//! Opening and closing a job, and the library's version.

use std::ffi::{c_char, c_int};

use standfast::Job;
use standfast::config::{Loaded, parse_options};

use crate::argument::{self, Out};
use crate::error::{Outcome, call};
use crate::handle::{self, sf_job};

/// Major version of this header; `sf_version_string` tells that of the library.
pub const SF_VERSION_MAJOR: u32 = 0;
/// Minor version of this header.
pub const SF_VERSION_MINOR: u32 = 1;
/// Patch version of this header.
pub const SF_VERSION_PATCH: u32 = 0;

/// Opens a job: its store is made if need be, locked against other writers and cleared of what a
/// crashed predecessor left half-made.
///
/// Settings come from `standfast.toml` in the current directory (or the file that the variable
/// `STANDFAST_CONFIG` names), then from variables `STANDFAST_*`, then from this call; later ones
/// win. `standfast config` lists all of them.
///
/// @param options Settings as "job=heat; store=/scratch/me", or NULL for none.
/// @param job     Where the handle goes; NULL goes there on failure.
/// @return `SF_OK`; `SF_INVALID` for a wrong setting; `SF_BUSY` if another process (or this one)
///         has the job open; `SF_DENIED`, `SF_FULL` or `SF_IO` from the file system;
///         `SF_CORRUPT` or `SF_UNSUPPORTED` if the store cannot be used.
///
/// Thread-safe. End with `sf_finalize`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_init(options: *const c_char, job: *mut *mut sf_job) -> c_int {
    call("sf_init", || {
        // SAFETY: the caller vouches for `job`.
        let out = unsafe { Out::required("job", job) }?;
        out.put(std::ptr::null_mut());
        // SAFETY: the caller vouches for `options`.
        let opened = unsafe { open(options) }?;
        out.put(handle::insert(opened));
        Ok(())
    })
}

/// # Safety
/// `options` is null or ends with 0.
unsafe fn open(options: *const c_char) -> Outcome<Job> {
    let settings = match options.is_null() {
        true => Vec::new(),
        // SAFETY: passed on to the caller.
        false => parse_options(unsafe { argument::text("options", options) }?)?,
    };
    Ok(Job::open_loaded(Loaded::load(&settings)?)?)
}

/// Closes a job: waits for calls of other threads and for the checkpoint under way, and frees
/// everything. Protected memory stays the program's own.
///
/// @param job The handle; it is gone afterwards, whatever is returned, unless it was none.
/// @return `SF_OK`; the failure of the last checkpoint, or of an earlier one that no call has
///         returned yet; `SF_INVALID` if `job` is no open job.
///
/// Thread-safe: calls that start later with this handle fail with `SF_INVALID`.
#[unsafe(no_mangle)]
pub extern "C" fn sf_finalize(job: *mut sf_job) -> c_int {
    call("sf_finalize", || {
        let open = handle::remove(job)?;
        Ok(open.job.close()?)
    })
}

/// The version of the library, such as "0.1.0".
///
/// @return A constant text, never NULL.
///
/// Thread-safe.
#[unsafe(no_mangle)]
pub extern "C" fn sf_version_string() -> *const c_char {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    TEXT.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_version_of_the_package() {
        let header = [SF_VERSION_MAJOR, SF_VERSION_MINOR, SF_VERSION_PATCH];
        assert_eq!(header.map(|part| part.to_string()).join("."), env!("CARGO_PKG_VERSION"));
    }
}
