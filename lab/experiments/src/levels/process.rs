//! Processes of the experiments: this program again, with another job to do.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, ensure};
use rustix::process::Pid;
use standfast_testkit::command::clean;

use super::program::Told;

/// A running process and what it tells.
pub(crate) struct Process {
    child: Child,
    lines: Option<JoinHandle<Vec<Told>>>,
}

impl Process {
    /// Starts this program with these words.
    pub(crate) fn start(
        words: &[String],
        environment: &[(&'static str, String)],
    ) -> anyhow::Result<Self> {
        Self::start_heard(words, environment, |_| {})
    }

    /// Starts this program with these words; what it tells is heard at once.
    pub(crate) fn start_heard(
        words: &[String],
        environment: &[(&'static str, String)],
        mut hears: impl FnMut(&Told) + Send + 'static,
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        clean(&mut command);
        let mut child = command
            .args(words)
            .envs(environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a process of the experiment")?;
        let out = BufReader::new(child.stdout.take().context("it is piped")?);
        let lines = std::thread::spawn(move || {
            let lines = out.lines().map_while(Result::ok);
            lines.filter_map(|line| serde_json::from_str(&line).ok()).inspect(&mut hears).collect()
        });
        Ok(Self { child, lines: Some(lines) })
    }

    pub(crate) fn pid(&self) -> anyhow::Result<Pid> {
        Pid::from_raw(self.child.id() as i32).context("a process has a number")
    }

    /// Kills it, and returns what it had told.
    pub(crate) fn kill(mut self) -> Vec<Told> {
        let _ = self.child.kill();
        self.end().1
    }

    /// Waits for its end, which must be a good one.
    pub(crate) fn wait(mut self) -> anyhow::Result<Vec<Told>> {
        let (status, told) = self.end();
        ensure!(status.is_ok_and(|status| status.success()), "a process of the experiment failed");
        Ok(told)
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    fn end(&mut self) -> (std::io::Result<std::process::ExitStatus>, Vec<Told>) {
        let status = self.child.wait();
        let told = self.lines.take().and_then(|lines| lines.join().ok()).unwrap_or_default();
        (status, told)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Only after a failure it is still there.
        if self.lines.is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Words of a command line.
pub(crate) fn words(list: &[&dyn ToString]) -> Vec<String> {
    list.iter().map(|word| word.to_string()).collect()
}
