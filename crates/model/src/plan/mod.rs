//! The planner: from a machine's numbers to interval, levels, groups, codec and what they cost.
//!
//! Data: [`Sourced`] inputs (flags, [`mod@bench`] lines, [`failure_log`], [`scheduler`]
//! environment, [`measured()`] checkpoints and drains) -> [`plan`] -> [`Plan`] -> table, JSON,
//! `standfast.toml`. A running engine uses [`crate::live::Live`].
//!
//! Every codec is tried with the cheapest groups that survive as wished; the exact models choose
//! interval and ratios; the best efficiency wins, and among equals the fewest stored bytes.
//!
//! Invariants:
//! - A plan is computed by the same models that the simulator checks.

pub mod bench;
pub mod failure_log;
mod inputs;
pub mod machine;
mod measured;
pub mod scheduler;
mod sensitivity;
mod settings;
mod sources;

pub use inputs::{CodecInput, FailureInputs, Inputs, JobInputs, Rates, RingInputs};
pub use measured::{Checkpoint, Drain, measured};
pub use sensitivity::Sensitivity;
pub use settings::toml;
pub use sources::{Field, Sourced};

use serde::Serialize;

use crate::error::Result;
use crate::levels::{Breakdown, Pattern};
use machine::{Chosen, Machine};

/// One level of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelPlan {
    /// local, ring or global.
    pub name: &'static str,
    /// Work between two checkpoints of this level.
    pub interval_s: f64,
    /// Every how many checkpoints one reaches this level.
    pub every: u64,
    /// How long the job stands still for one; 0 where an agent does it.
    pub commit_s: f64,
    /// How long a restore takes, relaunch included.
    pub restore_s: f64,
    /// Share of failures restored from here.
    pub failure_share: f64,
    /// Bytes per node this level needs.
    pub stored_bytes: f64,
}

/// What to do, and what it will cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Levels from near to far.
    pub levels: Vec<LevelPlan>,
    /// Share of the time that computes something new.
    pub efficiency: f64,
    /// Where the rest goes.
    pub breakdown: Breakdown,
    /// Nodes per group; 0 without a ring.
    pub group_k: u64,
    /// Shards per group; 0 without a ring.
    pub group_m: u64,
    /// Chance that the ring survives an incident that takes nodes down.
    pub ring_survival: f64,
    /// Codec by name, or `none`.
    pub codec: String,
    /// Pool per node.
    pub pool_bytes: f64,
    /// Ranks that share it.
    pub ranks_per_node: u64,
    /// Bytes the whole job needs on the global level.
    pub global_bytes: f64,
    /// Mean time between failures that was planned for.
    pub mtti_s: f64,
    /// Who fills the global level: an agent in the background, or the host.
    pub background: bool,
    /// What happens if an input is wrong.
    pub sensitivity: Vec<Sensitivity>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Plan {
    /// Work between two checkpoints of the nearest level.
    pub fn interval_s(&self) -> f64 {
        self.levels[0].interval_s
    }

    /// Checkpoints of the nearest level per checkpoint of the global one.
    pub fn local_per_global(&self) -> u64 {
        self.levels[self.levels.len() - 1].every
    }

    /// Memory for the pool of one rank, whole MiB.
    pub fn rank_pool_mib(&self) -> u64 {
        let bytes = self.pool_bytes / self.ranks_per_node as f64;
        (bytes / 1_048_576.0).ceil().max(1.0) as u64
    }

    /// The breakdown by name, largest parts of each kind by level.
    pub fn parts(&self) -> Vec<(String, f64)> {
        let mut parts = vec![("compute".to_owned(), self.breakdown.compute)];
        for (kind, shares) in [
            ("checkpoint", &self.breakdown.checkpoint),
            ("restore", &self.breakdown.restore),
            ("rerun", &self.breakdown.rerun),
        ] {
            for (level, &share) in self.levels.iter().zip(shares) {
                parts.push((format!("{kind}, {}", level.name), share));
            }
        }
        parts
    }
}

/// Plans a job.
pub fn plan(inputs: &Inputs) -> Result<Plan> {
    inputs.check()?;
    let chosen = Machine::best(inputs)?;
    let mut plan = described(inputs, &chosen);
    plan.sensitivity = sensitivity::cases(inputs, &chosen)?;
    Ok(plan)
}

fn described(inputs: &Inputs, chosen: &Chosen) -> Plan {
    let machine = &chosen.machine;
    let every = checkpoints_per_level(machine, &chosen.pattern);
    let names = machine.level_names();
    let levels = machine
        .hierarchy
        .levels
        .iter()
        .enumerate()
        .map(|(index, level)| LevelPlan {
            name: names[index],
            interval_s: every[index] as f64 * chosen.pattern.interval_s,
            every: every[index],
            commit_s: if inputs.background && index > 0 { 0.0 } else { level.commit_s },
            restore_s: level.restore_s,
            failure_share: level.share,
            stored_bytes: machine.stored_bytes(names[index], every[every.len() - 1]),
        })
        .collect();
    Plan {
        levels,
        efficiency: chosen.outcome.efficiency,
        breakdown: blocking_breakdown(inputs, &chosen.outcome.breakdown),
        group_k: machine.groups.map_or(0, |groups| groups.k()),
        group_m: machine.groups.map_or(0, |groups| groups.m()),
        ring_survival: machine.ring_survival,
        codec: machine.codec_name.clone(),
        pool_bytes: machine.pool_bytes,
        ranks_per_node: inputs.job.ranks_per_node,
        global_bytes: machine.stored_bytes("global", 1) * inputs.job.nodes as f64,
        mtti_s: inputs.failures.mtti_s,
        background: inputs.background,
        sensitivity: Vec::new(),
        notes: notes(inputs, chosen),
    }
}

/// With an agent only the nearest level blocks, whatever levels a checkpoint goes on to.
fn blocking_breakdown(inputs: &Inputs, breakdown: &Breakdown) -> Breakdown {
    let mut shown = breakdown.clone();
    if inputs.background {
        let all = shown.checkpoint.iter().sum();
        shown.checkpoint.fill(0.0);
        shown.checkpoint[0] = all;
    }
    shown
}

/// Every how many checkpoints one reaches each level.
fn checkpoints_per_level(machine: &Machine, pattern: &Pattern) -> Vec<u64> {
    let mut every = vec![1];
    for ratio in &pattern.every {
        every.push(every[every.len() - 1] * ratio);
    }
    if let Some(drained) = machine.drained() {
        every.push(every[every.len() - 1] * drained.units_per_drain(pattern));
    }
    every
}

fn notes(inputs: &Inputs, chosen: &Chosen) -> Vec<String> {
    let mut notes = Vec::new();
    let machine = &chosen.machine;
    if chosen.outcome.efficiency < 0.5 {
        notes.push("more than half of the time is lost: failures come too fast".to_owned());
    }
    if machine.groups.is_none() {
        notes.push("one node: no ring, node failures restore from the global level".to_owned());
    }
    let needed = machine.stored_bytes(
        "local",
        checkpoints_per_level(machine, &chosen.pattern)[machine.hierarchy.levels.len() - 1],
    ) + machine.groups.map_or(0.0, |_| machine.stored_bytes("ring", 1));
    if let Some(room) = inputs.local_bytes.filter(|room| *room < needed) {
        notes.push(format!(
            "local storage of {} is too small: {} are needed",
            crate::render::bytes(room),
            crate::render::bytes(needed)
        ));
    }
    if machine.pool_bytes < machine.changed_bytes() {
        notes.push("the pool is smaller than one checkpoint: part of it blocks".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests;
