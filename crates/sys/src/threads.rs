//! Threads that only help: where none can be started, the caller does the work alone.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle, scope};

/// Starts a helper, if the system gives one more thread. The caller must be able to finish without.
pub fn help<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, run).ok()
}

/// Does two things at once; one after the other, `own` first, where no thread can be started.
pub fn beside<A: Send, B>(other: impl FnOnce() -> A + Send, own: impl FnOnce() -> B) -> (A, B) {
    let other = Mutex::new(Some(other));
    // Whoever comes first does it.
    let run = || {
        let taken = other.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map(|other| other())
    };
    scope(|scope| {
        let helper = help(scope, run);
        let own = own();
        let done = match helper {
            Some(helper) => helper.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => run(),
        };
        (done.expect("it is done once"), own)
    })
}

#[cfg(test)]
mod tests;
