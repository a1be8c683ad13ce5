//! Who protects whom: nodes in sectors, ranks in groups, groups on a ring.
//!
//! Data: the node of every rank -> [`Topology::new`] -> groups, members, keepers.
//!
//! ```text
//! nodes   0 1 2 3 | 4 5 6 7 | 8 9 10      sectors of nearly equal size, never less than k
//! level 0   G00   |   G01   |   G02       group: the first rank of every node of a sector
//! level 1   G10   |   G11   |   G12       group: the second rank of every node
//! ring    G00 - G01 - G02 - G10 - G11 - G12 - G00
//! ```
//! A group's members sit on different nodes, so that a lost node costs it one member. The nodes of
//! the next group on the ring keep its `m` shards. Neighbours on the ring are of different sectors
//! as soon as there are two, so a group and its shards do not fail together. A lone sector keeps
//! its own shards and survives half as many losses.
//!
//! Unequal ranks: a node with fewer ranks has no member in the higher groups (an empty column of
//! the code), and its ranks take turns in keeping shards.
//!
//! Invariants:
//! - Every rank is a member of exactly one group.
//! - The shards of a group lie on different nodes.
//! - The same nodes give the same topology on every rank.

mod discover;
mod ids;
mod survive;
mod wire;

pub use discover::{NODE_NAME_BYTES_MAX, Nodes, discover};
pub use ids::{GroupId, Piece};
pub use survive::{Chance, Outlook};
pub use wire::TOPOLOGY_BYTES_MAX;

use crate::code::{Code, Family, PIECES_MAX};
use crate::error::{Error, Result};

/// Most ranks of a job.
pub const RANKS_MAX: usize = 1 << 22;

/// Which nodes of the next sector keep a group's `m` shards, where it has more than `m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Spread {
    /// The first `m`: survives the most, and is what the planner counts.
    #[default]
    First,
    /// The next `m` for each level in turn: the same load for all nodes that run several ranks.
    Rotated,
}

/// How nodes are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shape {
    /// Least nodes of a sector: members of a group. Fewer where the job has fewer nodes.
    pub k: usize,
    /// Shards of a group, at most `k`. Fewer where the job has fewer nodes.
    pub m: usize,
    /// Who keeps them.
    pub spread: Spread,
    /// How they are computed.
    pub family: Family,
}

impl Shape {
    /// As many shards as members: any `k` nodes may be lost, and half of all when well spread.
    pub fn full(k: usize) -> Self {
        Self { k, m: k, spread: Spread::default(), family: Family::default() }
    }

    /// `m` shards for `k` members.
    pub fn new(k: usize, m: usize) -> Self {
        Self { m, ..Self::full(k) }
    }
}

/// Where a rank is.
#[derive(Clone, Copy, Debug)]
struct Seat {
    node: usize,
    /// Which of the node's ranks.
    level: usize,
}

/// The nodes of a job, grouped.
#[derive(Clone, Debug)]
pub struct Topology {
    shape: Shape,
    seats: Vec<Seat>,
    /// The ranks of each node, ascending.
    nodes: Vec<Vec<usize>>,
    /// What the nodes are called; empty where nobody knows.
    names: Vec<String>,
    levels: usize,
}

impl Topology {
    /// Groups the nodes of a job; `node_of[rank]` numbers them from 0, without gaps, in the order
    /// of their first ranks, as [`discover`] does.
    pub fn new(node_of: &[u32], shape: Shape) -> Result<Self> {
        if node_of.is_empty() || node_of.len() > RANKS_MAX {
            return Err(Error::invalid(format!("{} ranks: 1 to {RANKS_MAX}", node_of.len())));
        }
        if shape.k == 0 || shape.m == 0 || shape.m > shape.k {
            let Shape { k, m, .. } = shape;
            return Err(Error::invalid(format!("{m} shards for {k} members: 1 to {k} shards")));
        }
        let mut nodes: Vec<Vec<usize>> = Vec::new();
        let mut seats = Vec::with_capacity(node_of.len());
        for (rank, &node) in node_of.iter().enumerate() {
            let node = node as usize;
            if node > nodes.len() {
                return Err(Error::invalid(format!(
                    "no rank below {rank} is on node {}",
                    node - 1
                )));
            }
            if node == nodes.len() {
                nodes.push(Vec::new());
            }
            seats.push(Seat { node, level: nodes[node].len() });
            nodes[node].push(rank);
        }
        let levels = nodes.iter().map(Vec::len).max().expect("there is a node");
        let k = shape.k.min(nodes.len());
        let shape = Shape { k, m: shape.m.min(k), ..shape };
        let topology = Self { shape, seats, nodes, names: Vec::new(), levels };
        if topology.sector_nodes(0).len() > PIECES_MAX {
            let members = topology.sector_nodes(0).len();
            return Err(Error::invalid(format!("groups of {members}: {PIECES_MAX} at most")));
        }
        Ok(topology)
    }

    /// Groups the nodes that a job has [found](discover), and keeps their names.
    pub fn of_job(nodes: Nodes, shape: Shape) -> Result<Self> {
        Self::new(&nodes.of, shape)?.with_names(nodes.names)
    }

    /// The same nodes with another number of shards a group, at most as many as now.
    pub fn with_shards(&self, m: usize) -> Self {
        let m = m.clamp(1, self.shape.m);
        Self { shape: Shape { m, ..self.shape }, ..self.clone() }
    }

    fn with_names(mut self, names: Vec<String>) -> Result<Self> {
        let is_name = |name: &String| (1..=NODE_NAME_BYTES_MAX).contains(&name.len());
        if !names.is_empty() && (names.len() != self.nodes() || !names.iter().all(is_name)) {
            return Err(Error::invalid("every node needs a name"));
        }
        self.names = names;
        Ok(self)
    }

