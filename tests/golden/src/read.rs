//! Reading the family: every byte of every region of every rank and version is what it was.
//!
//! Reading changes stores (pledges are redeemed, what is lost is made again): only copies are read.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use standfast::{Job, Kind, Level, Restarted, Version};

use crate::cases::{CASES, Case, Life, each};
use crate::contents::Contents;
use crate::drained::drain;
use crate::memory::Memory;
use crate::open::{on_all_ranks, reading, store};
use crate::traces;

/// Reads all cases below a directory, which must be there and the only ones.
pub fn family(dir: &Path) -> Result<()> {
    the_list_is_complete(dir)?;
    each(|case| {
        let place = dir.join(case.name);
        traces::check(&place, case)?;
        read(&place, case)
    })
}

fn the_list_is_complete(dir: &Path) -> Result<()> {
    let entries = std::fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    let mut found: Vec<_> = entries.iter().map(|entry| entry.file_name()).collect();
    let mut expected: Vec<_> = CASES.iter().map(|case| case.name).collect();
    found.sort();
    expected.sort();
    ensure!(found == expected, "cases are {found:?}, not {expected:?}");
    Ok(())
}

/// Reads one case: all versions, and what the nodes' own stores are not needed for.
fn read(dir: &Path, case: &Case) -> Result<()> {
    on_all_ranks(case, &reading(dir, case), |job, rank| every_version(&job, case, rank))?;
    match case.life {
        Life::Ring => without_node(dir, case, 1),
        Life::Drained(versions) => from_global(dir, case, versions),
        Life::HalfDrained => {
            let arrived = drain(dir, case, 1)?;
            ensure!(arrived == case.listed.len(), "{arrived} versions have arrived");
            from_global(dir, case, case.listed)
        }
        _ => Ok(()),
    }
}

fn every_version(job: &Job, case: &Case, rank: usize) -> Result<()> {
    let listed: Vec<u64> = job.list().iter().map(|manifest| manifest.version.0).collect();
    ensure!(listed == case.listed, "versions {listed:?} are listed, not {:?}", case.listed);
    let intact: Vec<u64> =
        listed.into_iter().filter(|version| Some(*version) != case.damaged()).collect();
    let memory = Memory::alloc(job, &Contents::at(case.name, case.scale, rank, 0))?;
    let newest = restart(job, &memory, case, rank, None)?.version.0;
    ensure!(Some(&newest) == intact.first(), "the newest one is {newest}");
    for version in intact {
        restart(job, &memory, case, rank, Some(version))?;
    }
    if let Some(damaged) = case.damaged() {
        must_be_refused(job, damaged)?;
    }
    Ok(())
}

/// Restarts and compares every byte with what that version held.
fn restart(
    job: &Job,
    memory: &Memory,
    case: &Case,
    rank: usize,
    version: Option<u64>,
) -> Result<Restarted> {
    memory.scribble();
    let told = || format!("version {version:?}");
    let restarted = match version {
        Some(version) => Some(job.restart_from(Version(version)).with_context(told)?),
        None => job.restart()?,
    };
    let restarted = restarted.context("there is no checkpoint")?;
    let expected = Contents::at(case.name, case.scale, rank, restarted.version.0);
    memory.compare(&expected).with_context(|| format!("version {}", restarted.version))?;
    ensure!(restarted.unclaimed.is_empty(), "nobody claims {:?}", restarted.unclaimed);
    Ok(restarted)
}

fn must_be_refused(job: &Job, version: u64) -> Result<()> {
    match job.restart_from(Version(version)) {
        Err(error) if error.kind() == Kind::Corrupt => Ok(()),
        Err(error) => bail!("version {version}: another error than damage: {error}"),
        Ok(_) => bail!("version {version} is damaged, and was taken"),
    }
}

/// What the newest version comes back as, on all ranks, with every byte compared. An error is one of the
/// job; wrong bytes panic.
pub fn newest(dir: &Path, case: &Case) -> Result<Vec<Restarted>> {
    on_all_ranks(case, &reading(dir, case), |job, rank| {
        let memory = Memory::alloc(&job, &Contents::at(case.name, case.scale, rank, 0))?;
        memory.scribble();
        let restarted = job.restart()?.context("there is no checkpoint")?;
        let expected = Contents::at(case.name, case.scale, rank, restarted.version.0);
        if let Err(wrong) = memory.compare(&expected) {
            panic!("{}, version {}: {wrong:#}", case.name, restarted.version);
        }
        Ok(restarted)
    })
}

/// A node has lost its disk: what it stored comes from the shards of others.
fn without_node(dir: &Path, case: &Case, node: usize) -> Result<()> {
    std::fs::remove_dir_all(store(dir, case, node))?;
    let back = newest(dir, case).context("without a node")?;
    ensure!(back.iter().all(|one| Some(&one.version.0) == case.listed.first()), "{back:?}");
    ensure!(back[0].levels.contains(&Level::Ring), "nothing from the ring: {back:?}");
    Ok(())
}

/// All nodes have lost their disks: everything comes from global storage.
fn from_global(dir: &Path, case: &Case, versions: &[u64]) -> Result<()> {
    std::fs::remove_dir_all(dir.join("store"))?;
    std::fs::create_dir(dir.join("store"))?;
    on_all_ranks(case, &reading(dir, case), |job, rank| {
        let memory = Memory::alloc(&job, &Contents::at(case.name, case.scale, rank, 0))?;
        for version in versions {
            let back = restart(&job, &memory, case, rank, Some(*version))?;
            ensure!(back.levels.iter().all(|level| *level == Level::Global), "{back:?}");
        }
        Ok(())
    })
    .context("from global storage")
    .map(|_| ())
}
