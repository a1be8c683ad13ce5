//! `run`: starts a program, sees to its checkpoints, and starts it again when it fails.
//!
//! ```text
//! start -> supervise: signals passed on, checkpoints by period and signal -> end
//!   ^                 SIGTERM: first a checkpoint, then passed on            |
//!   +-- after a pause, from the newest checkpoint, while retries are left <--+ failed
//! ```
//! How a program is started and checkpointed is a [`Way`]: `plain` for programs that use the
//! library themselves, `preload` and `criu` for those that do not.
//!
//! Invariants:
//! - stdin, stdout and the exit code are the program's own; remarks go to stderr.
//! - A program that was ended on purpose, by a signal to this command, is not started again.

mod criu;
mod durable;
mod images;
mod near;
mod plain;
mod preload;
mod supervise;

use std::process::ExitCode;
use std::time::Duration;

use libc::pid_t;
use serde_json::json;
use standfast::config::{Choice, Config, RestartFrom, Signal};
use standfast::{Kind, Version};

use crate::args::{Global, RunArgs};
use crate::failure::{Failure, Result};
use crate::output::Output;
use supervise::{End, Signals};

/// The longest pause before a new start.
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// Why a checkpoint is to be taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Somebody asks for it.
    Signal,
    /// The time has come.
    Period,
}

/// What starts a program and takes its checkpoints.
trait Way {
    /// Starts it; tells its process and the checkpoint that it goes on from.
    fn start(&mut self, from: RestartFrom) -> Result<(pid_t, Option<Version>)>;

    /// Takes a checkpoint, or asks for one.
    fn checkpoint(&mut self, pid: pid_t, cause: Cause) -> Result<()>;

    /// Whether the checkpoint that was asked for last is durable.
    fn is_durable(&mut self) -> bool;

    /// Marks the job as finished if the program has come to its end: `well`, with exit code 0 and by
    /// itself.
    fn ended(&mut self, well: bool) -> Result<()>;

    /// Whether the program has started where it was told to.
    fn has_started(&self) -> bool {
        true
    }

    /// Waits for what is still being written after the program's end.
    fn settle(&mut self) {}
}

/// Runs a program.
pub(crate) fn run(global: &Global, args: &RunArgs, output: &Output) -> Result<ExitCode> {
    let loaded = standfast_admin::load(&global.place())?;
    if args.preload && loaded.settings.writing.capture != Choice::Auto {
        return Err(Failure::new(
            Kind::Invalid,
            "run --preload has its own capture: remove capture",
        ));
    }
    let mut from = args.restart.unwrap_or(loaded.config.timing.from);
    let signal = args.signal.or(loaded.config.timing.signal).unwrap_or(Signal::USR1);
    let mut way: Box<dyn Way> = match (args.preload, args.criu) {
        (true, _) => Box::new(preload::Preload::new(args, loaded, signal, output)?),
        (_, true) => Box::new(criu::Criu::new(args, loaded, output)?),
        _ => Box::new(plain::Plain::new(args, loaded, signal)?),
    };
    let signals = Signals::block(signal.number());
    for attempt in 0.. {
        let (pid, version) = way.start(from)?;
        told_start(output, attempt, version);
        let end = supervise::watch(&mut *way, pid, args, &signals, output)?;
        way.settle();
        if let Err(failure) = way.ended(end.code == 0 && !end.wanted) {
            let (kind, message) = failure.summary();
            let text = format!("whether the job has finished was not noted: {message}");
            remark(output, &text, "not_noted", json!({ "kind": kind, "message": message }));
        }
        told_end(output, &end);
        if end.code == 0 || end.wanted || attempt >= args.retries {
            return Ok(ExitCode::from(end.code));
        }
        let pause = backoff(args.backoff, attempt);
        told_pause(output, pause, args.retries - attempt);
        if !signals.pause(pause) {
            return Ok(ExitCode::from(end.code));
        }
        if way.has_started() {
            from = RestartFrom::Auto;
        }
    }
    unreachable!("retries are counted")
}

/// The pause before a new start: longer after each failure.
fn backoff(first: Duration, attempt: u32) -> Duration {
    first.saturating_mul(1u32.checked_shl(attempt).unwrap_or(u32::MAX)).min(BACKOFF_MAX)
}

/// A remark, as text or as a JSON line, on stderr: stdout is the program's.
fn remark(output: &Output, text: &str, kind: &str, mut fields: serde_json::Value) {
    if output.json {
        fields["type"] = kind.into();
        eprintln!("{fields}");
    } else if !output.quiet {
        eprintln!("standfast: {text}");
    }
}

fn told_start(output: &Output, attempt: u32, version: Option<Version>) {
    let text = match (attempt, version) {
        (0, None) => "",
        (_, None) => "the program starts again from its beginning",
        (_, Some(version)) => &format!("the program goes on from checkpoint {version}"),
    };
    let fields = json!({ "attempt": attempt, "version": version.map(|version| version.0) });
    if !text.is_empty() || output.json {
        remark(output, text, "started", fields);
    }
}

/// The program begins anew, although there are checkpoints.
fn told_anew(output: &Output, why: &standfast::Error) {
    remark(output, &why.to_string(), "anew", json!({ "message": why.to_string() }));
}

/// Marks the job as finished, or as one to go on with.
fn mark(config: &Config, finished: bool) -> Result<()> {
    match standfast_admin::open_job(config.clone()) {
        Ok(job) => Ok(standfast::history::mark(config, &*job.store, finished).map(drop)?),
        // A program that has opened no job has nothing to be marked.
        Err(error) if error.kind() == Kind::Missing => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn told_pause(output: &Output, pause: Duration, left: u32) {
    let seconds = pause.as_secs_f64();
    let text = format!("starts again in {seconds:.1} s; {left} of the new starts are left");
    remark(output, &text, "pause", json!({ "seconds": seconds, "retries_left": left }));
}

fn told_end(output: &Output, end: &End) {
    let fields = json!({ "code": end.code, "signal": end.signal });
    let text = match (end.signal, end.code) {
        (Some(signal), _) => format!("the program was killed by signal {signal}"),
        (None, code) => format!("the program has failed with code {code}"),
    };
    if end.code != 0 || output.json {
        remark(output, &text, "ended", fields);
    }
}

/// A remark about a checkpoint that could not be taken: the program goes on without it.
fn told_failure(output: &Output, failure: &crate::failure::Failure) {
    let (kind, message) = failure.summary();
    let fields = json!({ "kind": kind, "message": message });
    remark(output, &format!("no checkpoint: {message}"), "no_checkpoint", fields);
}

fn told_leaving(output: &Output, durable: bool) {
    let text = match durable {
        true => "the last checkpoint is durable: the program is ended",
        false => {
            "the grace period is over, and the last checkpoint is not durable: the program is ended"
        }
    };
    remark(output, text, "leaving", json!({ "durable": durable }));
}

/// Makes orphans of our children our own: twins that outlive a program, processes that CRIU restores.
fn adopt_orphans() -> Result<()> {
    // SAFETY: a plain system call on this process.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(last_error("take over orphaned processes")),
    }
}

/// Whether a process has a handler for a signal, which would end it otherwise.
fn listens(pid: pid_t, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask >> (signal.number() - 1) & 1 == 1)
}

/// The kind of a failure of the operating system's last call.
fn last_error(what: &str) -> crate::failure::Failure {
    let error = std::io::Error::last_os_error();
    crate::failure::Failure::new(Kind::of_io(&error), format!("cannot {what}: {error}"))
}

#[cfg(test)]
mod tests;
