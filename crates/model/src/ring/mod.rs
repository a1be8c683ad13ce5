//! Shards on a ring of node groups: what encoding costs, which failures it survives, how likely.
//!
//! Data: [`StarCost`] -> encoding time and block size; [`Groups`] -> survivable failures.
//!
//! Nodes form groups of `k` (the last few groups take one node more when `k` does not divide the
//! node count). A group encodes its `k` checkpoints into `m` shards, which the first `m` nodes of
//! the next group on the ring keep. A group that lost `a` checkpoints and `x` of its shards is
//! whole again if `a + x <= m`.
//!
//! Invariants:
//! - `1 <= m <= k <= nodes`.
//! - Any `m` failed nodes are survived where there are two groups or more.

mod bursts;
mod star;
mod transfer;

pub use bursts::Bursts;
pub use star::StarCost;
pub use transfer::choose;

use std::collections::BTreeMap;

use transfer::Transfer;

use crate::bounds::at_least_one;
use crate::error::{ModelError, Result};

/// Nodes that an incident takes down on the average, where nobody has counted.
const NODES_PER_INCIDENT: f64 = 1.2;
/// Share of incidents that groups of the usual size survive.
const SURVIVAL: f64 = 0.9999;
/// The usual size, and the largest: 98 % of the incidents that the paper counted took fewer nodes.
const GROUP_USUAL: u64 = 4;
const GROUP_MAX: u64 = 16;

/// The size of groups for a job of so many nodes that nobody has told more of, with as many shards
/// as members: the usual one or larger, until nearly all incidents are survived, but two groups
/// wherever there are two nodes.
pub fn usual_group(nodes: u64) -> u64 {
    let largest = (nodes / 2).clamp(1, GROUP_MAX);
    let least = GROUP_USUAL.min(largest);
    let bursts = Bursts::geometric(NODES_PER_INCIDENT).expect("a sound mean");
    let survives = |k: &u64| {
        Groups::new(nodes, *k, *k).is_ok_and(|groups| bursts.survival(&groups) >= SURVIVAL)
    };
    (least..=largest).find(survives).unwrap_or(largest)
}

/// Groups of nodes with shards on the next group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    nodes: u64,
    k: u64,
    m: u64,
}

impl Groups {
    /// `k` nodes a group, `m` shards a group.
    pub fn new(nodes: u64, k: u64, m: u64) -> Result<Self> {
        at_least_one("nodes", nodes)?;
        at_least_one("m", m)?;
        at_least_one("k", k)?;
        let pair = |field, value: u64, other, limit: u64, rule| ModelError::Pair {
            field,
            value: value as f64,
            other,
            limit: limit as f64,
            rule,
        };
        if m > k {
            let rule = "a group cannot keep more shards than it has nodes";
            return Err(pair("m", m, "k", k, rule));
        }
        if k > nodes {
            let rule = "a group cannot be larger than the job";
            return Err(pair("k", k, "nodes", nodes, rule));
        }
        Ok(Self { nodes, k, m })
    }

    /// Nodes of the job.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Nodes per group, the smallest ones.
    pub fn k(&self) -> u64 {
        self.k
    }

    /// Shards per group.
    pub fn m(&self) -> u64 {
        self.m
    }

    /// Number of groups on the ring.
    pub fn count(&self) -> u64 {
        self.nodes / self.k
    }

    /// Smallest group size, and how many groups, the first ones, have one node more.
    fn sizes(&self) -> (u64, u64) {
        (self.nodes / self.count(), self.nodes % self.count())
    }

    /// Group of a node, and the node's place in it.
    fn place(&self, node: u64) -> (u64, u64) {
        let (base, larger) = self.sizes();
        let wide = larger * (base + 1);
        if node < wide {
            (node / (base + 1), node % (base + 1))
        } else {
            (larger + (node - wide) / base, (node - wide) % base)
        }
    }

    /// Failures that are survived whichever nodes they hit. A lone group keeps its own shards, so
    /// that a node may take a checkpoint and a shard with it.
    pub fn worst_case(&self) -> u64 {
        if self.count() == 1 { self.m / 2 } else { self.m }
    }

    /// Whether a given set of failed nodes, each named once, is survived.
    pub fn survives(&self, failed: &[u64]) -> Result<bool> {
        let mut lost: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for &node in failed {
            if node >= self.nodes {
                return Err(ModelError::Pair {
                    field: "failed node",
                    value: node as f64,
                    other: "nodes",
                    limit: self.nodes as f64,
                    rule: "nodes are counted from 0",
                });
            }
            let (group, place) = self.place(node);
            let entry = lost.entry(group).or_default();
            entry.0 += 1;
            entry.1 += u64::from(place < self.m);
        }
        Ok(lost.iter().all(|(group, &(checkpoints, _))| {
            let next = (group + 1) % self.count();
            let shards = lost.get(&next).map_or(0, |&(_, shards)| shards);
            checkpoints + shards <= self.m
        }))
    }

    /// Chance to survive `failures` simultaneous node failures, any set being equally likely.
    pub fn survival(&self, failures: u64) -> f64 {
        if failures <= self.worst_case() {
            return 1.0;
        }
        self.survivals(failures)[failures as usize]
    }

    /// The chances for 0 to `failures_max` failures, all from one matrix.
    fn survivals(&self, failures_max: u64) -> Vec<f64> {
        let degree = failures_max.min(self.nodes) as usize;
        let (base, larger) = self.sizes();
        let usual = Transfer::of_group(base, self.m, degree).power(self.count() - larger);
        let all = if larger == 0 {
            usual
        } else {
            usual.times(&Transfer::of_group(base + 1, self.m, degree).power(larger))
        };
        (0..=failures_max)
            .map(|failures| match failures {
                f if f <= self.worst_case() => 1.0,
                f if f > self.nodes => 0.0,
                f => (all.trace(f as usize) / choose(self.nodes, f)).clamp(0.0, 1.0),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
