//! Handles: the jobs that C has open, each under a number that C takes for a pointer.
//!
//! Why a table instead of the address itself: a handle used after `sf_finalize` is then always
//! refused, where a look at freed memory would be undefined. Numbers are never given twice, and
//! none is an address, so following one by mistake faults at once.
//!
//! Invariants:
//! - A job is closed only when no call uses it: calls hold it for reading, closing for writing.
//! - A forked child cannot use its parent's jobs: the threads behind them stayed with the parent.

#![allow(non_camel_case_types)]

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use standfast::{Job, Restarted};

use crate::error::{Failure, Outcome, call};

/// An open job. Only the library knows what is inside.
pub struct sf_job {
    _opaque: [u8; 0],
}

/// A job and what its calls remember between them.
pub(crate) struct Open {
    pub(crate) job: Job,
    /// The outcome of the last restart.
    pub(crate) restarted: Mutex<Option<Restarted>>,
}

/// What is behind a handle.
struct Entry {
    /// The process that opened it.
    process: u32,
    /// `None` once it is being closed.
    open: RwLock<Option<Open>>,
}

static OPEN: RwLock<BTreeMap<usize, Arc<Entry>>> = RwLock::new(BTreeMap::new());
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// The upper bits of every handle: no address of a program begins like this.
const MARK: usize = 0x5fad << (usize::BITS - 16);

/// Gives a job its handle.
pub(crate) fn insert(job: Job) -> *mut sf_job {
    let number = MARK | (GIVEN.fetch_add(1, Ordering::Relaxed) + 1);
    let open = Open { job, restarted: Mutex::new(None) };
    let entry = Entry { process: std::process::id(), open: RwLock::new(Some(open)) };
    OPEN.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(entry));
    std::ptr::without_provenance_mut(number)
}

/// Runs the body of an exported function that works on a job.
pub(crate) fn on_job(
    function: &str,
    handle: *const sf_job,
    body: impl FnOnce(&Open) -> Outcome,
) -> c_int {
    call(function, || {
        let entry = find(handle)?;
        let open = entry.open.read().unwrap_or_else(PoisonError::into_inner);
        body(open.as_ref().ok_or_else(closed)?)
    })
}

/// Takes a job away from its handle, after the calls that use it have ended.
pub(crate) fn remove(handle: *const sf_job) -> Outcome<Open> {
    let entry = find(handle)?;
    OPEN.write().unwrap_or_else(PoisonError::into_inner).remove(&handle.addr());
    entry.open.write().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(closed)
}

fn find(handle: *const sf_job) -> Outcome<Arc<Entry>> {
    if handle.is_null() {
        return Err(Failure::invalid("job is NULL"));
    }
    let open = OPEN.read().unwrap_or_else(PoisonError::into_inner);
    let entry = open.get(&handle.addr()).cloned().ok_or_else(closed)?;
    if entry.process != std::process::id() {
        let parent = entry.process;
        return Err(Failure::invalid(format!(
            "job was opened by process {parent}: a forked child must not use it"
        )));
    }
    Ok(entry)
}

fn closed() -> Failure {
    Failure::invalid("job is not open: it was finalized, or sf_init did not give this handle")
}
