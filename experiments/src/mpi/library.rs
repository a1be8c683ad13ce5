//! The compiled adapter, opened by a rank.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, bail};
use standfast_mpi::{CommTable, Mpi};

/// MPI, started; it ends with this value.
pub(crate) struct Library {
    table: *const CommTable,
    world: *mut c_void,
    end: extern "C" fn(),
}

impl Library {
    /// Opens the library and starts MPI.
    pub(crate) fn start(path: &Path) -> anyhow::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes()).context("naming the library")?;
        // Global: parts that MPI loads later look for its names there.
        let flags = libc::RTLD_LAZY | libc::RTLD_GLOBAL;
        // SAFETY: the text ends with 0; what the library does when it is opened is MPI's.
        let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
        if handle.is_null() {
            bail!("opening the adapter: {}", last_error());
        }
        // SAFETY: the functions have these types, in start.c and in the adapter.
        let (start, end, table) = unsafe {
            (
                std::mem::transmute::<*mut c_void, extern "C" fn() -> *mut c_void>(find(
                    handle,
                    c"sf_experiment_start",
                )?),
                std::mem::transmute::<*mut c_void, extern "C" fn()>(find(
                    handle,
                    c"sf_experiment_end",
                )?),
                std::mem::transmute::<*mut c_void, extern "C" fn() -> *const CommTable>(find(
                    handle,
                    c"sf_mpi_table",
                )?),
            )
        };
        let world = start();
        if world.is_null() {
            bail!("MPI does not start");
        }
        Ok(Self { table: table(), world, end })
    }

    /// All ranks.
    pub(crate) fn world(&self) -> anyhow::Result<Mpi> {
        // SAFETY: the library stays open, and the communicator is MPI's own.
        Ok(unsafe { Mpi::duplicate_of(self.table, self.world) }?)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        (self.end)();
    }
}

fn find(handle: *mut c_void, name: &CStr) -> anyhow::Result<*mut c_void> {
    // SAFETY: the handle is open and the name ends with 0.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if found.is_null() {
        bail!("the adapter lacks {}: {}", name.to_string_lossy(), last_error());
    }
    Ok(found)
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
