//! Lives of the worker process: started, watched, killed, and asked what it was told.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use standfast_testkit::command::clean;

use crate::program::Setup;
use crate::report::{Facts, Line};

/// The worker binary and how its program runs.
#[derive(Clone, Debug)]
pub struct Worker {
    exe: PathBuf,
    dir: String,
    seed: u64,
    threads: u32,
    cow: bool,
}

/// How the worker takes checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// It waits for each to be durable.
    Waiting,
    /// It goes on at once, and hears of the previous one with the next.
    Overlapping,
}

impl Style {
    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Style::Waiting => "waiting",
            Style::Overlapping => "overlapping",
        }
    }
}

/// Where a worker kills itself: a failpoint and which passage of it, from 1.
pub type Point<'a> = (&'a str, u64);

/// A life that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// What it told.
    pub lines: Vec<Line>,
}

impl Ended {
    /// Whether a SIGKILL ended it.
    pub fn was_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }
}

/// A life that goes on; dropping it kills it.
pub struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    lines: Vec<Line>,
}

impl Worker {
    /// A worker on a directory.
    pub fn new(exe: impl AsRef<Path>, setup: &Setup<'_>) -> Self {
        let exe = exe.as_ref().to_owned();
        Self { exe, dir: setup.dir.into(), seed: setup.seed, threads: setup.threads, cow: false }
    }

    /// The same, with or without snapshots that are taken in while the program goes on.
    pub fn with_cow(self, cow: bool) -> Self {
        Self { cow, ..self }
    }

    fn start(&self, verb: &str, rest: &[&str]) -> Running {
        let mut command = Command::new(&self.exe);
        command.arg(verb).arg(&self.dir).arg(self.seed.to_string()).arg(self.threads.to_string());
        command.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
        clean(&mut command);
        if self.cow {
            command.env("STANDFAST_CAPTURE", "cow").env("STANDFAST_MEMORY", "4MiB");
        }
        let mut child = command.spawn().expect("the worker can be started");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        Running { child, out, lines: Vec::new() }
    }

    /// Starts a life of so many steps.
    pub fn run(&self, steps: u64, style: Style, point: Option<Point<'_>>) -> Running {
        let (steps, nth) = (steps.to_string(), point.map_or(0, |(_, nth)| nth).to_string());
        match point {
            None => self.start("run", &[&steps, style.name()]),
            Some((name, _)) => self.start("run", &[&steps, style.name(), name, &nth]),
        }
    }

    /// Runs so many steps and tells every passage of every failpoint.
    pub fn trace(&self, steps: u64) -> Ended {
        self.start("trace", &[&steps.to_string()]).wait()
    }

    /// Starts a life that holds the store open and does nothing.
    pub fn hold(&self) -> Running {
        self.start("hold", &[])
    }

    /// Lets a second life check the store; returns the newest checkpoint it made. Panics with
    /// the findings, and with what had happened before.
    pub fn check(&self, facts: Facts, what_happened: &str) -> u64 {
        let told = [facts.durable.to_string(), facts.begun.to_string()];
        let ended = self.start("check", &[&told[0], &told[1]]).wait();
        assert!(
            ended.status.success(),
            "seed {}: {what_happened}: the checker ended with {}, see above",
            self.seed,
            ended.status
        );
        Facts::default().and(&ended.lines).durable
    }
}

impl Running {
    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads its lines up to this one; panics if it ends before.
    pub fn wait_for(&mut self, wanted: &Line) {
        while self.lines.last() != Some(wanted) {
            let line = self.read().unwrap_or_else(|| panic!("it ended before {wanted:?}"));
            self.lines.push(line);
        }
    }

    /// Kills it now.
    pub fn kill(mut self) -> Ended {
        self.child.kill().expect("a child can be killed, also a dead one");
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Ended {
        drop(self.child.stdin.take());
        while let Some(line) = self.read() {
            self.lines.push(line);
        }
        let status = self.child.wait().expect("it is a child");
        Ended { status, lines: std::mem::take(&mut self.lines) }
    }

    fn read(&mut self) -> Option<Line> {
        let mut text = String::new();
        let bytes = self.out.read_line(&mut text).expect("a pipe can be read");
        if bytes == 0 {
            return None;
        }
        Some(Line::parse(&text).unwrap_or_else(|| panic!("{text:?} is no line of a worker")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only after a panic it is still there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
