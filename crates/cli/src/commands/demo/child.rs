//! The solver's process, as the demonstration holds it: its messages, its death.
//!
//! Invariants:
//! - The process is known by its handle alone, and never outlives this value.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use standfast::Kind;

use crate::failure::{Failure, Result};
use crate::heat::message::Message;
use crate::interrupt;

use super::Work;

/// How often somebody who waits looks whether the user interrupted.
const LOOK: Duration = Duration::from_millis(50);
/// Messages that may wait to be read.
const QUEUE: usize = 64;

/// A running solver.
pub(super) struct Child {
    process: std::process::Child,
    messages: Receiver<Message>,
}

/// What the demonstration hears while it waits.
pub(super) enum Heard {
    Message(Message),
    /// The time is up.
    TimeUp,
    /// The process has closed its output.
    Ended,
}

impl Child {
    /// Starts this program again, as the solver. With a store it is protected.
    pub(super) fn start(work: &Work, store: Option<(&str, &str)>, answer: &Path) -> Result<Self> {
        let failed = |error| Failure::os("start", "the solver", error);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("demo-worker");
        command.args(["--size", &work.size.to_string(), "--steps", &work.steps.to_string()]);
        command.args(["--every", &work.every.to_string(), "--answer"]).arg(answer);
        if let Some((store, job)) = store {
            command.args(["--protect", "--store", store, "--job", job]);
        }
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let stdout = process.stdout.take().expect("its output is a pipe");
        let (sender, messages) = sync_channel(QUEUE);
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(std::result::Result::ok);
            let heard = lines.filter_map(|line| serde_json::from_str(&line).ok());
            // A solver that was killed has said its last word; nobody may be listening either.
            let _ = heard.map(|message| sender.send(message).is_err()).find(|gone| *gone);
        });
        Ok(Self { process, messages })
    }

    /// The next message, at most until a point in time.
    pub(super) fn hear(&self, until: Option<Instant>) -> Result<Heard> {
        loop {
            interrupt::check()?;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Heard::TimeUp);
            }
            match self.messages.recv_timeout(left.map_or(LOOK, |left| left.min(LOOK))) {
                Ok(message) => return Ok(Heard::Message(message)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Heard::Ended),
            }
        }
    }

    /// Kills it for real; fails unless signal 9 was what ended it.
    pub(super) fn kill(&mut self) -> Result<()> {
        // It may have ended just before: its status will tell.
        let _ = self.process.kill();
        let status = self.wait()?;
        match status.signal() {
            Some(libc::SIGKILL) => Ok(()),
            _ if status.success() => Err(Failure::new(
                Kind::Transient,
                "the solver had finished before it could be killed",
            )
            .advise("try again, with more --steps")),
            _ => Err(failed(status)),
        }
    }

    /// Its exit; fails unless it ended well.
    pub(super) fn finish(&mut self) -> Result<()> {
        let status = self.wait()?;
        interrupt::check()?;
        if status.success() { Ok(()) } else { Err(failed(status)) }
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        self.process.wait().map_err(|error| Failure::os("wait for", "the solver", error))
    }
}

fn failed(status: ExitStatus) -> Failure {
    Failure::new(Kind::Io, format!("the solver failed: {status}"))
        .advise("its own message is above")
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
