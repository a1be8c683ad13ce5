//! A job of four processes on four nodes, each with a store of its own, its checkpoints on the ring:
//! what a rank does until it dies, and what it must find when it comes back.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use standfast::config::Loaded;
use standfast::{Job, Level, Version};
use standfast_comm::Comm;
use standfast_testkit::command::clean;

use crate::report::Line;

/// Ranks of the job, a node for each; groups of two, so any two of them may be lost.
pub const RANKS: usize = 4;
const WORDS: usize = 12 << 10;

/// Where the nodes' stores are.
#[derive(Clone, Debug)]
pub struct Nodes {
    /// A directory below for each.
    pub dir: PathBuf,
}

/// Where a rank dies: a point, and which passage of it.
pub type Death<'a> = Option<(&'a str, u64)>;

impl Nodes {
    /// The directory of a node.
    pub fn of(&self, rank: usize) -> PathBuf {
        self.dir.join(format!("n{rank}"))
    }

    fn settings(&self, rank: usize) -> Loaded {
        let store = format!("{}/{{node}}", self.dir.to_str().expect("a path of the test's own"));
        let node = format!("n{rank}");
        let settings = [
            ("store", store.as_str()),
            ("lab.node", &node),
            ("ring", "auto"),
            ("lab.ring_group", "2"),
            ("keep", "2"),
            ("lab.threads", "1"),
            ("lab.io_threads", "1"),
        ];
        let settings: Vec<(String, String)> =
            settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Loaded::load(&settings).expect("settings of the test's own")
    }

    /// A rank's life: comes back to the newest checkpoint it can, compares it, and takes some more,
    /// each up to level ring.
    pub fn live(&self, comm: &dyn Comm, steps: u64) -> standfast::Result<()> {
        let rank = comm.rank();
        let job = Job::open_comm(self.settings(rank), comm)?;
        let memory = job.alloc::<u64>("memory", WORDS)?;
        let mut newest = 0;
        if !job.list().is_empty() {
            newest = job.restart()?.expect("one is listed").version.0;
            let memory = memory.read();
            let right =
                memory.iter().enumerate().all(|(at, word)| *word == word_at(rank, newest, at));
            assert!(right, "rank {rank} is not at {newest}");
        }
        Line::Durable(newest).tell();
        for step in newest + 1..=newest + steps {
            let fill = |(at, word): (usize, &mut u64)| *word = word_at(rank, step, at);
            memory.write().iter_mut().enumerate().for_each(fill);
            Line::Begun(step).tell();
            job.checkpoint(Some(Version(step)))?;
            job.wait(Version(step), Level::Ring)?;
            Line::Durable(step).tell();
        }
        job.close()
    }

    /// Starts all ranks, one of which may be about to die, and waits for all of them. A rank that
    /// loses a peer ends by itself.
    pub fn run(&self, exe: &str, steps: u64, dying: Option<usize>, death: Death<'_>) -> Vec<Ended> {
        let meeting = tempfile::tempdir().expect("a directory of the test's own");
        let started: Vec<Child> = (0..RANKS)
            .map(|rank| {
                let death = death.filter(|_| dying == Some(rank));
                self.start(exe, meeting.path(), rank, steps, death)
            })
            .collect();
        started.into_iter().map(Ended::wait).collect()
    }

    fn start(&self, exe: &str, meeting: &Path, rank: usize, steps: u64, death: Death<'_>) -> Child {
        let mut command = Command::new(exe);
        command.arg(&self.dir).arg(meeting).arg(rank.to_string()).arg(steps.to_string());
        if let Some((point, nth)) = death {
            command.arg(point).arg(nth.to_string());
        }
        clean(&mut command);
        let (out, none) = (Stdio::piped(), Stdio::null());
        command.stdout(out).stdin(none).stderr(Stdio::piped()).spawn().expect("it can be started")
    }
}

/// How a rank has ended, and what it had told.
#[derive(Debug)]
pub struct Ended {
    /// Its end.
    pub status: ExitStatus,
    /// What it told.
    pub lines: Vec<Line>,
    /// What it complained of.
    pub errors: String,
}

impl Ended {
    fn wait(child: Child) -> Self {
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines = text(&output.stdout).lines().filter_map(Line::parse).collect();
        Self { status: output.status, lines, errors: text(&output.stderr) }
    }

    /// The newest checkpoint that it knows to be on the ring.
    pub fn durable(&self) -> u64 {
        let durable = self.lines.iter().filter_map(|line| match line {
            Line::Durable(version) => Some(*version),
            _ => None,
        });
        durable.max().unwrap_or(0)
    }
}

/// Some pages equal on all ranks, some of a rank for ever, some of a rank and step.
fn word_at(rank: usize, step: u64, at: usize) -> u64 {
    let (rank, step) = match (at / 512) % 3 {
        0 => (0, step),
        1 => (rank as u64, 0),
        _ => (rank as u64, step),
    };
    let mixed = (at as u64) << 40 ^ rank << 32 ^ step;
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (mixed >> 9)
}
