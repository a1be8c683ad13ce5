//! Ctrl-C and friends: noted here, and obeyed by whoever has something to clean up.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Failure, Result};

static REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// From now on interrupts are noted instead of ending the process.
pub(crate) fn listen() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let handler = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler only stores to an atomic, which is allowed in a signal handler.
        unsafe { libc::signal(signal, handler) };
    }
}

/// Set once an interrupt has come.
pub(crate) fn requested() -> &'static AtomicBool {
    &REQUESTED
}

/// Fails once an interrupt has come.
pub(crate) fn check() -> Result<()> {
    match REQUESTED.load(Ordering::Relaxed) {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}
