//! Who drains in a campaign of kills: the node's agent, or a drain as a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use standfast_agent::Place;

use super::process::{Process, words};

/// What a drain is told by the environment: where the server is, and who it is.
type Environment = Vec<(&'static str, String)>;

/// Who carries checkpoints away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    /// The node's agent, which also writes.
    Agent,
    /// A command beside the program.
    Command,
}

/// The drain of one node.
pub(crate) struct Drainer {
    by: By,
    /// The agent's directory.
    dir: PathBuf,
    command: Option<Process>,
}

impl Drainer {
    /// None runs yet.
    pub(crate) fn new(by: By, dir: &Path) -> Self {
        Self { by, dir: dir.join("agent"), command: None }
    }

    /// What the program has to be told.
    pub(crate) fn words(&self) -> Vec<String> {
        match self.by {
            By::Agent => words(&[&"--agent", &self.dir.display()]),
            By::Command => Vec::new(),
        }
    }

    /// Starts one if none runs.
    pub(crate) fn start_missing(
        &mut self,
        store: &Path,
        target: &str,
        environment: &Environment,
    ) -> anyhow::Result<()> {
        match self.by {
            By::Agent if standfast_agent::status(&self.place()?).is_err() => {
                self.start_agent(environment)
            }
            By::Command if self.command.as_mut().is_none_or(Process::has_ended) => {
                self.kill()?;
                let own = ["levels-drain", "--follow", "--keep", "3", "--target", target];
                let mut own: Vec<String> = own.map(str::to_owned).into();
                own.extend(words(&[&"--store", &store.display()]));
                self.command = Some(Process::start(&own, environment)?);
                Ok(())
            }
            By::Agent | By::Command => Ok(()),
        }
    }

    /// Whether it will see what the program stores from now on.
    pub(crate) fn has_program(&self) -> bool {
        let status = self.place().ok().and_then(|place| standfast_agent::status(&place).ok());
        let has_one = status.is_some_and(|status| !status.sessions.is_empty());
        self.by == By::Command || has_one
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(command) = self.command.take() {
            command.kill();
        }
        if self.by == By::Agent
            && let Ok(status) = standfast_agent::status(&self.place()?)
        {
            let pid = Pid::from_raw(status.pid as i32).context("a process has a number")?;
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        Ok(())
    }

    /// Kills it and takes away what it has left for the next one: its machine is lost.
    pub(crate) fn lose(&mut self) -> anyhow::Result<()> {
        self.kill()?;
        match self.by {
            By::Agent => Ok(fs::remove_dir_all(&self.dir)?),
            By::Command => Ok(()),
        }
    }

    fn start_agent(&self, environment: &Environment) -> anyhow::Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["agent", "start", "--idle", "20000ms", "--dir"]).arg(&self.dir);
        let status = command.envs(environment.iter().cloned()).status()?;
        ensure!(status.success(), "no agent starts");
        Ok(())
    }

    fn place(&self) -> anyhow::Result<Place> {
        Ok(Place::open(Some(&self.dir))?)
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        // Nobody is left behind, also after a failure.
        let _ = self.kill();
    }
}
