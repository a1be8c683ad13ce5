//! Threads of a library must not run the program's signal handlers.

/// Blocks every signal for the calling thread, except those that report its own faults. For the
/// threads of every crate on the path.
pub fn keep_signals_away() {
    // SAFETY: the set is initialised by sigfillset before use, and only this thread's mask changes.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
            libc::sigdelset(&mut set, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}
