//! The handler of `SIGSEGV`: finds out whether a fault is a first write to a tracked page, and
//! leaves every other fault to whoever handled it before.
//!
//! ```text
//! fault -> [handler] -> tracked? mark, make writable, return: the write happens again
//!                    -> not ours? the handler that was there before, or the default: death
//! ```
//!
//! Invariants:
//! - The handler takes no lock, allocates nothing and leaves `errno` alone: it interrupts anything.
//! - An [`Area`] is freed only when no thread is inside the handler.
//! - A handler that the program installs after ours is its own: from then on nothing is armed.
//!   Programs install theirs before the first checkpoint, or call ours for faults they do not know.

use std::ops::Range;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::kernel::system_page;
use crate::signal::previous::{self, Previous, current};

/// Stretches that can be tracked at a time.
const AREAS: usize = 256;

/// A tracked stretch of whole pages.
pub(super) struct Area {
    pub(super) range: Range<usize>,
    page_bytes: usize,
    written: Box<[AtomicU64]>,
    /// The kernel's table of mappings is full: everything was made writable.
    overflowed: AtomicBool,
}

static TRACKED: [AtomicPtr<Area>; AREAS] = [const { AtomicPtr::new(ptr::null_mut()) }; AREAS];
/// Threads that look at areas right now.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// Whoever was there before; set once, before our handler is.
static PREVIOUS: Previous = Previous::unknown();
static INSTALLED: Mutex<bool> = Mutex::new(false);

impl Area {
    pub(super) fn new(range: Range<usize>) -> Self {
        let page_bytes = system_page();
        let words = (range.len() / page_bytes).div_ceil(64);
        let written = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { range, page_bytes, written, overflowed: AtomicBool::new(false) }
    }

    /// Protects everything; from now on first writes are told.
    pub(super) fn protect(&self) -> bool {
        self.overflowed.store(false, Ordering::SeqCst);
        set_protection(&self.range, libc::PROT_READ)
    }

    /// Lets everything be written.
    pub(super) fn release(&self) -> bool {
        self.open(&self.range)
    }

    /// Lets a part be written.
    pub(super) fn open(&self, part: &Range<usize>) -> bool {
        set_protection(part, libc::PROT_READ | libc::PROT_WRITE)
    }

    pub(super) fn has_overflowed(&self) -> bool {
        self.overflowed.load(Ordering::SeqCst)
    }

    pub(super) fn was_written(&self, address: usize) -> bool {
        let (word, bit) = self.place(address);
        self.written[word].load(Ordering::SeqCst) & bit != 0
    }

    /// Takes the written pages out, in ascending order.
    pub(super) fn take_written(&self, mut each: impl FnMut(Range<usize>)) {
        for (at, word) in self.written.iter().enumerate() {
            let mut bits = word.swap(0, Ordering::SeqCst);
            while bits != 0 {
                let page = at * 64 + bits.trailing_zeros() as usize;
                let start = self.range.start + page * self.page_bytes;
                each(start..start + self.page_bytes);
                bits &= bits - 1;
            }
        }
    }

    fn place(&self, address: usize) -> (usize, u64) {
        let page = (address - self.range.start) / self.page_bytes;
        (page / 64, 1 << (page % 64))
    }

    /// Lets a first write through. Safe inside a signal handler.
    fn admit(&self, address: usize) -> bool {
        let (word, bit) = self.place(address);
        let start = address / self.page_bytes * self.page_bytes;
        // Marked before the page can be written, and once more after: a collection in between may
        // have taken the first mark while the page was being opened.
        self.written[word].fetch_or(bit, Ordering::SeqCst);
        let page = start..start + self.page_bytes;
        if !self.open(&page) {
            // Every opened page may split a mapping, and their number is limited.
            self.overflowed.store(true, Ordering::SeqCst);
            return self.release();
        }
        self.written[word].fetch_or(bit, Ordering::SeqCst);
        true
    }
}

fn set_protection(range: &Range<usize>, protection: i32) -> bool {
    // SAFETY: the range belongs to a region whose owner let us protect it; no data change.
    unsafe { libc::mprotect(range.start as *mut libc::c_void, range.len(), protection) == 0 }
}

/// Lets the handler know of an area; false if there are too many, or if the program has taken
/// the signal for itself.
pub(super) fn add(area: Box<Area>) -> Result<*const Area, Box<Area>> {
    if !install() {
        return Err(area);
    }
    let area = Box::into_raw(area);
    for slot in &TRACKED {
        let free = ptr::null_mut();
        if slot.compare_exchange(free, area, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return Ok(area);
        }
    }
    // SAFETY: it came from a box and nobody has seen it.
    Err(unsafe { Box::from_raw(area) })
}

/// Takes an area back; everything in it must be writable by now.
pub(super) fn remove(area: *const Area) -> Option<Box<Area>> {
    let known = |slot: &&AtomicPtr<Area>| ptr::eq(slot.load(Ordering::SeqCst), area);
    TRACKED.iter().find(known)?.store(ptr::null_mut(), Ordering::SeqCst);
    while INSIDE.load(Ordering::SeqCst) > 0 {
        std::hint::spin_loop();
    }
    // SAFETY: it came from a box; no slot names it any more, and whoever saw it has left.
    Some(unsafe { Box::from_raw(area.cast_mut()) })
}

/// Installs the handler once; false if the signal belongs to somebody else by now.
pub(super) fn install() -> bool {
    let mut installed = INSTALLED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if *installed {
        return current(libc::SIGSEGV).sa_sigaction == own();
    }
    // SAFETY: nobody reads it before the handler below is installed, and the lock is held.
    unsafe { PREVIOUS.set(current(libc::SIGSEGV)) };
    // SAFETY: plain numbers and an empty set.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = own();
    // On the thread's alternate stack where it has one, as handlers of stack overflows need it.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    // SAFETY: the structure is complete; the handler is written for any context.
    *installed = unsafe { libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut()) } == 0;
    *installed
}

fn own() -> libc::sighandler_t {
    handle as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as libc::sighandler_t
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid structure; every thread has its errno.
    let (address, code, errno) =
        unsafe { ((*info).si_addr() as usize, (*info).si_code, *libc::__errno_location()) };
    // Sent by somebody, not by a fault: there is no address.
    let ours = code > 0 && admit(address);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    if !ours {
        pass_on(signal, info, context, code > 0);
    }
}

fn admit(address: usize) -> bool {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let ours = TRACKED.iter().any(|slot| {
        // SAFETY: areas are freed only when nobody is inside.
        let area = unsafe { slot.load(Ordering::SeqCst).as_ref() };
        area.is_some_and(|area| area.range.contains(&address) && area.admit(address))
    });
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    ours
}

/// Does what would have happened without us.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void, fault: bool) {
    // SAFETY: set before this handler was installed.
    let previous = unsafe { PREVIOUS.get() };
    match previous.sa_sigaction {
        libc::SIG_IGN if !fault => {}
        // A fault happens again, now with the default action; a sent signal must be sent again.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: async-signal-safe calls with a complete structure.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &action, ptr::null_mut());
                if !fault {
                    libc::raise(signal);
                }
            }
        }
        _ => previous::call(previous, signal, info, context),
    }
}
