//! Signals that ask for a checkpoint at the program's next safe point.
//!
//! ```text
//! signal -> handler: counts it, calls the program's own handler
//! point  -> [`Requests::is_pending`] -> checkpoint -> [`Requests::answer`]
//! ```
//! Why a count and no flag: several jobs of a process may wait for the same signal, and each
//! remembers by itself which requests it has answered.
//!
//! Invariants:
//! - The handler adds to a number and calls what was there before; it takes no lock, allocates
//!   nothing and leaves `errno` alone.
//! - A handler stays installed until the process ends: a signal that comes late must not end it.
//! - A handler that the program installs after ours is its own: requests no longer come, unless it
//!   calls ours.

mod name;
pub(crate) mod previous;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub use name::Signal;
use previous::{Previous, current};

/// What is known of one signal.
struct Entry {
    received: AtomicU64,
    previous: Previous,
}

/// Numbers of signals are below this.
const SIGNALS: usize = 65;

static ENTRIES: [Entry; SIGNALS] =
    [const { Entry { received: AtomicU64::new(0), previous: Previous::unknown() } }; SIGNALS];
static INSTALLED: Mutex<[bool; SIGNALS]> = Mutex::new([false; SIGNALS]);

/// The requests that one job has to answer.
pub struct Requests {
    entry: &'static Entry,
    answered: AtomicU64,
}

impl Requests {
    /// From now on this signal asks for checkpoints.
    pub fn by(signal: Signal) -> Self {
        install(signal.number());
        let entry = &ENTRIES[signal.number() as usize];
        Self { entry, answered: AtomicU64::new(entry.received.load(Ordering::Acquire)) }
    }

    /// Whether the signal has come since the last answer.
    pub fn is_pending(&self) -> bool {
        self.entry.received.load(Ordering::Acquire) != self.answered.load(Ordering::Acquire)
    }

    /// A checkpoint was taken, and the program has not gone on since: it answers every request that
    /// has come until now.
    pub fn answer(&self) {
        self.answered.store(self.entry.received.load(Ordering::Acquire), Ordering::Release);
    }
}

/// Installs the handler, once.
fn install(signal: i32) {
    let mut all = INSTALLED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let installed = &mut all[signal as usize];
    if *installed {
        return;
    }
    let before = current(signal);
    // SAFETY: nobody reads it before the handler below is installed, and the lock is held.
    unsafe { ENTRIES[signal as usize].previous.set(before) };
    // SAFETY: plain numbers and an empty set.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = handle;
    action.sa_sigaction = handler as libc::sighandler_t;
    // System calls of the program that were not interrupted before are not interrupted now.
    let restart = match is_handler(&before) {
        true => before.sa_flags & libc::SA_RESTART,
        false => libc::SA_RESTART,
    };
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | restart;
    // SAFETY: the structure is complete; the handler is written for any context.
    let done = unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    assert_eq!(done, 0, "a signal of the table can be handled");
    *installed = true;
}

fn is_handler(action: &libc::sigaction) -> bool {
    ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(entry) = ENTRIES.get(signal as usize) else { return };
    entry.received.fetch_add(1, Ordering::Release);
    // SAFETY: set before this handler was installed.
    let previous = unsafe { entry.previous.get() };
    if is_handler(previous) {
        previous::call(previous, signal, info, context);
    }
}
