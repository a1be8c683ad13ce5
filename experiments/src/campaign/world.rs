//! The nodes of a job: directories with an agent each, on small file systems where that is allowed.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use standfast_agent::Place;

use super::life::Life;
use super::plan::Plan;
use super::rank::Bug;

/// Room of a node's disk.
const DISK_MIB: u32 = 48;

/// A job's surroundings.
pub(super) struct World<'a> {
    plan: &'a Plan,
    dir: tempfile::TempDir,
    clock: PathBuf,
    plant: Option<Bug>,
    /// Whether the nodes' disks are file systems of their own.
    mounted: bool,
    lives: Cell<usize>,
}

/// Takes all the room of a disk until it is dropped.
pub(super) struct Filler(PathBuf);

impl Drop for Filler {
    fn drop(&mut self) {
        // A disk that was wiped meanwhile has no filler.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl<'a> World<'a> {
    pub(super) fn new(plan: &'a Plan, dir: &Path, plant: Option<Bug>) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("campaign-").tempdir_in(dir)?;
        let clock = dir.path().join("clock.so");
        compile(&clock)?;
        let mut world = Self { plan, dir, clock, plant, mounted: true, lives: Cell::new(0) };
        for node in 0..plan.nodes {
            std::fs::create_dir_all(world.disk(node))?;
            world.mounted &= mount(&world.disk(node));
        }
        std::fs::create_dir_all(world.global())?;
        Ok(world)
    }

    pub(super) fn nodes(&self) -> usize {
        self.plan.nodes
    }

    fn disk(&self, node: usize) -> PathBuf {
        self.dir.path().join(format!("disk/n{node}"))
    }

    /// A node's store.
    pub(super) fn store(&self, node: usize) -> PathBuf {
        self.disk(node).join("job")
    }

    fn global(&self) -> PathBuf {
        self.dir.path().join("global")
    }

    /// Starts the job's processes.
    pub(super) fn start(&self) -> anyhow::Result<Life> {
        let meeting = tempfile::tempdir()?;
        let life = self.lives.replace(self.lives.get() + 1);
        let clock = self.plan.clocks.get(life).copied().unwrap_or(0);
        let commands = (0..self.plan.node_of.len())
            .map(|rank| self.command(rank, meeting.path(), clock))
            .collect::<anyhow::Result<Vec<Command>>>()?;
        Life::start(commands, meeting)
    }

    fn command(&self, rank: usize, meeting: &Path, clock: i64) -> anyhow::Result<Command> {
        let exe = std::env::current_exe()?;
        let mut command = Command::new(&exe);
        command.arg("campaign-rank").arg("--meeting").arg(meeting);
        for (name, value) in [
            ("rank", rank as u64),
            ("ranks", self.plan.node_of.len() as u64),
            ("seed", self.plan.seed),
            ("delay-us", self.plan.delay.as_micros() as u64),
        ] {
            command.arg(format!("--{name}={value}"));
        }
        if let Some(bug) = self.plant {
            use clap::ValueEnum;
            let value = bug.to_possible_value().context("every bug has a name")?;
            command.arg(format!("--plant={}", value.get_name()));
        }
        let text = |path: &Path| path.display().to_string();
        let mut settings: Vec<(&str, String)> = vec![
            ("store", text(&self.dir.path().join("disk/{node}"))),
            ("node", format!("n{}", self.plan.node_of[rank])),
            ("agent_dir", text(&self.dir.path().join("agent"))),
            ("agent_command", text(&exe)),
            ("agent_idle", "20s".to_owned()),
            ("pool", "1MiB".to_owned()),
            ("block", "32KiB".to_owned()),
            ("threads", "1".to_owned()),
            ("io_threads", "2".to_owned()),
        ];
        if self.plan.global {
            settings.push(("global", text(&self.global())));
        }
        settings.extend(self.plan.settings.iter().map(|(name, value)| (*name, value.clone())));
        for (name, value) in settings {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        command.env("LD_PRELOAD", &self.clock).env("CLOCK_WRONG_S", clock.to_string());
        Ok(command)
    }

    /// The newest version that global storage offers.
    pub(super) fn newest_global(&self) -> anyhow::Result<u64> {
        let place = self.global().join("job");
        let store = standfast_store::open(
            &place.display().to_string(),
            &standfast_store::Options::default(),
        )?;
        let inventory = match standfast_restart::Inventory::read(&*store) {
            Ok(inventory) => inventory,
            Err(standfast_restart::Error::NoStore { .. }) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        if let Some(damaged) = inventory.damaged.first() {
            bail!("global storage offers something broken: {}", damaged.error);
        }
        Ok(inventory.checkpoints.iter().map(|manifest| manifest.version.0).max().unwrap_or(0))
    }

    /// Kills a node's agent, if it has one.
    pub(super) fn kill_agent(&self, node: usize) {
        let place = self.dir.path().join(format!("agent-n{node}"));
        let Ok(place) = Place::open(Some(&place)) else { return };
        let Ok(status) = standfast_agent::status(&place) else { return };
        let Some(pid) = Pid::from_raw(status.pid as i32) else { return };
        let _ = kill_process(pid, Signal::KILL);
        while test_kill_process(pid).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// A node comes back with an empty disk.
    pub(super) fn wipe(&self, node: usize) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(self.disk(node))? {
            let path = entry?.path();
            if path.is_dir() {
                std::fs::remove_dir_all(&path)?;
            } else {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Everything begins anew.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        self.stop();
        (0..self.nodes()).try_for_each(|node| self.wipe(node))?;
        std::fs::remove_dir_all(self.global())?;
        Ok(std::fs::create_dir_all(self.global())?)
    }

    /// Takes all the room on a node's disk, where it has a file system of its own.
    pub(super) fn fill(&self, node: usize) -> anyhow::Result<Filler> {
        let path = self.disk(node).join("filler");
        if self.mounted {
            let mut file = std::fs::File::create(&path)?;
            let piece = vec![1; 64 << 10];
            // Until nothing more fits.
            while std::io::Write::write_all(&mut file, &piece).is_ok() {}
        }
        Ok(Filler(path))
    }

    /// Ends all agents.
    pub(super) fn stop(&self) {
        (0..self.nodes()).for_each(|node| self.kill_agent(node));
    }
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        self.stop();
        for node in 0..self.nodes() {
            // Lazily: a child that is about to die may still have a file open.
            let _ = quiet("umount").args(["-l"]).arg(self.disk(node)).status();
        }
    }
}

fn quiet(command: &str) -> Command {
    let mut command = Command::new(command);
    command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    command
}

/// Mounts a small file system; false where that is not allowed.
fn mount(dir: &Path) -> bool {
    let options = format!("size={DISK_MIB}m");
    let done = quiet("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(dir).status();
    done.is_ok_and(|status| status.success())
}

fn compile(clock: &Path) -> anyhow::Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/campaign/clock.c");
    let status = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(clock)
        .arg(source)
        .status()
        .context("running cc")?;
    if !status.success() {
        bail!("cc cannot compile the clock");
    }
    Ok(())
}
