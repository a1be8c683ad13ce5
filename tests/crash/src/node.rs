//! A job of several processes on one node or several, writing through the nodes' agents: what its
//! ranks do, and what must hold after any of them, or an agent, was killed.
//!
//! Contents follow from seed, rank and step. Some pages are equal on all ranks, some never change,
//! some are of one rank and step alone, so that checkpoints refer across ranks and time.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use standfast::config::Loaded;
use standfast::{Job, Level, Protected, Version};
use standfast_agent::Place;
use standfast_comm::Comm;
use standfast_testkit::run_threads;

use crate::report::Line;

/// Ranks of the job.
pub const RANKS: usize = 4;
const WORDS: usize = 24 << 10;
const KEEP: usize = 3;
/// Between two checkpoints of a job that drains.
const COMPUTING: Duration = Duration::from_millis(50);

/// Where a job and its agents live, life after life.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// Their directory.
    pub dir: PathBuf,
    /// The program that is the agent.
    pub command: PathBuf,
    /// Decides the contents.
    pub seed: u64,
    /// How many nodes there are; more than one have stores of their own.
    pub nodes: usize,
    /// The setting `capture`.
    pub capture: String,
    /// Whether the agent drains to [`Jobs::global`].
    pub drains: bool,
}

impl Jobs {
    /// Where the agents are.
    pub fn places(&self) -> Vec<Place> {
        let open = |dir: PathBuf| Place::open(Some(&dir)).expect("a directory of the test's own");
        match self.nodes {
            1 => vec![open(self.dir.join("agent"))],
            nodes => (0..nodes).map(|node| open(self.dir.join(format!("agent-n{node}")))).collect(),
        }
    }

    /// Global storage.
    pub fn global(&self) -> PathBuf {
        self.dir.join("global")
    }

    fn stores(&self) -> Vec<PathBuf> {
        match self.nodes {
            1 => vec![self.dir.join("store/job")],
            nodes => (0..nodes).map(|node| self.dir.join(format!("store/n{node}/job"))).collect(),
        }
    }

    fn settings(&self, write: &str, rank: usize) -> Loaded {
        let text = |path: &Path| path.to_str().expect("a path of the test's own").to_owned();
        let (store, node) = match self.nodes {
            1 => ("store", "host".into()),
            nodes => ("store/{node}", format!("n{}", rank * nodes / RANKS)),
        };
        let settings = [
            ("store", text(&self.dir.join(store))),
            ("lab.node", node),
            ("ring", "auto".into()),
            ("lab.ring_group", "2".into()),
            ("capture", self.capture.clone()),
            ("global", if self.drains { text(&self.global()) } else { "off".into() }),
            ("lab.agent_dir", text(&self.dir.join("agent"))),
            ("lab.agent_command", text(&self.command)),
            ("lab.agent_idle", "20s".into()),
            ("lab.write", write.into()),
            ("keep", KEEP.to_string()),
            ("lab.pool", "512KiB".into()),
            ("lab.block", "32KiB".into()),
            ("lab.threads", "1".into()),
            ("lab.io_threads", "2".into()),
        ];
        let settings: Vec<(String, String)> =
            settings.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Loaded::load(&settings).expect("settings of the test's own")
    }

    fn word(&self, rank: usize, step: u64, at: usize) -> u64 {
        let (rank, step) = match (at / 512) % 4 {
            0 => (0, step),
            1 => (rank as u64, 0),
            2 => (0, step / 4),
            _ => (rank as u64, step),
        };
        let mixed = (at as u64) << 40 ^ rank << 32 ^ step ^ self.seed.rotate_left(17);
        mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (mixed >> 9)
    }

    fn fill(&self, memory: &Protected<u64>, rank: usize, step: u64) {
        let mut memory = memory.write();
        memory.iter_mut().enumerate().for_each(|(at, value)| *value = self.word(rank, step, at));
    }

    fn is_at(&self, memory: &Protected<u64>, rank: usize, step: u64) -> bool {
        let memory = memory.read();
        memory.iter().enumerate().all(|(at, value)| *value == self.word(rank, step, at))
    }

