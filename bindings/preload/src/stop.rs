//! All other threads stand still, wherever they are, and go on later.
//!
//! Data: `/proc/self/task` -> a signal to each thread -> its handler notes where the thread is and
//! waits. The list is read again until it brings nobody new: a thread that was not stopped yet
//! may have started another.
//!
//! Invariants:
//! - A thread that is stopped holds no lock of ours; it may hold any lock of the program.
//! - If one does not answer, all go on, and there is no checkpoint.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use standfast_launch::plan::Thread;

use crate::context::{self, RESUMED};
use crate::control::{Control, THREADS_MAX};
use crate::system::{self, sys};

/// How long a thread may take to answer, in looks of a millisecond.
const LOOKS_MAX: u32 = 10_000;

/// The signal that stops a thread.
pub(crate) fn signal() -> i32 {
    libc::SIGRTMAX() - 2
}

/// Why not all threads stand still.
pub(crate) enum Unstopped {
    /// This one does not answer.
    Silent(i32),
    /// There are more than there is room for.
    TooMany,
    /// The kernel does not list them.
    Unlisted,
}

/// Stops all other threads. The first slot is left to the caller.
pub(crate) fn others(control: &Control) -> Result<(), Unstopped> {
    let own = system::tid();
    // SAFETY: only the taker of a checkpoint writes this, and nobody else reads it now.
    unsafe { (*control.as_ptr()).slots_len = 1 };
    loop {
        let asked = ask_new(control, own)?;
        if asked == 0 {
            return Ok(());
        }
        for slot in &control.slots[1..control.slots_len] {
            let mut looks = 0;
            while slot.tid.load(Ordering::Acquire) != 0 && slot.stopped.load(Ordering::Acquire) == 0
            {
                let tid = slot.tid.load(Ordering::Acquire);
                if !send(tid, 0) {
                    // It has ended.
                    slot.tid.store(0, Ordering::Release);
                } else if looks == LOOKS_MAX {
                    return Err(Unstopped::Silent(tid));
                }
                looks += 1;
                nap();
            }
        }
    }
}

