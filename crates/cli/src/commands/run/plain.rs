//! Programs that use the library themselves: they get their settings by environment, take
//! checkpoints at their own points, by interval or when the signal has come, and ask for their
//! state when they start.

use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::pid_t;
use standfast::config::{Loaded, Signal};
use standfast::{Kind, Version};

use super::{Cause, Way, listens};
use crate::args::{RestartFrom, RunArgs};
use crate::failure::{Failure, Result};

pub(super) struct Plain<'a> {
    args: &'a RunArgs,
    loaded: Loaded,
    signal: Signal,
}

impl<'a> Plain<'a> {
    pub(super) fn new(args: &'a RunArgs, loaded: Loaded, signal: Signal) -> Self {
        Self { args, loaded, signal }
    }
}

impl Way for Plain<'_> {
    fn start(&mut self, _: RestartFrom) -> Result<(pid_t, Option<Version>)> {
        let mut command = command(self.args);
        let config = &self.loaded.config;
        command.env("STANDFAST_STORE", &config.store).env("STANDFAST_JOB", &config.job);
        command.env("STANDFAST_SIGNAL", self.signal.to_string());
        if let Some(every) = self.args.every {
            command.env("STANDFAST_INTERVAL", format!("{}ms", every.as_millis()));
        }
        let what = self.args.command[0].to_string_lossy();
        let child = command.spawn().map_err(|error| Failure::os("start", what, error))?;
        Ok((child.id() as pid_t, None))
    }

    fn checkpoint(&mut self, pid: pid_t, cause: Cause) -> Result<()> {
        // Its own points follow the interval.
        if cause == Cause::Period {
            return Ok(());
        }
        if !listens(pid, self.signal) {
            let what = format!(
                "the program has no handler for {}: it has opened no job yet, or does not use the library",
                self.signal
            );
            return Err(Failure::new(Kind::Unsupported, what));
        }
        // SAFETY: a signal to our own child, which has not been waited for.
        unsafe { libc::kill(pid, self.signal.number()) };
        Ok(())
    }
}

/// The program as it was given, with no signal blocked: this command blocks some for itself.
pub(super) fn command(args: &RunArgs) -> Command {
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    // SAFETY: only calls that are allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            Ok(())
        });
    }
    command
}
