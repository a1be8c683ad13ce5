//! The handler that a signal had before ours, and calling it as the kernel would have done.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;

/// What a signal did before our handler was installed. Set once, before that.
pub(crate) struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: written once under a lock of its owner, before the handler that reads it is installed.
unsafe impl Sync for Previous {}

impl Previous {
    pub(crate) const fn unknown() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// Nobody reads it yet, and nobody else writes it.
    pub(crate) unsafe fn set(&self, action: libc::sigaction) {
        // SAFETY: the caller vouches for it.
        unsafe { (*self.0.get()).write(action) };
    }

    /// # Safety
    /// It was set before.
    pub(crate) unsafe fn get(&self) -> &libc::sigaction {
        // SAFETY: the caller vouches for it; it never changes after that.
        unsafe { (*self.0.get()).assume_init_ref() }
    }
}

/// What a signal does now.
pub(crate) fn current(signal: i32) -> libc::sigaction {
    // SAFETY: plain numbers; the call fills them in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut action);
        action
    }
}

/// Calls the program's handler: with its mask, and its kind of arguments. Safe inside a handler.
pub(crate) fn call(
    previous: &libc::sigaction,
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let handler = previous.sa_sigaction;
    // SAFETY: the set is filled in before it is used; the handler is what the program gave to
    // sigaction, called with the arguments its flags ask for.
    unsafe {
        let mut mask = previous.sa_mask;
        if previous.sa_flags & libc::SA_NODEFER == 0 {
            libc::sigaddset(&mut mask, signal);
        }
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, &mask, &mut before);
        if previous.sa_flags & libc::SA_SIGINFO != 0 {
            type Three = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<libc::sighandler_t, Three>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<libc::sighandler_t, extern "C" fn(i32)>(handler)(signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
    }
}
