//! Streams of failures: when the job is struck, and which level can still repair it.
//!
//! Data: [`FailureModel`] and a seed -> [`Strikes`] -> the simulator.
//!
//! Lifetimes are exponential for the whole job, or Weibull for every node with replacement.
//! Classes come from fixed shares, or from incidents that take down several nodes at once, whose
//! damage is judged on the ring of groups.
//!
//! Why a heap of next failures: a hundred thousand nodes mostly do nothing. Only nodes that fail
//! within the horizon are kept, and time jumps from strike to strike.
//!
//! Invariants:
//! - Strike times never go back.
//! - A class is an index into the hierarchy's levels.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::random::Random;
use standfast_model::bounds::{at_least_one, positive, share};
use standfast_model::ring::{Bursts, Groups};
use standfast_model::{ModelError, Result};

/// One failure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Strike {
    /// Wall-clock time.
    pub at_s: f64,
    /// Nearest level that still has the data.
    pub class: usize,
}

/// How long nodes live.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lifetimes {
    /// The job as a whole is memoryless.
    Exponential,
    /// Every node draws Weibull lifetimes; below 1 the young fail most, above 1 the old.
    Weibull {
        /// Number of nodes.
        nodes: u64,
        /// Shape of the distribution.
        shape: f64,
    },
}

/// What decides the class of a failure.
#[derive(Debug, Clone, PartialEq)]
pub enum Classes {
    /// Fixed shares, one per level.
    Shares(Vec<f64>),
    /// Incidents on the ring: class 0 is a failed process, 1 what the ring repairs, 2 the rest.
    Incidents {
        /// Share of failures that leave every node's data in place.
        process_share: f64,
        /// How many nodes an incident takes down.
        bursts: Bursts,
        /// The groups that protect each other.
        groups: Groups,
        /// Whether the nodes of an incident are neighbours or scattered.
        adjacent: bool,
    },
}

/// A complete description of how a job is struck.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureModel {
    mtti_s: f64,
    lifetimes: Lifetimes,
    classes: Classes,
}

impl FailureModel {
    /// `mtti_s` is the long-run mean time between strikes of the whole job.
    pub fn new(mtti_s: f64, lifetimes: Lifetimes, classes: Classes) -> Result<Self> {
        positive("mtti_s", mtti_s)?;
        if let Lifetimes::Weibull { nodes, shape } = lifetimes {
            at_least_one("nodes", nodes)?;
            positive("shape", shape)?;
        }
        match &classes {
            Classes::Shares(shares) => check_shares(shares)?,
            Classes::Incidents { process_share, .. } => {
                share("process_share", *process_share)?;
            }
        }
        Ok(Self { mtti_s, lifetimes, classes })
    }

    /// Number of levels the classes refer to.
    pub fn levels(&self) -> usize {
        match &self.classes {
            Classes::Shares(shares) => shares.len(),
            Classes::Incidents { .. } => 3,
        }
    }

    /// The stream of strikes for one seed, up to and a little beyond `horizon_s`.
    pub fn strikes(&self, seed: u64, horizon_s: f64) -> Strikes {
        let mut random = Random::new(seed);
        let clock = match self.lifetimes {
            Lifetimes::Exponential => Clock::Memoryless { now_s: 0.0 },
            Lifetimes::Weibull { nodes, shape } => {
                // Mean lifetime of a node is the job's MTTI times the node count.
                let scale = self.mtti_s * nodes as f64 / gamma(1.0 + 1.0 / shape);
                let mut due = BinaryHeap::new();
                for _ in 0..nodes {
                    let at = random.weibull(shape, scale);
                    if at <= horizon_s {
                        due.push(Reverse(at.to_bits()));
                    }
                }
                Clock::Nodes { due, shape, scale, horizon_s }
            }
        };
        Strikes { mtti_s: self.mtti_s, classes: self.classes.clone(), random, clock }
    }
}

fn check_shares(shares: &[f64]) -> Result<()> {
    for &part in shares {
        share("failure_share", part)?;
    }
    let total: f64 = shares.iter().sum();
    if shares.is_empty() || (total - 1.0).abs() > 1e-9 {
        return Err(ModelError::Field {
            field: "failure_share".to_owned(),
            rule: "1 when summed over the levels",
            value: total,
        });
    }
    Ok(())
}

#[derive(Debug)]
enum Clock {
    Memoryless {
        now_s: f64,
    },
    Nodes {
        /// Bits of non-negative times sort like the times.
        due: BinaryHeap<Reverse<u64>>,
        shape: f64,
        scale: f64,
        horizon_s: f64,
    },
}

/// An endless stream of strikes; past the horizon of a node model it falls silent.
#[derive(Debug)]
pub struct Strikes {
    mtti_s: f64,
    classes: Classes,
    random: Random,
    clock: Clock,
}

impl Strikes {
    /// The next strike.
    pub fn next_strike(&mut self) -> Strike {
        let at_s = match &mut self.clock {
            Clock::Memoryless { now_s } => {
                *now_s += self.random.exponential(self.mtti_s);
                *now_s
            }
            Clock::Nodes { due, shape, scale, horizon_s } => match due.pop() {
                None => f64::INFINITY,
                Some(Reverse(bits)) => {
                    let at = f64::from_bits(bits);
                    // The replacement node starts its own life.
                    let again = at + self.random.weibull(*shape, *scale);
                    if again <= *horizon_s {
                        due.push(Reverse(again.to_bits()));
                    }
                    at
                }
            },
        };
        Strike { at_s, class: self.class() }
    }

    fn class(&mut self) -> usize {
        match &self.classes {
            Classes::Shares(shares) => self.random.pick(shares),
            Classes::Incidents { process_share, bursts, groups, adjacent } => {
                if self.random.unit() < *process_share {
                    return 0;
                }
                let count = self.random.pick(bursts.chances()) as u64 + 1;
                let nodes = hit_nodes(&mut self.random, groups.nodes(), count, *adjacent);
                let survived = groups.survives(&nodes).expect("drawn nodes belong to the job");
                if survived { 1 } else { 2 }
            }
        }
    }
}

fn hit_nodes(random: &mut Random, nodes: u64, count: u64, adjacent: bool) -> Vec<u64> {
    let count = count.min(nodes);
    if adjacent {
        let first = random.below(nodes);
        return (0..count).map(|step| (first + step) % nodes).collect();
    }
    let mut hit = Vec::with_capacity(count as usize);
    while (hit.len() as u64) < count {
        let node = random.below(nodes);
        if !hit.contains(&node) {
            hit.push(node);
        }
    }
    hit
}

/// The gamma function for arguments above 1, by Lanczos' series.
fn gamma(x: f64) -> f64 {
    const SERIES: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let sum: f64 = SERIES[0] + (1..9).map(|i| SERIES[i] / (x + i as f64)).sum::<f64>();
    (2.0 * std::f64::consts::PI).sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

#[cfg(test)]
mod tests;
