//! Before `main`: what the launcher asks for, and the handlers.
//!
//! Invariants:
//! - Without the launcher's variables the library is an allocator and nothing else.
//! - The variables are gone before the program looks: its children are programs like any other.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::control::{Control, SETTINGS_MAX};
use crate::system::{self, sys};
use crate::{allocator, checkpoint, resume, stop};

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

static PROTECTED: AtomicU32 = AtomicU32::new(0);

/// Whether checkpoints can be taken.
pub(crate) fn is_protected() -> bool {
    PROTECTED.load(Ordering::Acquire) != 0
}

extern "C" fn start() {
    let Some(settings) = variable(c"STANDFAST_PRELOAD_SETTINGS") else { return };
    let signal = variable(c"STANDFAST_PRELOAD_SIGNAL").and_then(number);
    let resume = variable(c"STANDFAST_PRELOAD_RESUME");
    let Some((control, signal)) = prepare(settings, signal) else { return };
    if let Some(text) = resume {
        resume::run(text.to_bytes(), control);
    }
    // A program that has not allocated yet would decide in its own code, where a checkpoint can fall
    // into the middle of it.
    allocator::decide();
    forget_variables();
    install(signal as i32, checkpoint::handle);
    install(stop::signal(), stop::handle);
    PROTECTED.store(1, Ordering::Release);
}

fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: no other thread is there yet; the value stays until it is unset.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

fn number(text: &CStr) -> Option<u64> {
    text.to_str().ok()?.parse().ok()
}

fn prepare(settings: &CStr, signal: Option<u64>) -> Option<(&'static Control, u64)> {
    let refuse = |why: &[u8]| {
        system::say(&[b"standfast: the program runs without checkpoints: ", why, b"\n"]);
        None
    };
    let settings = settings.to_bytes();
    let Some(signal) = signal.filter(|_| settings.len() <= SETTINGS_MAX) else {
        return refuse(b"the launcher's variables are wrong");
    };
    // SAFETY: a question.
    if unsafe { libc::personality(0xffff_ffff) } & libc::ADDR_NO_RANDOMIZE == 0 {
        return refuse(b"its addresses are randomised; start it with 'standfast run --preload'");
    }
    let Some(tid_offset) = tid_offset() else {
        return refuse(b"this C library keeps thread numbers elsewhere");
    };
    let Some(control) = Control::create() else {
        return refuse(b"the library's addresses are taken");
    };
    control.settings[..settings.len()].copy_from_slice(settings);
    control.settings_len = settings.len();
    control.tid_offset = tid_offset;
    control.rseq = rseq_offset();
    control.process.store(system::pid(), Ordering::Release);
    Some((control, signal))
}

/// Looks for this thread's number in the C library's record of it.
fn tid_offset() -> Option<usize> {
    const RECORD: std::ops::Range<usize> = 0x80..0x800;
    let (pointer, tid) = (system::thread_pointer(), system::tid());
    // SAFETY: glibc's record of a thread begins at its pointer and is longer than this.
    RECORD.step_by(4).find(|offset| unsafe { *((pointer + offset) as *const i32) } == tid)
}

/// Where glibc has registered its restartable-sequence area, if it has.
fn rseq_offset() -> Option<isize> {
    // SAFETY: glibc's documented symbols, an offset and a size.
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        (!offset.is_null() && !size.is_null() && *size != 0).then(|| *offset)
    }
}

fn forget_variables() {
    let names =
        [c"STANDFAST_PRELOAD_SETTINGS", c"STANDFAST_PRELOAD_SIGNAL", c"STANDFAST_PRELOAD_RESUME"];
    for name in names {
        // SAFETY: no other thread is there yet.
        unsafe { libc::unsetenv(name.as_ptr()) };
    }
    let Some(all) = variable(c"LD_PRELOAD") else { return };
    // Ours is the first; the others are the program's.
    // SAFETY: as above; what follows the colon ends with the same 0.
    unsafe {
        match all.to_bytes().iter().position(|byte| *byte == b':') {
            Some(colon) => libc::setenv(c"LD_PRELOAD".as_ptr(), all.as_ptr().add(colon + 1), 1),
            None => libc::unsetenv(c"LD_PRELOAD".as_ptr()),
        };
    }
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut std::ffi::c_void);

fn install(signal: i32, handler: Handler) {
    // SAFETY: the handlers keep to what is allowed in handlers.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// Keeps all signals away from this thread; gives those that were kept away before.
pub(crate) fn block_signals() -> u64 {
    let (all, mut before) = (u64::MAX, 0u64);
    // SAFETY: the kernel reads and writes one word.
    unsafe {
        sys!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const all, &raw mut before, 8)
    };
    before
}

/// Lets signals through again.
pub(crate) fn unblock_signals(before: u64) {
    // SAFETY: the kernel reads one word.
    unsafe { sys!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const before, 0, 8) };
}
