//! What can happen to a job, and what must hold afterwards.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::Promise;
use super::life::Life;
use super::plan::Dice;
use super::world::World;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    /// How long the job has run when it happens.
    pub(super) after: Duration,
    /// Decides about files and bytes.
    pub(super) dice: u64,
}

/// What happens; nodes and ranks by number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// One rank is killed; the others end by themselves.
    Rank(usize),
    /// All ranks are killed at once, agents live.
    Ranks,
    /// A node's agent is killed, then all ranks.
    Agent(usize),
    /// Everything is killed.
    Power,
    /// Everything is killed, and a node's disk is gone.
    Disk(usize),
    /// Everything is killed, and all disks are gone.
    Disks,
    /// Everything is killed, and a file on a node is cut short, gone, or has other bytes.
    File(usize),
    /// A node's disk is full for a while, then all ranks are killed.
    Full(usize),
}

impl Kind {
    pub(super) fn drawn(dice: &mut Dice, nodes: usize) -> Self {
        let node = dice.below(nodes as u64) as usize;
        match dice.below(12) {
            0 | 1 => Kind::Rank(dice.below(8) as usize),
            2 | 3 => Kind::Ranks,
            4 => Kind::Agent(node),
            5 => Kind::Power,
            6 | 7 => Kind::Disk(node),
            8 => Kind::Disks,
            9 | 10 => Kind::File(node),
            _ => Kind::Full(node),
        }
    }
}

impl Fault {
    /// Whether it harms what is on disk.
    pub(super) fn damages(&self) -> bool {
        matches!(self.kind, Kind::Disk(_) | Kind::Disks | Kind::File(_))
    }

    /// Lets the job run, strikes, and tells what must hold.
    pub(super) fn strike(&self, world: &World, mut life: Life) -> anyhow::Result<Promise> {
        life.run_until(Instant::now() + self.after);
        match self.kind {
            Kind::Rank(rank) => life.kill(Some(rank))?,
            Kind::Ranks => life.kill(None)?,
            Kind::Agent(node) => {
                world.kill_agent(node);
                life.run_until(Instant::now() + self.after / 4);
                life.kill(None)?;
            }
            Kind::Full(node) => {
                let full = world.fill(node)?;
                life.run_until(Instant::now() + self.after / 2);
                drop(full);
                life.run_until(Instant::now() + self.after / 4);
                life.kill(None)?;
            }
            Kind::Power | Kind::Disk(_) | Kind::Disks | Kind::File(_) => {
                life.kill(None)?;
                (0..world.nodes()).for_each(|node| world.kill_agent(node));
            }
        }
        let heard = life.heard();
        let global = world.newest_global()?;
        let least = match self.kind {
            Kind::Disk(node) => {
                world.wipe(node)?;
                heard.ring.max(global)
            }
            Kind::File(node) => {
                self.damage(world, node)?;
                heard.ring.max(global)
            }
            Kind::Disks => {
                (0..world.nodes()).try_for_each(|node| world.wipe(node))?;
                global
            }
            _ => heard.local.max(global),
        };
        Ok(Promise { least, most: heard.begun })
    }

    fn damage(&self, world: &World, node: usize) -> anyhow::Result<()> {
        let mut files = Vec::new();
        files_below(&world.store(node), &mut files);
        files.sort();
        let mut dice = Dice::new(self.dice);
        if files.is_empty() {
            return Ok(());
        }
        let path = &files[dice.below(files.len() as u64) as usize];
        let mut bytes = std::fs::read(path).context("reading what is to be damaged")?;
        match dice.below(3) {
            0 => return Ok(std::fs::remove_file(path)?),
            1 => bytes.truncate(dice.below(bytes.len() as u64) as usize),
            _ => {
                let at = dice.below(bytes.len() as u64) as usize;
                let end = (at + 1 + dice.below(64) as usize).min(bytes.len());
                bytes[at.min(end)..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
            }
        }
        Ok(std::fs::write(path, bytes)?)
    }
}

fn files_below(dir: &std::path::Path, files: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
        match path.is_dir() {
            true => files_below(&path, files),
            // Locks hold no bytes; whoever removes one that is held is another kind of fault.
            false if path.metadata().is_ok_and(|about| about.len() > 0) => files.push(path),
            false => {}
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Rank(rank) => write!(f, "a rank ({rank}) is killed"),
            Kind::Ranks => write!(f, "all ranks are killed"),
            Kind::Agent(node) => write!(f, "agent {node} is killed"),
            Kind::Power => write!(f, "all is killed"),
            Kind::Disk(node) => write!(f, "disk {node} is lost"),
            Kind::Disks => write!(f, "all disks are lost"),
            Kind::File(node) => write!(f, "a file on disk {node} is damaged"),
            Kind::Full(node) => write!(f, "disk {node} is full"),
        }?;
        write!(f, " after {} ms", self.after.as_millis())
    }
}
