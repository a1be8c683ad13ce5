//! The MPI job: its launcher, what its first rank says, and its end.
//!
//! Data: lines of the solver (`examples/heat/nodes`) -> [`Message`]; a line that is none is ignored.
//!
//! Invariants:
//! - Launcher and ranks never outlive this value.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::Work;
use crate::interrupt;
use crate::output::os;
use crate::program::Program;
use crate::tools::Tools;
use standfast_testkit::command::die_with_us;

use crate::nodes::{NODES, Nodes, RANKS_PER_NODE, kill_ranks};

/// How long somebody waits for a message before looking at something else.
const LOOK: Duration = Duration::from_millis(100);
/// Messages that may wait to be read.
const QUEUE: usize = 64;
/// How long a launcher may take to notice that its job is dead.
const NOTICE: Duration = Duration::from_secs(20);
/// Lines of the job's own errors that are shown.
const SAID_LINES: usize = 20;
/// What starts a rank: it names its node and leaves its number for whoever kills the node.
const RANK: &str = r#"export STANDFAST_LAB_NODE=$1; echo $$ >>"$2"; shift 2; exec "$@""#;

/// An event in the solver's life, as its first rank tells it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    /// The state of that step is ready; version 0 is the beginning.
    Started { step: u64, version: u64 },
    /// A line of the restart's report.
    Note(String),
    /// So many steps are done.
    Step(u64),
    /// The program goes on behind a checkpoint.
    Checkpoint { version: u64, step: u64 },
    /// The answer is written.
    Finished { steps: u64, seconds: f64 },
}

impl Message {
    /// Reads a line of the solver.
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("note ") {
            return Some(Message::Note(text.into()));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["started", step, version] => {
                Some(Message::Started { step: step.parse().ok()?, version: version.parse().ok()? })
            }
            ["step", step] => Some(Message::Step(step.parse().ok()?)),
            ["checkpoint", version, step] => Some(Message::Checkpoint {
                version: version.parse().ok()?,
                step: step.parse().ok()?,
            }),
            ["finished", steps, seconds] => Some(Message::Finished {
                steps: steps.parse().ok()?,
                seconds: seconds.parse().ok()?,
            }),
            _ => None,
        }
    }
}

/// What is heard while somebody waits.
pub(crate) enum Heard {
    Message(Message),
    /// Nothing for a moment.
    Silence,
    /// The job has closed its output.
    Ended,
}

/// A running job.
pub(crate) struct Job {
    launcher: Child,
    /// Files with the numbers of its ranks.
    pids: Vec<PathBuf>,
    messages: Receiver<Message>,
    /// Its standard error.
    said: File,
}

/// How a job is started.
pub(crate) struct Start<'a> {
    pub(crate) tools: &'a Tools,
    pub(crate) program: &'a Program,
    pub(crate) work: &'a Work,
    pub(crate) answer: &'a Path,
    /// Through every stage; otherwise undisturbed, without checkpoints.
    pub(crate) protected: bool,
}

