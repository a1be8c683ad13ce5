//! Writing the family, with the public API and the code as it is.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use standfast::{Job, Level, Version, mark};
use standfast_agent::{Daemon, Place};
use standfast_format::SEGMENT_HEADER_BYTES;
use standfast_store::{DirStore, Options};

use crate::cases::{Case, Life, each};
use crate::contents::Contents;
use crate::drained::drain;
use crate::memory::{Memory, protect_on_stand_in};
use crate::open::{Settings, on_all_ranks, on_funneled_ranks, reading, settings, store};
use crate::traces;

/// Blocks of one page, so that noise is stored as it is; a case's own settings come after these.
const USUAL: &[(&str, &str)] = &[
    ("lab.block", "4KiB"),
    ("lab.pool", "1MiB"),
    ("lab.threads", "2"),
    ("lab.page", "4KiB"),
    ("codec", "lz4"),
];

/// Writes every case into a directory of its own below `dir`, which must not exist.
pub fn family(dir: &Path) -> Result<()> {
    std::fs::create_dir(dir).with_context(|| format!("{} must be new", dir.display()))?;
    each(|case| {
        let place = dir.join(case.name);
        write(&place, case)?;
        traces::check(&place, case)
    })
}

/// Writes one case.
fn write(dir: &Path, case: &Case) -> Result<()> {
    std::fs::create_dir_all(dir.join("store"))?;
    let mut all = reading(dir, case);
    all.extend(settings(USUAL));
    all.extend(settings(case.settings));
    match case.life {
        Life::Plain => take_all(case, &all, Level::Local),
        Life::Ring => take_all(case, &all, Level::Ring),
        Life::Device => take_from_device(case, &all),
        Life::Agents | Life::Pledged => take_through_agents(case, &all),
        Life::Drained(versions) => {
            take_all(case, &all, Level::Local)?;
            let arrived = (0..case.nodes()).map(|node| drain(dir, case, node));
            let arrived = arrived.sum::<Result<usize>>()?;
            ensure!(arrived == versions.len(), "{arrived} versions have arrived");
            Ok(())
        }
        Life::HalfDrained => {
            take_all(case, &all, Level::Local)?;
            let arrived = drain(dir, case, 0)?;
            ensure!(arrived == 0, "{arrived} versions have arrived without the other nodes");
            Ok(())
        }
        Life::Marked => {
            take_all(case, &all, Level::Local)?;
            damage_newest(dir, case)
        }
    }
}

fn take_all(case: &Case, all: &Settings, level: Level) -> Result<()> {
    let program = |job: Job, rank: usize| {
        let memory = Memory::alloc(&job, &Contents::at(case.name, case.scale, rank, 0))?;
        for version in case.taken {
            take(&job, &memory, case, rank, *version)?;
            job.wait(Version(*version), level)?;
        }
        drop(memory);
        Ok(job.close()?)
    };
    on_all_ranks(case, all, program).map(|_| ())
}

fn take(job: &Job, memory: &Memory, case: &Case, rank: usize, version: u64) -> Result<()> {
    memory.set(&Contents::at(case.name, case.scale, rank, version));
    job.checkpoint(Some(Version(version)))?;
    Ok(())
}

fn take_from_device(case: &Case, all: &Settings) -> Result<()> {
    let program = |job: Job, rank: usize| {
        let mut contents = Contents::at(case.name, case.scale, rank, 0);
        let memory = Memory::beside_device(&job, &contents)?;
        // SAFETY: the field is dropped after the job, which `close` ends, and is written to between
        // calls only: each version is durable before the next is set.
        unsafe { protect_on_stand_in(&job, &mut contents.field)? };
        for version in case.taken {
            let next = Contents::at(case.name, case.scale, rank, *version);
            contents.field.copy_from_slice(&next.field);
            take(&job, &memory, case, rank, *version)?;
            job.wait(Version(*version), Level::Local)?;
        }
        drop(memory);
        Ok(job.close()?)
    };
    on_all_ranks(case, all, program).map(|_| ())
}

fn take_through_agents(case: &Case, all: &Settings) -> Result<()> {
    let agents = Agents::start(case.nodes())?;
    let all: Settings = all.iter().cloned().chain(agents.settings()).collect();
    match case.life {
        Life::Pledged => leave_pledges(case, &all),
        _ => take_all(case, &all, Level::Local),
    }
}

/// All versions but the last are committed; of that one the nodes have only pledged their parts.
fn leave_pledges(case: &Case, all: &Settings) -> Result<()> {
    on_funneled_ranks(case, all, |job, rank| {
        let memory = Memory::alloc(&job, &Contents::at(case.name, case.scale, rank, 0))?;
        let (last, others) = case.taken.split_last().context("it takes versions")?;
        for version in others {
            take(&job, &memory, case, rank, *version)?;
            job.wait(Version(*version), Level::Local)?;
        }
        // The job ends here, without another call that could commit.
        take(&job, &memory, case, rank, *last)
    })
}

/// Spoils a page of the newest version and marks it, as a lazy restart does that comes to it.
fn damage_newest(dir: &Path, case: &Case) -> Result<()> {
    let manifest = on_all_ranks(case, &reading(dir, case), |job, _| {
        job.list().into_iter().next().context("there are checkpoints")
    })?;
    let newest = manifest.first().context("there is a rank")?;
    let raw = DirStore::open(store(dir, case, 0), &Options::default())?;
    mark::put(&raw, newest.version, newest.attempt, "rank 0: golden stores need a damaged one")?;
    let segment = newest.segments.first().context("it has pages")?;
    let file = store(dir, case, 0).join(standfast_format::name::segment(segment.id));
    flip(&file, SEGMENT_HEADER_BYTES)
}

/// Changes one bit of the byte at this place.
pub fn flip(file: &Path, at: usize) -> Result<()> {
    let mut bytes = std::fs::read(file)?;
    let byte = bytes.get_mut(at).with_context(|| format!("{} ends before", file.display()))?;
    *byte ^= 1;
    Ok(std::fs::write(file, bytes)?)
}

/// Agents of virtual nodes: threads of this process, with sockets in a directory of their own, for no
/// socket belongs into a store.
struct Agents {
    dir: tempfile::TempDir,
    running: Vec<(Place, JoinHandle<()>)>,
}

impl Agents {
    fn start(nodes: usize) -> Result<Self> {
        let mut agents = Self { dir: tempfile::tempdir()?, running: Vec::new() };
        for node in 0..nodes {
            // Nodes of one machine: the engine adds their names to the configured directory.
            let place = PathBuf::from(format!("{}-n{node}", agents.base().display()));
            let place = Place::open(Some(&place))?;
            let daemon = Daemon::bind(&place, Duration::from_secs(600))?;
            let daemon = daemon.context("another agent is there")?;
            agents.running.push((place, std::thread::spawn(move || daemon.run())));
        }
        Ok(agents)
    }

    fn base(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    /// How ranks find them, and that nobody starts others.
    fn settings(&self) -> Settings {
        let base = self.base();
        settings(&[
            ("lab.write", "wag-dbi"),
            ("lab.agent_dir", &base.to_string_lossy()),
            ("lab.agent_command", "/no/such/command"),
        ])
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        for (place, agent) in self.running.drain(..) {
            // An agent that does not answer any more has nothing left to end.
            let _ = standfast_agent::stop(&place, true);
            let _ = agent.join();
        }
    }
}
