//! The surroundings of a job: disks and agents of its nodes, clocks, messages, global storage.

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use standfast_agent::Place;
use standfast_testkit::{S3Server, command};

use super::disk::Disks;
use super::gate::Gate;
use super::life::Life;
use super::plan::{Global, Plan};
use super::proxy::{Mood, Proxy};
use super::rank::Bug;
use super::watch::watch;

const LAZY: (&str, &str) = ("restart", "lazy");

/// A job's surroundings.
pub(super) struct World<'a> {
    plan: &'a Plan,
    /// Goes before the directory it lies in.
    disks: Disks,
    objects: Option<Objects<'a>>,
    gate: Arc<Gate>,
    is_watched: bool,
    plant: Option<Bug>,
    /// How often everything has begun anew.
    beginnings: Cell<u32>,
    dir: tempfile::TempDir,
}

/// Global storage behind a way that can be disturbed.
struct Objects<'a> {
    server: &'a S3Server,
    way: Proxy,
    url: String,
}

/// What all jobs of a campaign use.
pub(super) struct Common {
    /// Loaded into every process.
    around: PathBuf,
    /// Whether one can see what processes do.
    is_watched: bool,
    server: Option<S3Server>,
    _dir: tempfile::TempDir,
}

impl Common {
    /// `with_objects`: whether a real S3 server shall be started, where one is installed.
    pub(super) fn prepare(dir: &Path, with_objects: bool) -> anyhow::Result<Self> {
        let own = tempfile::Builder::new().prefix("campaign-").tempdir_in(dir)?;
        let around = own.path().join("around.so");
        compile(&around)?;
        let is_watched = can_watch(&around);
        let server = with_objects.then(|| S3Server::start(&own.path().join("s3"))).flatten();
        Ok(Self { around, is_watched, server, _dir: own })
    }

    /// Whether faults can be aimed at stages.
    pub(super) fn is_watched(&self) -> bool {
        self.is_watched
    }
}

