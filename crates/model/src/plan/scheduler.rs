//! Node count, and ranks on each node, from the scheduler's environment.
//!
//! Data: a map of variables -> [`Allocation`]; nothing is read from the process itself.
//!
//! Invariants:
//! - A variable that is there but makes no sense is an error, not a silent default.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::error::{ModelError, Result};

/// What the scheduler says about the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Allocation {
    /// Nodes of the job.
    pub nodes: u64,
    /// The variable that said so.
    pub source: &'static str,
    /// Ranks on a node, the most where they differ, and the variable that said so.
    pub ranks_per_node: Option<(u64, &'static str)>,
}

/// Variables that hold a plain node count: Slurm, PBS.
const COUNTS: [&str; 3] = ["SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PBS_NUM_NODES"];

/// Variables that hold ranks per node, as a count or as a list of counts.
const RANKS: [&str; 3] = ["SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "PBS_NUM_PPN"];

/// Finds the nodes of the job; none outside one.
pub fn allocation(environment: &BTreeMap<String, String>) -> Result<Option<Allocation>> {
    let Some((nodes, source)) = nodes(environment)? else { return Ok(None) };
    let mut ranks_per_node = None;
    if let Some((source, text)) =
        RANKS.iter().find_map(|name| Some((*name, environment.get(*name)?)))
    {
        let most = most_ranks(text).ok_or_else(|| {
            let reason = format!("{source} is {text:?}, which gives no count of ranks");
            ModelError::Incomplete { input: "scheduler environment", reason }
        })?;
        ranks_per_node = Some((most, source));
    }
    Ok(Some(Allocation { nodes, source, ranks_per_node }))
}

/// The largest count of a list such as `16(x3),8`.
fn most_ranks(text: &str) -> Option<u64> {
    let count = |part: &str| part.split('(').next()?.trim().parse().ok().filter(|count| *count > 0);
    text.split(',').map(count).collect::<Option<Vec<u64>>>()?.into_iter().max()
}

fn nodes(environment: &BTreeMap<String, String>) -> Result<Option<(u64, &'static str)>> {
    for source in COUNTS {
        if let Some(text) = environment.get(source) {
            let nodes = text.trim().parse().ok().filter(|nodes| *nodes > 0);
            return Ok(Some((nodes.ok_or_else(|| bad(source, text))?, source)));
        }
    }
    // LSF names each host with its slots, or each slot with its host.
    if let Some(text) = environment.get("LSB_MCPU_HOSTS") {
        let words: Vec<&str> = text.split_whitespace().collect();
        let slots = words.iter().skip(1).step_by(2);
        let sound = !words.is_empty()
            && words.len().is_multiple_of(2)
            && slots.into_iter().all(|slot| slot.parse::<u64>().is_ok());
        if !sound {
            return Err(bad("LSB_MCPU_HOSTS", text));
        }
        let nodes = words.iter().step_by(2).collect::<BTreeSet<_>>().len() as u64;
        return Ok(Some((nodes, "LSB_MCPU_HOSTS")));
    }
    if let Some(text) = environment.get("LSB_HOSTS") {
        let nodes = text.split_whitespace().collect::<BTreeSet<_>>().len() as u64;
        if nodes == 0 {
            return Err(bad("LSB_HOSTS", text));
        }
        return Ok(Some((nodes, "LSB_HOSTS")));
    }
    Ok(None)
}

fn bad(variable: &str, text: &str) -> ModelError {
    ModelError::Incomplete {
        input: "scheduler environment",
        reason: format!("{variable} is {text:?}, which gives no node count"),
    }
}

#[cfg(test)]
mod tests;