    /// A rank's life: goes on from the newest checkpoint and takes further ones until it is killed,
    /// telling what it was told. Every other checkpoint it waits for.
    pub fn live(&self, comm: &dyn Comm) -> standfast::Result<()> {
        let rank = comm.rank();
        let job = Job::open_comm(self.settings("wag-dbi", rank), comm)?;
        let memory = job.alloc::<u64>("memory", WORDS)?;
        let newest = job.list().first().map_or(0, |manifest| manifest.version.0);
        if newest > 0 {
            job.restart()?;
            assert!(self.is_at(&memory, rank, newest), "rank {rank} is not at {newest}");
        }
        Line::Durable(newest).tell();
        for step in newest + 1.. {
            self.fill(&memory, rank, step);
            Line::Begun(step).tell();
            let taken = take(&job, Version(step))?;
            Line::Returned(step).tell();
            if step % 2 == 0 && job.wait(taken, Level::Local).is_ok() {
                Line::Durable(step).tell();
            }
            if self.drains {
                // A program computes between checkpoints: only then drains go on.
                std::thread::sleep(COMPUTING);
            }
        }
        Ok(())
    }

    /// Opens the store as the next life would, and compares everything with what was promised: the
    /// newest checkpoint is at least `least` and at most `most`, and each one on offer restores on
    /// every rank. Returns the newest, and what is wrong.
    pub fn check(&self, write: &str, least: u64, most: u64) -> (u64, Vec<String>) {
        let findings = Mutex::new(Vec::new());
        let find = |finding: String| findings.lock().expect("nobody panics").push(finding);
        let newest = run_threads(RANKS, |comm| {
            let rank = comm.rank();
            let job = match Job::open_comm(self.settings(write, rank), &comm) {
                Ok(job) => job,
                Err(error) => {
                    find(format!("rank {rank}: the store cannot be opened: {error}"));
                    return 0;
                }
            };
            let memory = job.alloc::<u64>("memory", WORDS).expect("memory of the test's own");
            let offered: Vec<u64> = job.list().iter().map(|manifest| manifest.version.0).collect();
            for version in &offered {
                match job.restart_from(Version(*version)) {
                    Ok(_) if self.is_at(&memory, rank, *version) => {}
                    Ok(_) => find(format!("rank {rank}: {version} restores to something else")),
                    Err(error) => find(format!("rank {rank}: {version} is lost: {error}")),
                }
            }
            match (job.restart(), offered.first()) {
                (Ok(Some(restarted)), Some(newest)) if restarted.version.0 == *newest => {}
                (Ok(None), None) => {}
                (other, newest) => find(format!("rank {rank}: {newest:?} restarts as {other:?}")),
            }
            if rank == 0 {
                self.stores().iter().flat_map(|dir| leftovers(dir)).for_each(find);
            }
            offered.first().copied().unwrap_or(0)
        })[0];
        let mut findings = findings.into_inner().expect("nobody panics");
        if !(least..=most).contains(&newest) {
            findings.push(format!("the newest is {newest}, not from {least} to {most}"));
        }
        (newest, findings)
    }
}

impl Jobs {
    /// Restarts every rank from global storage alone; returns the newest checkpoint there.
    ///
    /// # Panics
    /// If it is older than `least` or not what was captured.
    pub fn check_global(&self, least: u64) -> u64 {
        let global = self.global().to_str().expect("a path of the test's own").to_owned();
        run_threads(RANKS, |comm| {
            let settings = [("store".to_owned(), global.clone())];
            let loaded = Loaded::load(&settings).expect("settings of the test's own");
            let job = Job::open_comm(loaded, &comm).expect("global storage is a store");
            let memory = job.alloc::<u64>("memory", WORDS).expect("memory of the test's own");
            let newest =
                job.restart().expect("it can be read").expect("a checkpoint is there").version.0;
            assert!(newest >= least, "{newest} is older than {least}");
            assert!(self.is_at(&memory, comm.rank(), newest), "{newest} is something else");
            newest
        })[0]
    }
}

/// Takes a checkpoint. One that fails with the agent fails on all ranks, at once or with the next
/// call, and is taken again.
fn take(job: &Job, version: Version) -> standfast::Result<Version> {
    let mut tries = 0;
    loop {
        match job.checkpoint(Some(version)) {
            Err(error) if tries < 2 && !error.is_out_of_reach() => tries += 1,
            taken => return taken,
        }
    }
}

/// Files that belong to no checkpoint.
fn leftovers(dir: &Path) -> Vec<String> {
    let path = dir.to_str().expect("a path of the test's own");
    let store = match standfast_store::open(path, &standfast_store::Options::default()) {
        Ok(store) => store,
        Err(error) => return vec![error.to_string()],
    };
    let mut found = crate::checker::leftovers(&*store, RANKS as u32);
    found.extend(crate::checker::parts(dir));
    found
}
