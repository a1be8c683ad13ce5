//! Opening and closing a job, and the library's version.

use std::ffi::{c_char, c_int, c_void};

use standfast::config::{Loaded, parse_options};
use standfast::{Job, Kind};
use standfast_comm::{Comm, collective};
use standfast_mpi::{CommTable, Mpi};

use crate::argument::{self, Out};
use crate::error::{Failure, Outcome, call};
use crate::handle::{self, on_job, sf_job};

/// Major version of this header; `sf_version_string` tells that of the library.
pub const SF_VERSION_MAJOR: u32 = 0;
/// Minor version of this header.
pub const SF_VERSION_MINOR: u32 = 2;
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
/// Thread-safe. End with `sf_finalize` or `sf_close`.
///
/// # Safety
/// `options` is NULL or a text that ends with 0; `job` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_init(options: *const c_char, job: *mut *mut sf_job) -> c_int {
    call("sf_init", || {
        // SAFETY: the caller vouches for `job`.
        let out = unsafe { Out::required("job", job) }?;
        out.put(std::ptr::null_mut());
        // SAFETY: the caller vouches for `options`.
        let opened = Job::open_loaded(unsafe { load(options) }?)?;
        out.put(handle::insert(opened));
        Ok(())
    })
}

/// Opens a job of several ranks, which talk to each other by functions of the program's own. All
/// ranks call it. MPI programs call `sf_init_comm` of `standfast_mpi.h` instead.
///
/// @param table   The functions; they are copied.
/// @param comm    A communicator that they know. The job works with a duplicate; this one is the
///                program's own again when the call returns.
/// @param options Settings as for `sf_init`, or NULL for none.
/// @param job     Where the handle goes; NULL goes there on failure.
/// @return As `sf_init`; `SF_INVALID` also if the table or the communicator cannot be used. If one
///         rank fails, all do.
///
/// Not to be called by several threads with one communicator. End with `sf_finalize` or
/// `sf_close`.
///
/// # Safety
/// `table` is NULL or complete, with functions that keep their promises for `comm`; `options` is
/// NULL or a text that ends with 0; `job` is NULL or writable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_init_transport(
    table: *const CommTable,
    comm: *mut c_void,
    options: *const c_char,
    job: *mut *mut sf_job,
) -> c_int {
    call("sf_init", || {
        // SAFETY: the caller vouches for `job`.
        let out = unsafe { Out::required("job", job) };
        if let Ok(out) = &out {
            out.put(std::ptr::null_mut());
        }
        // SAFETY: the caller vouches for table and communicator.
        let comm = unsafe { Mpi::duplicate_of(table, comm) };
        let comm = comm.map_err(|error| Failure::new(error.kind(), error.to_string()))?;
        // SAFETY: the caller vouches for `options`.
        let loaded = out.and_then(|out| Ok((out, unsafe { load(options) }?)));
        let (out, loaded) = agree(&comm, loaded)?;
        out.put(handle::insert(Job::open_comm(loaded, &comm)?));
        Ok(())
    })
}

/// Goes on only if every rank can: who returned alone would leave the others waiting.
fn agree<T>(comm: &dyn Comm, own: Outcome<T>) -> Outcome<T> {
    let failed = if own.is_err() { comm.rank() as u64 + 1 } else { 0 };
    let last = collective::all_max(comm, failed)
        .map_err(|error| Failure::new(error.kind(), error.to_string()))?;
    match (own, last) {
        (Ok(_), 1..) => {
            let why = format!("rank {} cannot open the job: see what it says", last - 1);
            Err(Failure::new(Kind::Invalid, why))
        }
        (own, _) => own,
    }
}

/// # Safety
/// `options` is null or ends with 0.
unsafe fn load(options: *const c_char) -> Outcome<Loaded> {
    let settings = match options.is_null() {
        true => Vec::new(),
        // SAFETY: passed on to the caller.
        false => parse_options(unsafe { argument::text("options", options) }?)?,
    };
    Ok(Loaded::load(&settings)?)
}

/// Declares a value on which the program's result depends, such as a size or the name of an input.
/// `sf_restart` refuses checkpoints of a job that began with another value, and names both. Call it
/// before `sf_restart` and the first checkpoint, on all ranks alike. Other arguments of the program
/// are only compared and told.
///
/// @param job   An open job.
/// @param name  Its name; a later value of the same name replaces it.
/// @param value Its value, as text.
/// @return `SF_OK`; `SF_INVALID` for names that regions may not have either, for more than 64 KiB in
///         all, or if the program has restarted or taken a checkpoint.
///
/// Thread-safe.
///
/// # Safety
/// `name` and `value` are NULL or texts that end with 0.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_declare(
    job: *mut sf_job,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    on_job("sf_declare", job, |open| {
        // SAFETY: the caller vouches for both.
        let (name, value) =
            unsafe { (argument::text("name", name)?, argument::text("value", value)?) };
        Ok(open.job.declare(name, value)?)
    })
}

/// Ends a program that has done its work: waits for calls of other threads and for the checkpoint
/// under way, marks the job as finished and frees everything. Protected memory stays the program's
/// own. The next program of this name begins anew: its `sf_restart` returns `SF_MISSING`, and
/// one line on stderr says why. All ranks call it. After a checkpoint or restart that failed
/// nothing is marked. A program that ends before its work is done calls `sf_close` instead.
///
/// @param job The handle; it is gone afterwards, whatever is returned, unless it was none.
/// @return `SF_OK`; the failure of the last checkpoint, or of an earlier one that no call has
///         returned yet, or of marking; `SF_INVALID` if `job` is no open job.
///
/// Thread-safe: calls that start later with this handle fail with `SF_INVALID`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn sf_finalize(job: *mut sf_job) -> c_int {
    call("sf_finalize", || {
        let open = handle::remove(job)?;
        Ok(open.job.finish()?)
    })
}

/// Ends a program whose work is to be gone on with: because its time is over, or because it has
/// failed. As `sf_finalize`, but the job is not marked as finished: the next program of this name goes on
/// from its newest checkpoint.
///
/// @param job The handle; it is gone afterwards, whatever is returned, unless it was none.
/// @return As `sf_finalize`.
///
/// Thread-safe: calls that start later with this handle fail with `SF_INVALID`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn sf_close(job: *mut sf_job) -> c_int {
    call("sf_close", || {
        let open = handle::remove(job)?;
        Ok(open.job.close()?)
    })
}

/// The version of the library, such as "0.2.0".
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
mod tests;
