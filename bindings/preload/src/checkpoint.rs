//! Taking a checkpoint: everything stands still, a twin is forked, everything goes on.
//!
//! Who asks by signal gets a checkpoint at once, or none while the previous one is still being
//! written. Who asks by call waits for the previous one first.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use standfast::Kind;

use crate::context::RESUMED;
use crate::control::{Control, FILES_MAX, FileAt};
use crate::stop::{self, Unstopped};
use crate::system::{self, Digits, sys};
use crate::{start, twin};

/// What became of a request that was met.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Taken {
    /// The twin writes it.
    Captured,
    /// This is a resumed process: the program goes on from a checkpoint.
    Resumed,
}

/// Takes a checkpoint for the program itself; stderr says why there is none.
pub(crate) fn by_call() -> Result<Taken, Kind> {
    if protected().is_none() {
        return Err(Kind::Unsupported);
    }
    take(true).ok_or(Kind::Transient)
}

/// Waits until the last checkpoint is durable; tells the kind of its failure.
pub(crate) fn wait() -> Result<(), Kind> {
    let control = protected().ok_or(Kind::Unsupported)?;
    reap(control, true);
    match control.failed.load(Ordering::Acquire) {
        0 => Ok(()),
        // One that was killed has no kind.
        code => Err(Kind::all().find(|kind| kind.exit_code() == code).unwrap_or(Kind::Transient)),
    }
}

/// The handler of the signal that asks for a checkpoint.
pub(crate) extern "C" fn handle(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    // The interrupted code must not see a changed errno; bare system calls leave it alone.
    take(false);
}

/// The page, if this process is protected.
fn protected() -> Option<&'static Control> {
    if !start::is_protected() {
        return None;
    }
    // SAFETY: a protected process has its page.
    unsafe { Control::get() }
}

fn take(patient: bool) -> Option<Taken> {
    let control = protected()?;
    if !control.claim() {
        return None;
    }
    // A handler of the program that jumped away from here would leave its threads standing.
    let signals = start::block_signals();
    let taken = if reap(control, patient) { take_now(control) } else { None };
    // A resumed process has a page of its own, on which nothing was claimed.
    if taken != Some(Taken::Resumed) {
        control.release();
    }
    start::unblock_signals(signals);
    taken
}

fn take_now(control: &Control) -> Option<Taken> {
    if let Err(unstopped) = stop::others(control) {
        complain(&unstopped);
        stop::go_on(control);
        return None;
    }
    if let Err(unobserved) = observe(control) {
        unobserved.complain();
        stop::go_on(control);
        return None;
    }
    let page = control.as_ptr();
    // SAFETY: the first slot is the taker's, and `fork_twin` expects the page.
    let answer = unsafe { stop::stand(&raw mut (*page).slots[0].thread, fork_twin, page.cast()) };
    if answer == RESUMED {
        crate::pour::clean_up();
        return Some(Taken::Resumed);
    }
    stop::go_on(control);
    match control.twin.load(Ordering::Relaxed) {
        0 => {
            system::say(&[b"standfast: no checkpoint: the process cannot be forked\n"]);
            None
        }
        _ => Some(Taken::Captured),
    }
}

/// Forks without the C library: its own fork takes locks that a stopped thread may hold, runs the
/// program's handlers, and its child would be reported to the program.
extern "C" fn fork_twin(page: *mut c_void) -> u64 {
    // SAFETY: `take_now` passes the page.
    let control = unsafe { &*page.cast::<Control>() };
    let number = system::thread_pointer() + control.tid_offset;
    let flags = libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID;
    // SAFETY: the child has its own copy of everything, and its thread's number where the C
    // library looks for it.
    let child = unsafe { sys!(libc::SYS_clone, flags, 0, 0, number, 0) };
    if child == 0 {
        twin::run(control);
    }
    control.twin.store(child.max(0) as i32, Ordering::Relaxed);
    0
}

/// Takes note of the twin's end; false while it is at work and nobody wants to wait.
fn reap(control: &Control, patient: bool) -> bool {
    let twin = control.twin.load(Ordering::Acquire);
    if twin == 0 {
        return true;
    }
    let mut status = 0i32;
    let options = libc::__WALL | if patient { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: the kernel writes the status.
        let ended = unsafe { sys!(libc::SYS_wait4, twin, &raw mut status, options, 0) };
        match ended {
            0 => return false,
            error if error == -(libc::EINTR as isize) => {}
            _ => break,
        }
    }
    // The code of a twin that has ended by itself, or the signal that has ended it.
    let failed = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -status };
    control.failed.store(failed, Ordering::Release);
    control.twin.store(0, Ordering::Release);
    true
}

/// Why the program's files are not known: it would miss one that does not come back.
enum Unobserved {
    /// There are more than there is room for.
    TooMany,
    /// The kernel does not list them.
    Unlisted,
}

impl Unobserved {
    fn complain(&self) {
        let start: &[u8] = b"standfast: no checkpoint: ";
        let most = Digits::of(FILES_MAX as u64, 10);
        match self {
            Self::TooMany => {
                system::say(&[start, b"the program has more than ", most.text(), b" files open\n"])
            }
            Self::Unlisted => system::say(&[
                start,
                b"/proc/self/fd cannot be read; has the program a descriptor left ('ulimit -n')?\n",
            ]),
        }
    }
}

/// Notes what the kernel keeps for the process and what will have changed when the twin looks.
fn observe(control: &Control) -> Result<(), Unobserved> {
    let page = control.as_ptr();
    for signal in 1..=64usize {
        // SAFETY: only the taker writes here; the kernel writes four words.
        unsafe {
            let action = &raw mut (*page).actions[signal - 1];
            sys!(libc::SYS_rt_sigaction, signal, 0, action, 8);
        }
    }
    let mut len = 0;
    let note = |fd: u64| {
        // Standard streams are those of whoever starts the program.
        if fd < 3 {
            return Ok(());
        }
        // SAFETY: questions about descriptors.
        let (position, mode, kept) = unsafe {
            (
                sys!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR),
                sys!(libc::SYS_fcntl, fd, libc::F_GETFL),
                sys!(libc::SYS_fcntl, fd, libc::F_GETFD),
            )
        };
        if position >= 0 && mode >= 0 && kept >= 0 {
            let on_exec = if kept as i32 & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 };
            let flags = (mode as i32 | on_exec) as u32;
            let file = FileAt { fd: fd as u32, flags, position: position as u64 };
            if len == FILES_MAX {
                return Err(Unobserved::TooMany);
            }
            // SAFETY: within the table, and only the taker writes here.
            unsafe { (*page).files[len] = file };
            len += 1;
        }
        Ok(())
    };
    let noted = stop::each_number(c"/proc/self/fd", note);
    // SAFETY: as above.
    unsafe { (*page).files_len = len };
    noted.unwrap_or(Err(Unobserved::Unlisted))
}

fn complain(unstopped: &Unstopped) {
    let start: &[u8] = b"standfast: no checkpoint: ";
    match unstopped {
        Unstopped::Silent(tid) => {
            let (tid, signal) =
                (Digits::of(*tid as u64, 10), Digits::of(stop::signal() as u64, 10));
            let parts = [start, b"thread ", tid.text(), b" does not answer signal ", signal.text()];
            system::say(&parts);
            system::say(&[b"; does it block signals?\n"]);
        }
        Unstopped::TooMany => system::say(&[start, b"the program has too many threads\n"]),
        Unstopped::Unlisted => system::say(&[start, b"/proc/self/task cannot be read\n"]),
    }
}
