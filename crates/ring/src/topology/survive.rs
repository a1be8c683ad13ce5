//! Which losses of nodes are survived, how likely, and what to do about one.

use std::collections::BTreeSet;

use super::{GroupId, Spread, Topology};
use crate::error::{Error, Result};

/// Sets of failed nodes that are counted one by one; beyond that they are drawn.
const COUNTED_MAX: f64 = 200_000.0;

/// How likely a loss is survived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    /// The share of sets of so many nodes that are survived.
    pub survived: f64,
    /// Sets that were looked at: all of them, or as many as were asked for.
    pub sets: u64,
    /// Whether all were.
    pub exact: bool,
}

/// What can be done after nodes have failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Nothing is lost.
    Local,
    /// The nodes that are left bring everything back; no node needs to be repaired.
    Fast,
    /// These nodes must come back with their disks; what is then still lost is decoded.
    Slow {
        /// As few as possible.
        repair: Vec<usize>,
    },
    /// Disks that are gone for good have taken too much with them.
    Lost {
        /// A group that cannot be brought back.
        group: GroupId,
        /// Its members that are gone.
        members: usize,
        /// Its shards that are left.
        shards: usize,
    },
}

impl Topology {
    /// Lost nodes that are survived whichever they are.
    pub fn worst_case(&self) -> usize {
        if self.sectors() == 1 { self.shape.m / 2 } else { self.shape.m }
    }

    /// What is survived, in words that follow "survives".
    pub fn promise(&self) -> String {
        let (nodes, k, m) = (self.nodes(), self.shape.k, self.shape.m);
        match (self.sectors(), self.worst_case()) {
            _ if nodes == 1 => "no loss of its only node: the ring needs a second one".into(),
            (1, 0) => format!(
                "the loss of some of its {nodes} nodes, of no certain one: they are one group, \
                 which keeps its own {}; {} nodes make two groups",
                shards(m),
                2 * k
            ),
            (1, any) => format!(
                "the loss of any {any} of its {nodes} nodes; they are one group, which keeps its \
                 own shards, and {} nodes would make two groups that survive any {m}",
                2 * k
            ),
            (_, any) if m == k => format!(
                "the loss of any {any} of its {nodes} nodes, of a whole group where its \
                 neighbours stand, of half of all where they are well spread"
            ),
            (_, any) => format!("the loss of any {any} of its {nodes} nodes"),
        }
    }

    /// Whether everything survives the loss of these nodes.
    pub fn survives(&self, failed: &[usize]) -> Result<bool> {
        Ok(self.first_lost(&self.failed_set(failed)?).is_none())
    }

    /// The chance that a loss of so many nodes is survived, all sets of nodes being equally
    /// likely. Counted where there are few, else drawn `samples` times from `seed`.
    pub fn chance(&self, failures: usize, samples: u64, seed: u64) -> Chance {
        if failures > self.nodes() {
            return Chance { survived: 0.0, sets: 0, exact: true };
        }
        if choose(self.nodes(), failures) <= COUNTED_MAX {
            return self.counted(failures);
        }
        let mut draw = Draw(seed);
        let survived =
            (0..samples).filter(|_| self.survives_set(&draw.set(self.nodes(), failures)));
        let survived = survived.count() as f64 / samples.max(1) as f64;
        Chance { survived, sets: samples, exact: false }
    }

    /// What can be done when `failed` nodes do not answer, of which `wiped` have lost their disks.
    pub fn outlook(&self, failed: &[usize], wiped: &[usize]) -> Result<Outlook> {
        let (mut out, wiped) = (self.failed_set(failed)?, self.failed_set(wiped)?);
        out.extend(&wiped);
        if out.is_empty() {
            return Ok(Outlook::Local);
        }
        if self.first_lost(&out).is_none() {
            return Ok(Outlook::Fast);
        }
        if let Some((group, members, shards)) = self.first_lost(&wiped) {
            return Ok(Outlook::Lost { group, members, shards });
        }
        // Leave out of the repairs whatever can stay away.
        let mut away = wiped.clone();
        let mut repair = Vec::new();
        for node in out.difference(&wiped) {
            away.insert(*node);
            if self.first_lost(&away).is_some() {
                away.remove(node);
                repair.push(*node);
            }
        }
        Ok(Outlook::Slow { repair })
    }

    fn counted(&self, failures: usize) -> Chance {
        let (mut survived, mut sets) = (0u64, 0u64);
        let mut set: Vec<usize> = (0..failures).collect();
        loop {
            sets += 1;
            survived += u64::from(self.survives_set(&set.iter().copied().collect()));
            if !next_set(&mut set, self.nodes()) {
                return Chance { survived: survived as f64 / sets as f64, sets, exact: true };
            }
        }
    }

    fn survives_set(&self, failed: &BTreeSet<usize>) -> bool {
        self.first_lost(failed).is_none()
    }

    fn failed_set(&self, failed: &[usize]) -> Result<BTreeSet<usize>> {
        match failed.iter().find(|node| **node >= self.nodes()) {
            Some(node) => Err(Error::invalid(format!("node {node} of {}", self.nodes()))),
            None => Ok(failed.iter().copied().collect()),
        }
    }

    /// A group with more members lost than shards left: its members lost, its shards left.
    fn first_lost(&self, failed: &BTreeSet<usize>) -> Option<(GroupId, usize, usize)> {
        let sectors: BTreeSet<usize> = failed.iter().map(|&node| self.place_of(node).0).collect();
        // Every node has a first rank, so no group loses more than that of the first level; only
        // where the keepers change with the level can a higher one fare worse.
        let levels = match self.shape.spread {
            Spread::First => 1,
            Spread::Rotated => self.levels,
        };
        let groups = sectors.into_iter().flat_map(|sector| {
            (0..levels as u32).map(move |level| GroupId { sector: sector as u32, level })
        });
        groups.map(|group| self.losses(group, failed)).find(|(_, lost, left)| lost > left)
    }

    fn losses(&self, group: GroupId, failed: &BTreeSet<usize>) -> (GroupId, usize, usize) {
        let nodes = self.sector_nodes(group.sector as usize);
        let holds = |node: &&usize| self.nodes[**node].len() > group.level as usize;
        let lost = failed.range(nodes).filter(holds).count();
        let kept = |row: &usize| !failed.contains(&self.keeper_node(group, *row));
        (group, lost, (0..self.shape.m).filter(kept).count())
    }
}

fn shards(count: usize) -> String {
    if count == 1 { "shard".into() } else { format!("{count} shards") }
}

/// How many sets of `k` there are among `n`.
fn choose(n: usize, k: usize) -> f64 {
    (0..k.min(n - k)).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}

/// The next set in order; false after the last.
fn next_set(set: &mut [usize], n: usize) -> bool {
    let k = set.len();
    let Some(at) = (0..k).rev().find(|&at| set[at] < n - k + at) else { return false };
    set[at] += 1;
    for later in at + 1..k {
        set[later] = set[later - 1] + 1;
    }
    true
}

/// Draws sets of nodes, the same for the same seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * n as u128) >> 64) as usize
    }

    /// By Floyd's method: every set is equally likely.
    fn set(&mut self, n: usize, k: usize) -> BTreeSet<usize> {
        let mut set = BTreeSet::new();
        for limit in n - k..n {
            let drawn = self.below(limit + 1);
            if !set.insert(drawn) {
                set.insert(limit);
            }
        }
        set
    }
}
