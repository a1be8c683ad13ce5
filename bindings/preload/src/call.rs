//! The calls that a program may make: `sf_checkpoint` and `sf_wait`, of libstandfast's types.
//!
//! A preloaded library comes before all others, so these take the place of libstandfast's functions
//! in programs that link it.
//!
//! | job | libstandfast | what happens |
//! |---|---|---|
//! | given | loaded | its own function gets the call |
//! | NULL | loaded | the whole program is meant |
//! | whatever it is | not loaded | the whole program is meant: nobody could have opened a job |
//!
//! So a program without libstandfast may as well declare `int sf_checkpoint(void)`: what is in the
//! registers of the arguments then does not matter.

use std::ffi::{CStr, c_int, c_void};

use crate::checkpoint::{self, Taken};

/// The name by which programs ask the loader for libstandfast.
const LIBRARY: &[u8] =
    concat!("libstandfast.so.", env!("CARGO_PKG_VERSION_MAJOR"), "\0").as_bytes();

/// Takes a checkpoint of the whole program, or passes the call on to libstandfast.
///
/// 0 when it is captured (writing goes on in the background), 1 when the program has just been
/// resumed from this very checkpoint; the code of a failure if none was taken, and stderr says why.
///
/// # Safety
/// With a job, as libstandfast's own function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_checkpoint(
    job: *mut c_void,
    version: u64,
    out_version: *mut u64,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void, u64, *mut u64) -> c_int;
    if !job.is_null()
        // SAFETY: the function has this type.
        && let Some(theirs) = unsafe { theirs::<Function>(c"sf_checkpoint") }
    {
        // SAFETY: the caller vouches for it.
        return unsafe { theirs(job, version, out_version) };
    }
    match checkpoint::by_call() {
        Ok(Taken::Captured) => 0,
        Ok(Taken::Resumed) => 1,
        Err(kind) => kind.c_code(),
    }
}

/// Waits until the last checkpoint of the whole program is durable, or passes the call on.
///
/// 0 if it is, or if there is none; the code of the failure if it could not be written.
///
/// # Safety
/// With a job, as libstandfast's own function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_wait(job: *mut c_void, version: u64, level: c_int) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void, u64, c_int) -> c_int;
    if !job.is_null()
        // SAFETY: the function has this type.
        && let Some(theirs) = unsafe { theirs::<Function>(c"sf_wait") }
    {
        // SAFETY: the caller vouches for it.
        return unsafe { theirs(job, version, level) };
    }
    checkpoint::wait().map_or_else(|kind| kind.c_code(), |()| 0)
}

/// The function of that name in libstandfast: linked, or opened by a part of the program for itself.
///
/// # Safety
/// `F` is its type.
unsafe fn theirs<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: the names end with 0; the caller vouches for the type, which is a pointer's. The
    // library stays: whoever has a job of it has it open.
    unsafe {
        let mut found = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        if found.is_null() {
            let library =
                libc::dlopen(LIBRARY.as_ptr().cast(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
            if !library.is_null() {
                found = libc::dlsym(library, name.as_ptr());
                libc::dlclose(library);
            }
            // The program may ask for its own last failure.
            libc::dlerror();
        }
        (!found.is_null()).then(|| std::mem::transmute_copy(&found))
    }
}
