//! What can happen to a job, and how it is done.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::life::{Life, Word};
use super::plan::Dice;
use super::proxy::Mood;
use super::stage::Stage;
use super::world::World;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) when: When,
    /// Decides about files and bytes.
    pub(super) dice: u64,
}

/// At which instant.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// So long after the last one, of a job that runs.
    After(Duration),
    /// So long after something was told for so many times.
    Word(Word, usize, Duration),
    /// So long after the processes were started, whatever they have come to.
    Early(Duration),
    /// So many acts into a stage, with whoever does the last one held for so long before it.
    Stage(Stage, usize, Duration),
}

impl When {
    /// Whether it is meant for a job that has not come back yet.
    pub(super) fn is_early(&self) -> bool {
        matches!(self, When::Early(_) | When::Stage(Stage::Recovery, ..))
    }
}

/// A fault that has happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Struck {
    pub(super) kind: &'static str,
    /// What the job was at.
    pub(super) stage: Stage,
    /// Whether one of its processes was held there.
    pub(super) held: bool,
}

/// What happens; nodes and ranks by number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    // Disturbances: the job goes on.
    /// A node's agent is killed.
    Agent(usize),
    /// A node's disk is full for a while.
    Full(usize, Duration),
    /// The clocks of all nodes jump to so many seconds before or after the time.
    Clock(i64),
    /// From now on messages between ranks take up to so long.
    Messages(Duration),
    /// Global storage answers badly for a while.
    Storage(Mood, Duration),
    // Ends: afterwards the job is started again.
    /// One rank is killed; the others are left alone for a while.
    Rank(usize),
    /// All ranks are killed at once, agents live.
    Ranks,
    /// All processes of a node are killed; the other ranks are left alone for a while.
    Node(usize),
    /// Everything is killed; disks lose what was not durable, where they can.
    Power,
    /// Everything is killed, and a node's disk is gone.
    Disk(usize),
    /// Everything is killed, and all disks are gone.
    Disks,
    /// Everything is killed, and a file on a node is cut short, gone, or has other bytes.
    File(usize),
}

/// What a fault leaves standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// What has reached the disks of the nodes.
    Local,
    /// What the other nodes can make again.
    Ring,
    /// What is in global storage.
    Global,
}

impl Kind {
    /// Its name in tallies.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Kind::Agent(_) => "agent killed",
            Kind::Full(..) => "disk full",
            Kind::Clock(_) => "clocks jump",
            Kind::Messages(_) => "messages delayed",
            Kind::Storage(Mood::Slow, _) => "global storage slow",
            Kind::Storage(..) => "global storage fails",
            Kind::Rank(_) => "rank killed",
            Kind::Ranks => "all ranks killed",
            Kind::Node(_) => "node killed",
            Kind::Power => "power lost",
            Kind::Disk(_) => "disk lost",
            Kind::Disks => "all disks lost",
            Kind::File(_) => "file damaged",
        }
    }

    /// Whether the job is over with it.
    pub(super) fn ends(&self) -> bool {
        match self {
            Kind::Agent(_)
            | Kind::Full(..)
            | Kind::Clock(_)
            | Kind::Messages(_)
            | Kind::Storage(..) => false,
            Kind::Rank(_)
            | Kind::Ranks
            | Kind::Node(_)
            | Kind::Power
            | Kind::Disk(_)
            | Kind::Disks
            | Kind::File(_) => true,
        }
    }

    pub(super) fn leaves(&self) -> Leaves {
        match self {
            Kind::Disk(_) | Kind::File(_) => Leaves::Ring,
            Kind::Disks => Leaves::Global,
            _ => Leaves::Local,
        }
    }
}

impl Fault {
    /// Lets the job run until the fault is due, and strikes.
    pub(super) fn strike(&self, world: &World, life: &mut Life) -> anyhow::Result<Struck> {
        let held = self.wait(world, life);
        let gate = world.gate();
        let kind = self.kind.name();
        let struck = match self.when {
            When::Stage(stage, ..) if held && gate.is_holding() => {
                Struck { kind, stage, held: true }
            }
            _ => Struck { kind, stage: gate.seen(), held: false },
        };
        self.happen(world, life)?;
        if !self.outlasts() {
            gate.open();
        }
        Ok(struck)
    }

    /// Whether an agent that is held, and outlives the ranks, stays so while the next ones start: what
    /// it does late must not harm them.
    fn outlasts(&self) -> bool {
        matches!(self.kind, Kind::Ranks) && Dice::new(self.dice).one_in(2)
    }

