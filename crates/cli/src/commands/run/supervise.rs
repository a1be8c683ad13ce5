//! Watching a program: its end, signals for it, and the time of its next checkpoint.
//!
//! All signals that concern us are blocked and taken one at a time, with a time limit, so nothing
//! happens in handlers. Only a program that shall end is looked at often: whether its last
//! checkpoint is durable.

use std::time::{Duration, Instant};

use libc::{c_int, pid_t};

use super::{Cause, Way, last_error, told_failure, told_leaving};
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
/// How often somebody looks whether the last checkpoint is durable.
const LEAVING_LOOK: Duration = Duration::from_millis(50);

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

    /// Waits for so long; false if somebody ends the program meanwhile.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.next(left) {
                Some((signal, _)) if ENDING.contains(&signal) => return false,
                _ if left.is_zero() => return true,
                _ => {}
            }
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

/// A program whose end was asked for, and is held back until its last checkpoint is durable.
struct Leaving {
    signal: c_int,
    until: Instant,
}

/// Somebody who stays with a program until it ends.
struct Watch<'a> {
    way: &'a mut dyn Way,
    pid: pid_t,
    args: &'a RunArgs,
    output: &'a Output,
    /// When the next checkpoint is due.
    due: Option<Instant>,
    leaving: Option<Leaving>,
    wanted: bool,
}

/// Stays with a program until it ends.
pub(super) fn watch(
    way: &mut dyn Way,
    pid: pid_t,
    args: &RunArgs,
    signals: &Signals,
    output: &Output,
) -> Result<End> {
    let due = args.interval.map(|time| Instant::now() + time);
    let mut watch = Watch { way, pid, args, output, due, leaving: None, wanted: false };
    loop {
        if let Some(end) = ended(pid, watch.wanted)? {
            return Ok(end);
        }
        match signals.next(watch.limit()) {
            Some((signal, _)) if signal == signals.asking => watch.checkpoint(Cause::Signal),
            Some((libc::SIGCHLD, _)) | None => {}
            Some((libc::SIGTERM, _)) => watch.leave(libc::SIGTERM),
            Some((signal, from_terminal)) => watch.pass_on(signal, from_terminal),
        }
        watch.leave_if_durable();
        if watch.due.is_some_and(|due| due <= Instant::now()) {
            watch.checkpoint(Cause::Period);
        }
    }
}

impl Watch<'_> {
    /// How long nothing has to be done.
    fn limit(&self) -> Duration {
        let due = self.due.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()));
        if self.leaving.is_some() { due.min(LEAVING_LOOK) } else { due.min(LOOK) }
    }

    /// Takes a checkpoint, or asks for one; one that fails is told, and the program goes on.
    fn checkpoint(&mut self, cause: Cause) {
        if let Err(failure) = self.way.checkpoint(self.pid, cause) {
            told_failure(self.output, &failure);
        }
        self.due = self.args.interval.map(|time| Instant::now() + time);
    }

    /// The program shall end: first it saves what it has done, if it can. Asked once more it ends
    /// at once.
    fn leave(&mut self, signal: c_int) {
        self.wanted = true;
        if self.leaving.take().is_some() || self.args.grace.is_zero() {
            return self.pass_on(signal, false);
        }
        match self.way.checkpoint(self.pid, Cause::Signal) {
            Ok(()) => {
                self.leaving = Some(Leaving { signal, until: Instant::now() + self.args.grace });
            }
            // A program without checkpoints has nothing to wait for.
            Err(_) => self.pass_on(signal, false),
        }
    }

    fn leave_if_durable(&mut self) {
        let Some(Leaving { signal, until }) = self.leaving else { return };
        let durable = self.way.is_durable();
        if durable || Instant::now() >= until {
            told_leaving(self.output, durable);
            self.leaving = None;
            self.pass_on(signal, false);
        }
    }

    fn pass_on(&mut self, signal: c_int, from_terminal: bool) {
        self.wanted |= ENDING.contains(&signal);
        if !from_terminal {
            // SAFETY: a signal to our own child, which has not been waited for.
            unsafe { libc::kill(self.pid, signal) };
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
