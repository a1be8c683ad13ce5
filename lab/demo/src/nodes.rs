//! The nodes: each a directory as its private disk, an agent, and two ranks.
//!
//! ```text
//! DIR/nodes/n1/heat   the node's store          DIR/agent-n1   its agent's socket and log
//! DIR/pids/n1         processes of its ranks    DIR/s3         the S3 server, which is no node
//! ```
//! Invariants:
//! - Agents and server are children of this process and die with it, however it ends.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Result, anyhow};
use rustix::process::Pid;
use standfast_agent::Place;
use standfast_testkit::S3Server;
use standfast_testkit::command::{clean, die_with_us, kill, until};

use crate::output::os;
use crate::tools::Tools;

/// Nodes of the job.
pub(crate) const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];
/// Ranks on each.
pub(crate) const RANKS_PER_NODE: usize = 2;
/// Name of the job, as the solver gives it.
pub(crate) const JOB: &str = "heat";
/// How long an agent may take to answer.
const READY_MAX: Duration = Duration::from_secs(20);

/// The machines of the job.
pub(crate) struct Nodes<'a> {
    dir: &'a Path,
    pub(crate) command: PathBuf,
    agents: Vec<Option<Child>>,
    server: Option<S3Server>,
    /// What every agent has sent, by drains that are over and by the one that runs.
    sent: [(u64, u64); NODES.len()],
}

impl<'a> Nodes<'a> {
    /// Starts the S3 server, if there is one, and every node.
    pub(crate) fn new(dir: &'a Path, tools: &Tools) -> Result<Self> {
        let command = tools.command.clone();
        let launch = |program: &PathBuf| {
            S3Server::launch(program.clone(), &dir.join("s3"))
                .map_err(|error| os("start", "the S3 server", error))
        };
        let server = tools.server.as_ref().map(launch).transpose()?;
        let agents = NODES.iter().map(|_| None).collect();
        let mut nodes = Self { dir, command, agents, server, sent: Default::default() };
        make(&dir.join("pids"))?;
        make(&nodes.mpi_dir())?;
        (0..NODES.len()).try_for_each(|node| nodes.boot(node))?;
        Ok(nodes)
    }

    /// A node comes up with an empty disk, and its agent with it.
    pub(crate) fn boot(&mut self, node: usize) -> Result<()> {
        make(&self.disk(node))?;
        let failed = |error| os("start", "an agent", error);
        let mut agent = Command::new(&self.command);
        agent.args(["agent", "run", "--idle", "1h", "--dir"]).arg(self.agent_dir(node));
        // An interrupt at the terminal is for us, and we end it.
        agent.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        self.surroundings(&mut agent);
        die_with_us(&mut agent);
        self.agents[node] = Some(agent.spawn().map_err(failed)?);
        match until(READY_MAX, || self.status(node).is_some()) {
            true => Ok(()),
            false => Err(anyhow!("the agent of {} does not answer", NODES[node])),
        }
    }

    fn agent_dir(&self, node: usize) -> PathBuf {
        self.dir.join(format!("agent-{}", NODES[node]))
    }

    /// Where a node's stores are.
    pub(crate) fn disk(&self, node: usize) -> PathBuf {
        self.dir.join("nodes").join(NODES[node])
    }

    /// Where the ranks of a node write who they are.
    pub(crate) fn pids(&self, node: usize) -> PathBuf {
        self.dir.join("pids").join(NODES[node])
    }

    fn status(&self, node: usize) -> Option<standfast_agent::Status> {
        let place = Place::existing(Some(&self.agent_dir(node)))?;
        standfast_agent::status(&place).ok()
    }

    /// Where MPI keeps its own files.
    pub(crate) fn mpi_dir(&self) -> PathBuf {
        self.dir.join("mpi")
    }

    /// What the agents have sent to global storage, as far as it was counted.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent.iter().map(|(before, now)| before + now).sum()
    }

    /// Counts what a node's agent has sent: a drain that is over is forgotten by its agent.
    pub(crate) fn count_sent(&mut self, node: usize) {
        let drains = self.status(node).map(|status| status.drains).unwrap_or_default();
        let sent = drains.iter().map(|drain| drain.sent_bytes).sum();
        let (before, now) = &mut self.sent[node];
        if sent < *now {
            *before += *now;
        }
        *now = sent;
    }

    /// Where checkpoints are drained to.
    pub(crate) fn global(&self) -> String {
        match &self.server {
            Some(server) => server.url("demo"),
            None => self.dir.join("global").to_string_lossy().into_owned(),
        }
    }

    /// Every process of the job: nothing of the user's settings, all of ours.
    pub(crate) fn surroundings(&self, command: &mut Command) {
        clean(command).env("TMPDIR", self.mpi_dir()).current_dir(self.dir);
        if let Some(server) = &self.server {
            command.envs(server.environment());
        }
    }

    /// The settings of the job, for the environment.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        vec![
            ("STANDFAST_STORE", text(self.dir.join("nodes/{node}"))),
            ("STANDFAST_JOB", JOB.into()),
            ("STANDFAST_CAPTURE", "cow".into()),
            ("STANDFAST_CODEC", "auto".into()),
            ("STANDFAST_AGENT", text(self.dir.join("agent"))),
            ("STANDFAST_LAB_AGENT_COMMAND", text(self.command.clone())),
            ("STANDFAST_RING", "auto".into()),
            ("STANDFAST_LAB_RING_GROUP", "2".into()),
            ("STANDFAST_GLOBAL", self.global()),
            ("STANDFAST_KEEP", "all".into()),
        ]
    }

    /// The settings of a run without checkpoints: a store that stays empty.
    pub(crate) fn bare_settings(&self) -> Vec<(&'static str, String)> {
        vec![("STANDFAST_STORE", self.dir.join("unused").to_string_lossy().into_owned())]
    }

    /// Kills everything that runs on a node and removes its disk.
    pub(crate) fn destroy(&mut self, node: usize) -> Result<()> {
        self.count_sent(node);
        kill_ranks(&self.pids(node));
        self.kill_agent(node);
        for dir in [self.disk(node), self.agent_dir(node)] {
            match std::fs::remove_dir_all(&dir) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(os("remove", dir.display(), error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn kill_agent(&mut self, node: usize) {
        if let Some(mut agent) = self.agents[node].take() {
            // Both fail only if it has ended already.
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

impl Drop for Nodes<'_> {
    fn drop(&mut self) {
        (0..NODES.len()).for_each(|node| self.kill_agent(node));
    }
}

/// Kills the ranks that are listed in a file: the launcher, which is alive, has not waited for
/// those that run.
pub(crate) fn kill_ranks(list: &Path) {
    let text = std::fs::read_to_string(list).unwrap_or_default();
    for pid in text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
        kill(pid);
    }
}

fn make(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|error| os("make", dir.display(), error))
}