    /// Lets the job run until the fault is due; whether somebody is held then.
    fn wait(&self, world: &World, life: &mut Life) -> bool {
        let (held, then) = match self.when {
            When::After(time) | When::Early(time) => (false, time),
            When::Word(word, times, then) => {
                life.run_until_told(word, times);
                (false, then)
            }
            When::Stage(stage, acts, then) => {
                (world.is_watched() && life.run_until_held(stage, acts), then)
            }
        };
        life.run_until(Instant::now() + then);
        held
    }

    /// Does it. Whoever is held goes on as soon as there is something to go on with.
    fn happen(&self, world: &World, life: &mut Life) -> anyhow::Result<()> {
        match self.kind {
            Kind::Agent(node) => world.kill_agent(node),
            Kind::Full(node, time) => {
                let full = world.disks().fill(node);
                world.gate().open();
                life.run_until(Instant::now() + time);
                drop(full);
            }
            Kind::Clock(seconds) => world.set_clock(seconds)?,
            Kind::Messages(most) => world.set_delay(most)?,
            Kind::Storage(mood, time) => {
                world.set_mood(mood);
                world.gate().open();
                life.run_until(Instant::now() + time);
                world.set_mood(Mood::Well);
            }
            Kind::Rank(rank) => {
                life.kill(&[rank])?;
                world.gate().open();
                self.leave_alone(life)?;
            }
            Kind::Ranks => life.end()?,
            Kind::Node(node) => {
                world.kill_agent(node);
                life.kill(&world.ranks_of(node))?;
                world.gate().open();
                self.leave_alone(life)?;
            }
            Kind::Power => {
                world.disks().power_off();
                end_all(world, life)?;
                world.disks().power_on()?;
            }
            Kind::Disk(node) => {
                end_all(world, life)?;
                world.disks().wipe(node)?;
            }
            Kind::Disks => {
                end_all(world, life)?;
                (0..world.nodes()).try_for_each(|node| world.disks().wipe(node))?;
            }
            Kind::File(node) => {
                end_all(world, life)?;
                damage(&world.store(node), &mut Dice::new(self.dice))?;
            }
        }
        Ok(())
    }

    /// Lets the other ranks find out by themselves that some are gone, or kills them a little later,
    /// as a launcher does.
    fn leave_alone(&self, life: &mut Life) -> anyhow::Result<()> {
        let mut dice = Dice::new(self.dice);
        if dice.one_in(4) && life.have_met() {
            life.wait_for_end()?;
        } else {
            life.run_until(Instant::now() + Duration::from_micros(dice.below(60_000)));
        }
        life.end()
    }
}

fn end_all(world: &World, life: &mut Life) -> anyhow::Result<()> {
    life.end()?;
    world.stop();
    Ok(())
}

/// Removes, shortens or changes some file of a store.
fn damage(store: &Path, dice: &mut Dice) -> anyhow::Result<()> {
    let mut files = Vec::new();
    files_below(store, &mut files);
    files.sort();
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
            bytes[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
        }
    }
    Ok(std::fs::write(path, bytes)?)
}

fn files_below(dir: &Path, files: &mut Vec<PathBuf>) {
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
        write!(f, "{}", self.kind.name())?;
        match self.kind {
            Kind::Rank(rank) => write!(f, " ({rank})")?,
            Kind::Agent(node) | Kind::Node(node) | Kind::Disk(node) | Kind::File(node) => {
                write!(f, " ({node})")?;
            }
            Kind::Full(node, time) => write!(f, " ({node}) for {} ms", time.as_millis())?,
            Kind::Clock(seconds) => write!(f, " by {seconds} s")?,
            Kind::Messages(most) => write!(f, " by up to {} us", most.as_micros())?,
            Kind::Storage(mood, time) => write!(f, " ({mood:?}) for {} ms", time.as_millis())?,
            Kind::Ranks | Kind::Power | Kind::Disks => {}
        }
        match self.when {
            When::After(time) => write!(f, " after {} ms", time.as_millis()),
            When::Word(word, times, then) => {
                write!(f, " {} us after {word:?} for the {times}. time", then.as_micros())
            }
            When::Early(time) => write!(f, " {} ms after the start", time.as_millis()),
            When::Stage(stage, acts, then) => {
                write!(f, " {} us into act {acts} of {}", then.as_micros(), stage.name())
            }
        }
    }
}