    /// One rank on each of so many nodes.
    pub fn of_nodes(nodes: usize, shape: Shape) -> Result<Self> {
        let node_of: Vec<u32> = (0..nodes.min(RANKS_MAX + 1) as u32).collect();
        Self::new(&node_of, shape)
    }

    /// The shape, as far as the job has nodes for it.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Ranks of the job.
    pub fn ranks(&self) -> usize {
        self.seats.len()
    }

    /// Nodes of the job.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The ranks on a node.
    pub fn ranks_of(&self, node: usize) -> &[usize] {
        &self.nodes[node]
    }

    /// What a node is called: its name, or its number where nobody knows.
    pub fn name_of(&self, node: usize) -> String {
        self.names.get(node).cloned().unwrap_or_else(|| format!("node {node}"))
    }

    /// The node of a rank.
    pub fn node_of(&self, rank: usize) -> usize {
        self.seats[rank].node
    }

    /// Most ranks on a node: groups of a sector.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Sectors: stretches of at least `k` nodes.
    pub fn sectors(&self) -> usize {
        self.nodes.len() / self.shape.k
    }

    /// The nodes of a sector. The first ones have a node more where it does not come out even.
    pub fn sector_nodes(&self, sector: usize) -> std::ops::Range<usize> {
        let (least, larger) = self.sector_sizes();
        let start = sector * least + sector.min(larger);
        start..start + least + usize::from(sector < larger)
    }

    fn sector_sizes(&self) -> (usize, usize) {
        (self.nodes.len() / self.sectors(), self.nodes.len() % self.sectors())
    }

    /// The sector of a node, and the node's place in it.
    pub fn place_of(&self, node: usize) -> (usize, usize) {
        let (least, larger) = self.sector_sizes();
        let wide = larger * (least + 1);
        match node.checked_sub(wide) {
            None => (node / (least + 1), node % (least + 1)),
            Some(beyond) => (larger + beyond / least, beyond % least),
        }
    }

    /// The group of a rank, and the rank's place in it.
    pub fn group_of(&self, rank: usize) -> (GroupId, usize) {
        let Seat { node, level } = self.seats[rank];
        let (sector, place) = self.place_of(node);
        (GroupId { sector: sector as u32, level: level as u32 }, place)
    }

    /// Whether there is such a group: some node of the sector has so many ranks.
    pub fn has_group(&self, group: GroupId) -> bool {
        let (sector, level) = (group.sector as usize, group.level as usize);
        sector < self.sectors()
            && self.sector_nodes(sector).any(|node| self.nodes[node].len() > level)
    }

    /// The group's ranks by place; `None` where a node has no such rank.
    pub fn members(&self, group: GroupId) -> Vec<Option<usize>> {
        let nodes = self.sector_nodes(group.sector as usize);
        nodes.map(|node| self.nodes[node].get(group.level as usize).copied()).collect()
    }

    /// The code of a group.
    pub fn code(&self, group: GroupId) -> Result<Code> {
        let members = self.sector_nodes(group.sector as usize).len();
        Code::new(self.shape.family, members, self.shape.m)
    }

    /// All groups in the order of the ring.
    pub fn ring(&self) -> impl Iterator<Item = GroupId> {
        let all = (0..self.levels as u32).flat_map(|level| {
            (0..self.sectors() as u32).map(move |sector| GroupId { sector, level })
        });
        all.filter(|group| self.has_group(*group))
    }

    /// The next place on the ring: whose nodes keep this group's shards.
    pub fn next(&self, group: GroupId) -> GroupId {
        let sector = (group.sector + 1) % self.sectors() as u32;
        let level = if sector == 0 { group.level + 1 } else { group.level };
        GroupId { sector, level: level % self.levels as u32 }
    }

    /// The node that keeps a shard.
    pub fn keeper_node(&self, group: GroupId, row: usize) -> usize {
        let nodes = self.sector_nodes(self.next(group).sector as usize);
        nodes.start + (self.shift(group) + row) % nodes.len()
    }

    /// The rank that keeps a shard: the one at the next group's level, or in its turn.
    pub fn keeper(&self, group: GroupId, row: usize) -> usize {
        let ranks = &self.nodes[self.keeper_node(group, row)];
        ranks[self.next(group).level as usize % ranks.len()]
    }

    /// How many shards the keeper of this one takes before it, in one round of messages.
    pub(crate) fn turn(&self, group: GroupId, row: usize) -> usize {
        let ranks = &self.nodes[self.keeper_node(group, row)];
        self.next(group).level as usize / ranks.len()
    }

    /// The shards that a rank keeps, in the order of the ring.
    pub fn kept_by(&self, rank: usize) -> Vec<Piece> {
        let Seat { node, level } = self.seats[rank];
        let (sector, place) = self.place_of(node);
        let before = (sector + self.sectors() - 1) % self.sectors();
        let size = self.sector_nodes(sector).len();
        let k = self.sector_nodes(before).len();
        let groups = (0..self.levels as u32)
            .map(|level| GroupId { sector: before as u32, level })
            .filter(|group| self.next(*group).level as usize % self.nodes[node].len() == level)
            .filter(|group| self.has_group(*group));
        let kept = groups.filter_map(|group| {
            let row = (place + size - self.shift(group) % size) % size;
            (row < self.shape.m).then_some(Piece { group, index: (k + row) as u32 })
        });
        kept.collect()
    }

    fn shift(&self, group: GroupId) -> usize {
        match self.shape.spread {
            Spread::First => 0,
            Spread::Rotated => group.level as usize * self.shape.m,
        }
    }
}

#[cfg(test)]
mod tests;
