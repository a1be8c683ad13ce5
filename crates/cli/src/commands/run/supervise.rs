//! Watching a program: its end, signals for it, and the time of its next checkpoint.
//!
//! All signals that concern us are blocked and taken one at a time, with a time limit, so nothing
//! happens in handlers and nothing is polled.

use std::time::{Duration, Instant};

use libc::{c_int, pid_t};

use super::{Cause, Way, last_error, told_failure};
use crate::args::RunArgs;
use crate::failure::Result;
use crate::output::Output;

/// Signals that are the program's business, or end it.
const PASSED_ON: [c_int; 7] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCONT,
];
/// Those by which people end a program.
const ENDING: [c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT, libc::SIGHUP];
/// Waits are cut into pieces of this length at most.
const LOOK: Duration = Duration::from_secs(3600);

/// How a program ended.
pub(super) struct End {
    /// What this command exits with; 128 and the signal's number for a killed program.
    pub(super) code: u8,
    pub(super) signal: Option<c_int>,
    /// Somebody asked for it.
    pub(super) wanted: bool,
}

/// The signals that are taken one at a time.
pub(super) struct Signals {
    all: libc::sigset_t,
    /// The one that asks for a checkpoint.
    asking: c_int,
}

impl Signals {
    pub(super) fn block(asking: c_int) -> Self {
        // SAFETY: the set is made empty before use; blocking has no other effect.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in PASSED_ON.into_iter().chain([libc::SIGCHLD, asking]) {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            Self { all: set, asking }
        }
    }

    /// The next signal and whether a terminal sent it, which reaches the program as well.
    fn next(&self, limit: Duration) -> Option<(c_int, bool)> {
        let time = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(limit.subsec_nanos()),
        };
        // SAFETY: the kernel fills in the record.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigtimedwait(&raw const self.all, &raw mut info, &raw const time);
            (signal > 0).then_some((signal, info.si_code == libc::SI_KERNEL))
        }
    }
}

/// Stays with a program until it ends.
pub(super) fn watch(
    way: &mut dyn Way,
    pid: pid_t,
    args: &RunArgs,
    signals: &Signals,
    output: &Output,
) -> Result<End> {
    let mut due = args.every.map(|every| Instant::now() + every);
    let mut wanted = false;
    loop {
        if let Some(end) = ended(pid, wanted)? {
            return Ok(end);
        }
        let limit = due.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK));
        let asked = match signals.next(limit) {
            Some((signal, _)) if signal == signals.asking => true,
            Some((libc::SIGCHLD, _)) => false,
            Some((signal, from_terminal)) => {
                wanted |= ENDING.contains(&signal);
                if !from_terminal {
                    // SAFETY: a signal to our own child, which has not been waited for.
                    unsafe { libc::kill(pid, signal) };
                }
                false
            }
            None => false,
        };
        let is_due = due.is_some_and(|due| due <= Instant::now());
        if asked || is_due {
            let cause = if asked { Cause::Signal } else { Cause::Period };
            if let Err(failure) = way.checkpoint(pid, cause) {
                told_failure(output, &failure);
            }
            due = args.every.map(|every| Instant::now() + every);
        }
    }
}

fn ended(pid: pid_t, wanted: bool) -> Result<Option<End>> {
    let mut status = 0;
    // SAFETY: the kernel writes the status.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } {
        0 => Ok(None),
        -1 => Err(last_error("wait for the program")),
        _ if libc::WIFSIGNALED(status) => {
            let signal = libc::WTERMSIG(status);
            Ok(Some(End { code: 128 + signal as u8, signal: Some(signal), wanted }))
        }
        _ => Ok(Some(End { code: libc::WEXITSTATUS(status) as u8, signal: None, wanted })),
    }
}