impl<'a> World<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        common: &'a Common,
        dir: &Path,
        plant: Option<Bug>,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("campaign-").tempdir_in(dir)?;
        std::fs::copy(&common.around, dir.path().join("around.so"))?;
        let disks = Disks::make(dir.path(), plan.nodes, plan.medium)?;
        let gate = Arc::new(Gate::new());
        let server = common.server.as_ref().filter(|_| plan.global == Global::Objects);
        let objects = server.map(|server| -> anyhow::Result<_> {
            let name = dir.path().file_name().context("it has a name")?;
            let url = server.url(&name.to_string_lossy());
            Ok(Objects { server, way: Proxy::open(server.port(), &gate)?, url })
        });
        let world = Self {
            plan,
            disks,
            objects: objects.transpose()?,
            gate,
            is_watched: common.is_watched,
            plant,
            beginnings: Cell::new(0),
            dir,
        };
        world.set_clock(0)?;
        world.set_delay(Duration::ZERO)?;
        Ok(world)
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Whether one can see what processes do.
    pub(super) fn is_watched(&self) -> bool {
        self.is_watched
    }

    pub(super) fn nodes(&self) -> usize {
        self.plan.nodes
    }

    pub(super) fn ranks_of(&self, node: usize) -> Vec<usize> {
        let ranks = self.plan.node_of.iter().enumerate();
        ranks.filter(|(_, of)| **of == node).map(|(rank, _)| rank).collect()
    }

    pub(super) fn disks(&self) -> &Disks {
        &self.disks
    }

    /// A node's store.
    pub(super) fn store(&self, node: usize) -> PathBuf {
        self.disks.of(node).join("job")
    }

    /// Global storage; another place after every new beginning.
    fn global(&self) -> Option<String> {
        let beginning = self.beginnings.get();
        match (&self.objects, self.plan.global) {
            (_, Global::None) => None,
            (Some(objects), _) => Some(format!("{}-{beginning}", objects.url)),
            (None, _) => Some(format!("{}/global-{beginning}", self.dir.path().display())),
        }
    }

    /// All clocks are wrong by so many seconds from now on.
    pub(super) fn set_clock(&self, seconds: i64) -> anyhow::Result<()> {
        // In place: processes have it mapped.
        let file = std::fs::File::options();
        let file = file.clone().create(true).truncate(false).write(true).open(self.clock())?;
        Ok(std::os::unix::fs::FileExt::write_all_at(&file, &seconds.to_ne_bytes(), 0)?)
    }

    fn clock(&self) -> PathBuf {
        self.dir.path().join("clock")
    }

    /// Messages between ranks take up to so long from now on.
    pub(super) fn set_delay(&self, most: Duration) -> anyhow::Result<()> {
        let new = self.dir.path().join("delay.new");
        std::fs::write(&new, most.as_micros().to_string())?;
        Ok(std::fs::rename(new, self.delay())?)
    }

    fn delay(&self) -> PathBuf {
        self.dir.path().join("delay")
    }

    /// How global storage answers from now on.
    pub(super) fn set_mood(&self, mood: Mood) {
        if let Some(objects) = &self.objects {
            objects.way.set(mood);
        }
    }

    /// Whether pages arrive when ranks touch them.
    pub(super) fn is_lazy(&self) -> bool {
        self.plan.settings.iter().any(|(name, value)| (*name, value.as_str()) == LAZY)
    }

    /// Starts the job's processes.
    pub(super) fn start(&self) -> anyhow::Result<Life> {
        let meeting = tempfile::tempdir()?;
        let commands = (0..self.plan.node_of.len())
            .map(|rank| self.command(rank, meeting.path()))
            .collect::<anyhow::Result<Vec<Command>>>()?;
        Life::start(commands, meeting, &self.gate)
    }

    fn command(&self, rank: usize, meeting: &Path) -> anyhow::Result<Command> {
        let mut command = clean(Command::new(std::env::current_exe()?));
        command.arg("campaign-rank").arg("--meeting").arg(meeting);
        command.arg("--delay").arg(self.delay());
        for (name, value) in [
            ("rank", rank as u64),
            ("ranks", self.plan.node_of.len() as u64),
            ("seed", self.plan.seed),
        ] {
            command.arg(format!("--{name}={value}"));
        }
        if let Some(bug) = self.plant {
            use clap::ValueEnum;
            let value = bug.to_possible_value().context("every bug has a name")?;
            command.arg(format!("--plant={}", value.get_name()));
        }
        for (name, value) in self.settings(rank)? {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        command.env("LD_PRELOAD", self.dir.path().join("around.so"));
        command.env("CAMPAIGN_CLOCK", self.clock());
        if self.is_watched {
            command.env("CAMPAIGN_WATCHED", "1");
        }
        if self.plant == Some(Bug::Unsynced) {
            command.env("CAMPAIGN_UNSYNCED", "1");
        }
        if let Some(objects) = &self.objects {
            command.envs(objects.server.environment_at(objects.way.port()));
        }
        Ok(command)
    }

    fn settings(&self, rank: usize) -> anyhow::Result<Vec<(&'static str, String)>> {
        let text = |path: &Path| path.display().to_string();
        let mut settings: Vec<(&str, String)> = vec![
            ("store", text(&self.disks.pattern())),
            ("lab.node", format!("n{}", self.plan.node_of[rank])),
            ("lab.agent_dir", text(&self.dir.path().join("agent"))),
            ("lab.agent_command", text(&std::env::current_exe()?)),
            ("lab.agent_idle", "20s".to_owned()),
            ("lab.pool", "1MiB".to_owned()),
            ("lab.block", "32KiB".to_owned()),
            ("lab.threads", "1".to_owned()),
            ("lab.io_threads", "2".to_owned()),
        ];
        settings.extend(self.global().map(|place| ("global", place)));
        settings.extend(self.plan.settings.iter().map(|(name, value)| (*name, value.clone())));
        Ok(settings)
    }

    /// The newest version that global storage offers.
    pub(super) fn newest_global(&self) -> anyhow::Result<u64> {
        let Some(place) = self.global() else { return Ok(0) };
        let mut command = clean(Command::new(std::env::current_exe()?));
        command.args(["campaign-global", "--place"]).arg(format!("{place}/job"));
        if let Some(objects) = &self.objects {
            command.envs(objects.server.environment());
        }
        let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output()?;
        let told = String::from_utf8_lossy(&output.stdout);
        match (output.status.success(), told.trim().parse()) {
            (true, Ok(newest)) => Ok(newest),
            _ => bail!("global storage: {}", String::from_utf8_lossy(&output.stderr).trim()),
        }
    }

    /// Kills a node's agent, if it has one.
    pub(super) fn kill_agent(&self, node: usize) {
        let place = self.dir.path().join(format!("agent-n{node}"));
        let Ok(place) = Place::open(Some(&place)) else { return };
        let Ok(status) = standfast_agent::status(&place) else { return };
        let Some(pid) = Pid::from_raw(status.pid as i32) else { return };
        command::kill_and_wait(pid);
    }

    /// Everything begins anew.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        self.stop();
        self.beginnings.set(self.beginnings.get() + 1);
        (0..self.nodes()).try_for_each(|node| self.disks.wipe(node))
    }

    /// Ends every process of this job, also agents that nobody can reach yet.
    pub(super) fn stop(&self) {
        while processes_with(&format!("CAMPAIGN_CLOCK={}", self.clock().display()))
            .into_iter()
            .filter(|pid| kill_process(*pid, Signal::KILL).is_ok())
            .count()
            > 0
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The processes that were started with a variable.
fn processes_with(variable: &str) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let has_it = |path: PathBuf| {
        let variables = std::fs::read(path.join("environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    };
    let pid = |entry: std::fs::DirEntry| -> Option<Pid> {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        has_it(entry.path()).then_some(pid)
    };
    entries.filter_map(pid).collect()
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A command that knows nothing of the settings around. Its errors come without the calls that led to
/// them: to look those up takes a rank longer than it has to find out that another one is gone.
fn clean(mut command: Command) -> Command {
    command.env("RUST_LIB_BACKTRACE", "0");
    command::clean(&mut command);
    command
}

fn compile(around: &Path) -> anyhow::Result<()> {
    let source = around.with_extension("c");
    std::fs::write(&source, include_str!("around.c"))?;
    let status = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(around)
        .arg(source)
        .status()
        .context("running cc")?;
    if !status.success() {
        bail!("cc cannot compile what is loaded into every process");
    }
    Ok(())
}

/// Whether calls of a process can be seen here; that needs the right to look into it.
fn can_watch(around: &Path) -> bool {
    let mut command = Command::new("cat");
    command.arg("/dev/null").env("LD_PRELOAD", around).env("CAMPAIGN_WATCHED", "1");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else { return false };
    let mut said = String::new();
    let out = child.stdout.as_mut().map(BufReader::new);
    let told = out.is_some_and(|mut out| out.read_line(&mut said).is_ok());
    let listener = said.trim().strip_prefix("watch ").and_then(|number| number.parse().ok());
    let gate = Arc::new(Gate::new());
    let watched =
        told && listener.is_some_and(|listener| watch(child.id(), listener, &gate).is_ok());
    if !watched {
        // It would wait for ever.
        let _ = child.kill();
    }
    child.wait().is_ok_and(|status| watched && status.success())
}
