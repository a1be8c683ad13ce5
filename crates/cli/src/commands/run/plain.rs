//! Programs that use the library themselves: they get their settings by environment, take
//! checkpoints at their own points, by interval or when they are asked, and ask for their state when
//! they start.
//!
//! They are asked by a file that the library looks at, through launchers and shells as well; a child
//! that has not opened it but handles the signal is asked by that.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use libc::pid_t;
use standfast::config::{Loaded, RestartFrom, Signal};
use standfast::{Kind, RunRequest, Told, Version};
use tempfile::TempDir;

use super::{Cause, Way, durable, listens, mark};
use crate::args::RunArgs;
use crate::failure::{Failure, Result};

pub(super) struct Plain<'a> {
    args: &'a RunArgs,
    loaded: Loaded,
    signal: Signal,
    ask: RunRequest,
    /// The file by which it is asked, in a directory that goes with this value.
    path: PathBuf,
    _dir: TempDir,
    /// When the program was last asked by signal.
    signalled_ns: Option<u64>,
}

impl<'a> Plain<'a> {
    pub(super) fn new(args: &'a RunArgs, loaded: Loaded, signal: Signal) -> Result<Self> {
        let failed = |error| Failure::os("make", "a temporary file", error);
        let dir = tempfile::Builder::new().prefix("standfast-run-").tempdir().map_err(failed)?;
        let path = dir.path().join("ask");
        let ask = RunRequest::create(&path).map_err(failed)?;
        Ok(Self { args, loaded, signal, ask, path, _dir: dir, signalled_ns: None })
    }

    /// Asks by signal a program that no longer has, or never had, the file.
    fn ask_by_signal(&mut self, pid: pid_t) -> Result<()> {
        if !listens(pid, self.signal) {
            let what = format!(
                "the program has no handler for {}: it has opened no job yet, or does not use the library",
                self.signal
            );
            return Err(Failure::new(Kind::Unsupported, what));
        }
        self.signalled_ns = Some(durable::now_ns());
        // SAFETY: a signal to our own child, which has not been waited for.
        unsafe { libc::kill(pid, self.signal.number()) };
        Ok(())
    }
}

impl Way for Plain<'_> {
    fn start(&mut self, from: RestartFrom) -> Result<(pid_t, Option<Version>)> {
        let failed = |error| Failure::os("write", self.path.display(), error);
        self.ask.reset(from).map_err(failed)?;
        let mut command = command(self.args);
        let config = &self.loaded.config;
        command.env("STANDFAST_STORE", &config.place.store).env("STANDFAST_JOB", &config.place.job);
        command.env("STANDFAST_SIGNAL", self.signal.to_string());
        command.env("STANDFAST_LAB_RUN_REQUEST", &self.path);
        if let Some(every) = self.args.interval {
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
        if !self.ask.is_heard() {
            return self.ask_by_signal(pid);
        }
        self.signalled_ns = None;
        self.ask.ask().map_err(|error| Failure::os("write", self.path.display(), error))
    }

    /// What the program has said counts, unless it has failed or was ended after that.
    fn ended(&mut self, well: bool) -> Result<()> {
        match (well, self.ask.told()) {
            (true, None) if self.ask.is_heard() => mark(&self.loaded.config, true),
            (false, Some(Told::Finished)) => mark(&self.loaded.config, false),
            _ => Ok(()),
        }
    }

    fn has_started(&self) -> bool {
        self.ask.has_started()
    }

    fn is_durable(&mut self) -> bool {
        let config = &self.loaded.config;
        match self.signalled_ns {
            Some(instant_ns) => durable::has(config, |one| one.taken_ns >= instant_ns),
            None => {
                let answer = self.ask.answer();
                answer.is_some_and(|version| durable::has(config, |one| one.version.0 == version))
            }
        }
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