/// Lets all threads go on.
pub(crate) fn go_on(control: &Control) {
    control.round.fetch_add(1, Ordering::AcqRel);
    for slot in &control.slots[..control.slots_len] {
        slot.tid.store(0, Ordering::Release);
    }
    // SAFETY: the word lives as long as the process.
    unsafe { sys!(libc::SYS_futex, control.round.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Sends the signal to every thread that has no slot yet; tells how many.
fn ask_new(control: &Control, own: i32) -> Result<usize, Unstopped> {
    let mut asked = 0;
    let listed = each_number(c"/proc/self/task", |tid| {
        let tid = tid as i32;
        let len = control.slots_len;
        let known = control.slots[..len].iter().any(|slot| slot.tid.load(Ordering::Relaxed) == tid);
        if tid == own || known {
            return Ok(());
        }
        let slot = control.slots.get(len).ok_or(Unstopped::TooMany)?;
        slot.stopped.store(0, Ordering::Relaxed);
        slot.tid.store(tid, Ordering::Release);
        // SAFETY: as in `others`.
        unsafe { (*control.as_ptr()).slots_len = len + 1 };
        asked += usize::from(send(tid, signal()));
        Ok(())
    });
    listed.unwrap_or(Err(Unstopped::Unlisted)).map(|()| asked)
}

fn send(tid: i32, signal: i32) -> bool {
    // SAFETY: a signal to a thread of this process.
    unsafe { sys!(libc::SYS_tgkill, system::pid(), tid, signal) == 0 }
}

fn nap() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // SAFETY: the time is readable.
    unsafe { sys!(libc::SYS_nanosleep, &raw const time, 0) };
}

/// The handler of the stopping signal.
pub(crate) extern "C" fn handle(_: i32, _: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the handler is installed after the page is there.
    let Some(control) = (unsafe { Control::get() }) else { return };
    let tid = system::tid();
    let slots = &control.slots[..control.slots_len.min(THREADS_MAX)];
    let Some(slot) = slots.iter().find(|slot| slot.tid.load(Ordering::Acquire) == tid) else {
        return;
    };
    let slot = (&raw const *slot).cast_mut();
    // SAFETY: the slot is this thread's until it says that it has stopped.
    unsafe { stand(&raw mut (*slot).thread, wait, slot.cast()) };
}

/// Notes where this thread is, runs a function there, and tells whether the thread has been
/// resumed in another process since.
///
/// # Safety
/// `thread` is writable, and `arg` is what `run` expects.
pub(crate) unsafe fn stand(
    thread: *mut Thread,
    run: extern "C" fn(*mut c_void) -> u64,
    arg: *mut c_void,
) -> u64 {
    // On the stack: after a resume this is what tells the new kernel thread about itself.
    let (mut robust, mut bytes) = (0usize, 0usize);
    // SAFETY: the kernel writes two words.
    unsafe { sys!(libc::SYS_get_robust_list, 0, &raw mut robust, &raw mut bytes) };
    let first = u64::from(system::tid() == system::pid());
    // SAFETY: the caller vouches for both.
    let answer = unsafe {
        let pointer = system::thread_pointer() as u64;
        *thread = Thread {
            pointer,
            context: 0,
            robust: robust as u64,
            robust_bytes: bytes as u64,
            first,
        };
        context::hold(&raw mut (*thread).context, run, arg)
    };
    if answer == RESUMED {
        register(robust, bytes);
    }
    answer
}

/// Tells the kernel of a new process what the C library had told the old one.
fn register(robust: usize, bytes: usize) {
    const SIGNATURE: usize = 0x5305_3053;
    const AREA_BYTES: usize = 32;
    // SAFETY: both areas are where the C library had put them, and are restored. The second call
    // fails where the area is registered already, as it is for the first thread.
    unsafe {
        sys!(libc::SYS_set_robust_list, robust, bytes);
        let Some(control) = Control::get() else { return };
        if let Some(offset) = control.rseq {
            let area = system::thread_pointer().wrapping_add_signed(offset);
            sys!(libc::SYS_rseq, area, AREA_BYTES, 0, SIGNATURE);
        }
    }
}

/// Stands still until the round is over.
extern "C" fn wait(slot: *mut c_void) -> u64 {
    // SAFETY: `handle` passes a slot of the page.
    let (control, slot) = unsafe {
        let Some(control) = Control::get() else { return 0 };
        (control, &*slot.cast::<crate::control::Slot>())
    };
    let round = control.round.load(Ordering::Acquire);
    slot.stopped.store(1, Ordering::Release);
    while control.round.load(Ordering::Acquire) == round {
        // SAFETY: the word lives as long as the process.
        unsafe { sys!(libc::SYS_futex, control.round.as_ptr(), libc::FUTEX_WAIT, round, 0) };
    }
    0
}

/// Calls for each entry of a directory whose name is a number. `None` if it cannot be read.
pub(crate) fn each_number<E>(
    path: &std::ffi::CStr,
    mut found: impl FnMut(u64) -> Result<(), E>,
) -> Option<Result<(), E>> {
    let fd = system::open(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let mut buf = [0u64; 256];
    let mut result = Ok(());
    while result.is_ok() {
        // SAFETY: the buffer is as long as it says, and aligned for the records.
        let got = unsafe { sys!(libc::SYS_getdents64, fd, buf.as_mut_ptr(), size_of_val(&buf)) };
        if got <= 0 {
            break;
        }
        let mut at = 0usize;
        while at < got as usize && result.is_ok() {
            // SAFETY: the kernel wrote whole records: number, offset, length, kind, name with 0.
            let (len, name) = unsafe {
                let record = buf.as_ptr().cast::<u8>().add(at);
                let len = record.add(16).cast::<u16>().read_unaligned();
                (len, std::ffi::CStr::from_ptr(record.add(19).cast()))
            };
            let number =
                std::str::from_utf8(name.to_bytes()).ok().and_then(|text| text.parse().ok());
            if let Some(number) = number {
                result = found(number);
            }
            at += usize::from(len);
        }
    }
    system::close(fd);
    Some(result)
}
