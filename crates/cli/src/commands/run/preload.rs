//! Whole programs by `libstandfast_preload.so`.
//!
//! Invariants:
//! - Before a checkpoint is chosen the twin of the last process has finished: it becomes a child
//!   of this process when its own parent dies.
//! - What it goes on from is in the local store (`near`).

use libc::pid_t;
use standfast::config::{Loaded, RestartFrom, Signal};
use standfast::{Kind, Version};
use standfast_launch::{Launch, resume};

use super::plain::command;
use super::{Cause, Way, adopt_orphans, durable, listens, mark, near, told_anew};
use crate::args::RunArgs;
use crate::failure::{Failure, Result};
use crate::output::Output;

pub(super) struct Preload<'a> {
    args: &'a RunArgs,
    launch: Launch,
    output: &'a Output,
    asked_ns: u64,
}

impl<'a> Preload<'a> {
    pub(super) fn new(
        args: &'a RunArgs,
        loaded: Loaded,
        signal: Signal,
        output: &'a Output,
    ) -> Result<Self> {
        let library = standfast_launch::find(args.library.clone())?;
        adopt_orphans()?;
        Ok(Self { args, launch: Launch { library, loaded, signal }, output, asked_ns: 0 })
    }
}

impl Way for Preload<'_> {
    fn start(&mut self, from: RestartFrom) -> Result<(pid_t, Option<Version>)> {
        near::bring(&self.launch.loaded.config, from, self.output)?;
        let mut loaded = self.launch.loaded.clone();
        loaded.config.timing.from = from;
        let prepared = match resume::prepare(&loaded, &self.args.command) {
            Err(standfast_launch::Error::Job(error)) if error.is_anew() => {
                told_anew(self.output, &error);
                None
            }
            prepared => prepared?,
        };
        let child = self.launch.spawn(command(self.args), prepared.as_ref())?;
        Ok((child.id() as pid_t, prepared.map(|prepared| prepared.version)))
    }

    fn checkpoint(&mut self, pid: pid_t, _: Cause) -> Result<()> {
        let signal = self.launch.signal;
        if !listens(pid, signal) {
            return Err(Failure::new(
                Kind::Unsupported,
                "the program does not carry the library: is it linked statically, or started by a script?",
            ));
        }
        self.asked_ns = durable::now_ns();
        // SAFETY: a signal to our own child, which has not been waited for.
        unsafe { libc::kill(pid, signal.number()) };
        Ok(())
    }

    fn is_durable(&mut self) -> bool {
        durable::has(&self.launch.loaded.config, |one| one.taken_ns >= self.asked_ns)
    }

    fn ended(&mut self, well: bool) -> Result<()> {
        if well { mark(&self.launch.loaded.config, true) } else { Ok(()) }
    }

    fn settle(&mut self) {
        for pid in standfast_launch::twins() {
            // SAFETY: waits for a child of this process.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) };
        }
    }
}

impl From<standfast_launch::Error> for Failure {
    fn from(error: standfast_launch::Error) -> Self {
        use standfast_launch::Error as E;
        let failure = Failure::new(error.kind(), error.to_string());
        match error {
            E::Changed { .. } => failure.advise(
                "run the program that the checkpoint was taken of, or begin anew with --restart never",
            ),
            E::NotAProgram { .. } => failure.advise("choose another --job for this program"),
            E::NoLibrary(_) => failure.advise("install it beside this command, or name it with --library"),
            E::Job(source) => source.into(),
            _ => failure,
        }
    }
}