impl Job {
    /// Starts the launcher, and with it the ranks of every node.
    pub(crate) fn start(nodes: &Nodes<'_>, start: &Start<'_>) -> Result<Self> {
        let failed = |error| os("start", &start.tools.mpirun, error);
        let mut said = tempfile::tempfile().map_err(failed)?;
        let mut command = launcher(nodes, start);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(said.try_clone().map_err(failed)?);
        let mut launcher = command.spawn().map_err(failed)?;
        said.rewind().map_err(failed)?;
        let stdout = launcher.stdout.take().expect("its output is a pipe");
        let (sender, messages) = sync_channel(QUEUE);
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(std::result::Result::ok);
            let mut heard = lines.filter_map(|line| Message::parse(&line));
            // A job that was killed has said its last word; nobody may be listening either.
            let _ = heard.find(|message| sender.send(message.clone()).is_err());
        });
        let pids = (0..NODES.len()).map(|node| nodes.pids(node)).collect();
        Ok(Self { launcher, pids, messages, said })
    }

    /// The next message, if one comes soon.
    pub(crate) fn hear(&self) -> Result<Heard> {
        interrupt::check()?;
        Ok(match self.messages.recv_timeout(LOOK) {
            Ok(message) => Heard::Message(message),
            Err(RecvTimeoutError::Timeout) => Heard::Silence,
            Err(RecvTimeoutError::Disconnected) => Heard::Ended,
        })
    }

    /// Its exit; fails unless it ended well.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let status = self.wait()?;
        interrupt::check()?;
        if status.success() { Ok(()) } else { Err(self.failed(status)) }
    }

    /// Its end after a loss; false if it had finished before.
    pub(crate) fn aborted(&mut self) -> Result<bool> {
        let end = Instant::now() + NOTICE;
        loop {
            match self.launcher.try_wait() {
                Ok(Some(status)) => return Ok(!status.success()),
                Ok(None) if Instant::now() > end => {
                    self.kill();
                    return Ok(true);
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(error) => return Err(os("wait for", "the job", error)),
            }
            interrupt::check()?;
        }
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        self.launcher.wait().map_err(|error| os("wait for", "the job", error))
    }

    fn failed(&mut self, status: ExitStatus) -> anyhow::Error {
        let mut said = String::new();
        // What cannot be read cannot be shown.
        let _ = self.said.rewind().and_then(|()| self.said.read_to_string(&mut said));
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown = lines[..lines.len().min(SAID_LINES)].join("\n  ");
        anyhow!("the job failed ({status}):\n  {shown}\n'standfast demo' shows it without MPI")
    }

    fn kill(&mut self) {
        if matches!(self.launcher.try_wait(), Ok(None)) {
            self.pids.iter().for_each(|list| kill_ranks(list));
            // Both fail only if it has ended already.
            let _ = self.launcher.kill();
            let _ = self.launcher.wait();
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The launcher's command line: one part for the ranks of each node.
fn launcher(nodes: &Nodes<'_>, start: &Start<'_>) -> Command {
    let mut command = Command::new(&start.tools.mpirun);
    nodes.surroundings(&mut command);
    die_with_us(&mut command);
    // An interrupt at the terminal is for us, and we end it.
    command.process_group(0);
    if rustix::process::geteuid().is_root() {
        command.arg("--allow-run-as-root");
    }
    command.args(["--oversubscribe", "--bind-to", "none"]);
    let scratch = nodes.mpi_dir().to_string_lossy().into_owned();
    for (name, value) in [
        ("mpi_yield_when_idle", "1"),
        ("pml", "ob1"),
        ("btl", "self,vader"),
        // Whatever MPI leaves behind goes with the rest.
        ("orte_tmpdir_base", &*scratch),
        ("btl_vader_backing_directory", &*scratch),
    ] {
        command.args(["--mca", name, value]);
    }
    let Work { size, steps, every } = start.work;
    let every = if start.protected { *every } else { steps.saturating_add(1) };
    let words = [size.to_string(), steps.to_string(), every.to_string()];
    for (node, name) in NODES.iter().enumerate() {
        if node > 0 {
            command.arg(":");
        }
        // Numbers of an earlier job mean nothing any more, or somebody else.
        let _ = std::fs::remove_file(nodes.pids(node));
        command.args(["-np", &RANKS_PER_NODE.to_string(), "sh", "-c", RANK, "rank", name]);
        command.arg(nodes.pids(node)).arg(&start.program.path).args(&words).arg(start.answer);
    }
    command.envs(start.program.adapter.iter().map(|adapter| ("HEAT_MPI", adapter)));
    command.envs(if start.protected { nodes.settings() } else { nodes.bare_settings() });
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_solver_are_understood_and_others_left_alone() {
        let parse = Message::parse;
        assert_eq!(parse("started 600 2"), Some(Message::Started { step: 600, version: 2 }));
        assert_eq!(
            parse("note   rank 0 from ring"),
            Some(Message::Note("  rank 0 from ring".into()))
        );
        assert_eq!(parse("step 12\r"), Some(Message::Step(12)));
        assert_eq!(parse("checkpoint 3 900"), Some(Message::Checkpoint { version: 3, step: 900 }));
        assert_eq!(parse("finished 9 0.5"), Some(Message::Finished { steps: 9, seconds: 0.5 }));
        for other in ["", "step", "step x", "started 1", "[host:12] Warning: no network"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
