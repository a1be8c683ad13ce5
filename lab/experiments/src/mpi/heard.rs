//! A launched job of [`life`](super::life), and what is heard of it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// More steps than any life lasts.
pub(crate) const STEPS: u64 = 1_000_000;
/// No life takes this long to begin: ten times as long as was seen on a machine with ten times as much
/// to do as it has cores, where ranks had no processor at all for half a minute.
const PATIENCE: Duration = Duration::from_secs(900);
/// How long a launcher may take to notice that its job is dead.
const NOTICE: Duration = Duration::from_secs(20);

/// One run of the job, from its start to its violent end.
pub(crate) struct Heard {
    process: Child,
    lines: Receiver<String>,
    /// Its standard error.
    said: File,
    /// The numbers of its ranks, each as the rank itself knows it.
    pub(crate) pids: Vec<i32>,
    durable: u64,
}

impl Heard {
    /// Starts a launcher, in a process group of its own.
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Self> {
        // What a killed job says of its end is of interest only if it does not begin again.
        let mut said = tempfile::tempfile()?;
        command.stdout(Stdio::piped()).stderr(said.try_clone()?).process_group(0);
        let mut process = command.spawn()?;
        let stdout = process.stdout.take().expect("its output is a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            let _ = lines.map(|line| sender.send(line).is_err()).find(|gone| *gone);
        });
        said.rewind()?;
        Ok(Self { process, lines, said, pids: Vec::new(), durable: 0 })
    }

    /// Waits until all ranks have restarted; the step they came back to.
    pub(crate) fn begin(&mut self, ranks: usize) -> anyhow::Result<u64> {
        let until = Instant::now() + PATIENCE;
        loop {
            let line = match self.lines.recv_timeout(until - Instant::now()) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    let started = self.pids.len();
                    bail!("it does not begin; {started} of {ranks} ranks live: {}", self.said()?)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("it ended before it began: {}", self.said()?)
                }
            };
            if let Some(step) = line.strip_prefix("begins ") {
                if self.pids.len() != ranks {
                    bail!("{} ranks began, not {ranks}", self.pids.len());
                }
                return Ok(step.parse()?);
            }
            self.hear(&line);
        }
    }

    fn said(&mut self) -> anyhow::Result<String> {
        let mut said = String::new();
        self.said.rewind()?;
        self.said.read_to_string(&mut said)?;
        Ok(said)
    }

    fn hear(&mut self, line: &str) {
        if let Some(step) = line.strip_prefix("durable ").and_then(|step| step.parse().ok()) {
            self.durable = step;
        }
        if let Some(pid) = line.strip_prefix("pid ").and_then(|pid| pid.parse().ok()) {
            self.pids.push(pid);
        }
    }

    /// Lets it live; returns the last step it acknowledged.
    pub(crate) fn live_until(&mut self, end: Instant) -> u64 {
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            match self.lines.recv_timeout(left) {
                Ok(line) => self.hear(&line),
                Err(_) => break,
            }
        }
        self.durable
    }

    /// Waits until the launcher has noticed that its job is dead; it is killed if it does not.
    pub(crate) fn end(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + NOTICE;
        while self.process.try_wait()?.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let group = Pid::from_raw(self.process.id() as i32).context("its number")?;
        // Most are gone already.
        let _ = kill_process_group(group, Signal::KILL);
        self.process.wait()?;
        Ok(())
    }

    /// The last step that it has acknowledged, once it is over.
    pub(crate) fn durable(&mut self) -> u64 {
        while let Ok(line) = self.lines.try_recv() {
            self.hear(&line);
        }
        self.durable
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        // An experiment that has failed leaves nobody behind.
        if let (Ok(None), Some(group)) =
            (self.process.try_wait(), Pid::from_raw(self.process.id() as i32))
        {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.process.wait();
        }
    }
}
