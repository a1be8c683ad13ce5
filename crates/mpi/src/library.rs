//! MPI for a program that is not linked with it: the adapter as a library, opened when it starts.
//!
//! ```text
//! mpicc -shared -fPIC standfast_mpi.c standfast_start.c -o adapter.so
//! program: Library::start("adapter.so") -> world() -> Mpi
//! ```
//! So one binary runs on whichever MPI is installed.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::comm::Mpi;
use crate::error::{Error, Result};
use crate::table::CommTable;

/// MPI, started; it ends with this value.
pub struct Library {
    table: *const CommTable,
    world: *mut c_void,
    end: extern "C" fn(),
}

impl Library {
    /// Opens the library and starts MPI, once per process. The file must be the adapter: what else
    /// has functions of these names will be called all the same.
    pub fn start(path: &Path) -> Result<Self> {
        let text = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| failed(format!("{} is no path", path.display())))?;
        // Global: parts that MPI loads later look for its names there.
        let flags = libc::RTLD_LAZY | libc::RTLD_GLOBAL;
        // SAFETY: the text ends with 0; what the library does when it is opened is MPI's.
        let handle = unsafe { libc::dlopen(text.as_ptr(), flags) };
        if handle.is_null() {
            return Err(failed(last_error()));
        }
        // SAFETY: the functions have these types, in standfast_start.c and in the adapter.
        let (start, end, table) = unsafe {
            (
                std::mem::transmute::<*mut c_void, extern "C" fn() -> *mut c_void>(find(
                    handle,
                    c"sf_mpi_start",
                )?),
                std::mem::transmute::<*mut c_void, extern "C" fn()>(find(handle, c"sf_mpi_end")?),
                std::mem::transmute::<*mut c_void, extern "C" fn() -> *const CommTable>(find(
                    handle,
                    c"sf_mpi_table",
                )?),
            )
        };
        let world = start();
        if world.is_null() {
            return Err(failed("MPI does not start".into()));
        }
        Ok(Self { table: table(), world, end })
    }

    /// All ranks.
    pub fn world(&self) -> Result<Mpi> {
        // SAFETY: the library stays open, and the communicator is MPI's own.
        unsafe { Mpi::duplicate_of(self.table, self.world) }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        (self.end)();
    }
}

fn find(handle: *mut c_void, name: &CStr) -> Result<*mut c_void> {
    // SAFETY: the handle is open and the name ends with 0.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if found.is_null() {
        return Err(failed(format!("it lacks {}: {}", name.to_string_lossy(), last_error())));
    }
    Ok(found)
}

fn failed(why: String) -> Error {
    Error::Library { why }
}

fn last_error() -> String {
    // SAFETY: the text, if any, is valid until the next call of its family in this thread.
    let text = unsafe { libc::dlerror() };
    match text.is_null() {
        true => "no reason given".into(),
        // SAFETY: not null, and ends with 0.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests;
