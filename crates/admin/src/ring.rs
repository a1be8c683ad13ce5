//! Who protects whom, and what each loss of nodes would cost.
//!
//! Data: the record of level ring, which every node has, and the manifest's lengths -> nodes,
//! groups in the order of the ring, losses. No other store is needed.

use std::collections::BTreeMap;

use serde::Serialize;
use standfast::Manifest;
use standfast::ring::{self, Chance, GroupId, Topology, members_bytes};

use crate::error::{Error, Result};
use crate::place::OpenJob;

/// Sets of lost nodes that are drawn where there are too many for all.
const SAMPLES: u64 = 20_000;

/// The ring of a checkpoint, with the lengths of what it protects.
pub struct RingView {
    /// Nodes, groups and ranks.
    pub topology: Topology,
    /// Of every rank's member.
    bytes: Vec<u64>,
    /// Of every group's shards.
    shard_bytes: BTreeMap<GroupId, u64>,
}

/// A node and what its loss would cost.
#[derive(Debug, Serialize)]
pub struct NodeView {
    /// Its number.
    pub node: usize,
    /// Its name.
    pub name: String,
    /// Its sector.
    pub sector: usize,
    /// Its ranks.
    pub ranks: Vec<usize>,
    /// Bytes of its ranks' files.
    pub member_bytes: u64,
    /// Shards that it keeps.
    pub shards: usize,
    /// Their bytes.
    pub shard_bytes: u64,
    /// Bytes that others read and send to make all of it again.
    pub sent_bytes: u64,
    /// Whether its loss is survived.
    #[serde(rename = "survived")]
    pub is_survived: bool,
}

/// A group and its shards.
#[derive(Debug, Serialize)]
pub struct GroupView {
    /// Which.
    #[serde(flatten)]
    pub group: GroupId,
    /// The group whose nodes keep its shards.
    #[serde(skip)]
    pub next: GroupId,
    /// Ranks whose files it protects.
    pub members: Vec<usize>,
    /// Their nodes.
    pub member_nodes: Vec<String>,
    /// Ranks that keep its shards.
    pub keepers: Vec<usize>,
    /// Their nodes.
    pub keeper_nodes: Vec<String>,
    /// Length of a shard.
    pub shard_bytes: u64,
    /// Whether the loss of its whole sector is survived.
    #[serde(rename = "whole_survived")]
    pub is_survived: bool,
}

impl RingView {
    /// Reads the record of a checkpoint's ring.
    pub fn read(job: &OpenJob, manifest: &Manifest) -> Result<Self> {
        let none = || Error::NoRing(manifest.version);
        let topology = ring::read(&*job.store, manifest)?.ok_or_else(none)?;
        if topology.ranks() != manifest.ranks as usize {
            return Err(Error::RingRanks { of: topology.ranks(), ranks: manifest.ranks });
        }
        let bytes = members_bytes(manifest);
        let longest = |group| {
            let members = topology.members(group).into_iter().flatten();
            (group, members.map(|rank| bytes[rank]).max().unwrap_or(0))
        };
        let shard_bytes = topology.ring().map(longest).collect();
        Ok(Self { topology, bytes, shard_bytes })
    }

    /// Bytes of all ranks' files.
    pub fn member_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Bytes of all shards.
    pub fn shard_bytes(&self) -> u64 {
        let m = self.topology.shape().m as u64;
        self.shard_bytes.values().map(|bytes| bytes * m).sum()
    }

    /// Every node.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView> {
        (0..self.topology.nodes()).map(|node| self.node(node))
    }

    fn node(&self, node: usize) -> NodeView {
        let ranks = self.topology.ranks_of(node);
        let mut view = NodeView {
            node,
            name: self.topology.name_of(node),
            sector: self.topology.place_of(node).0,
            ranks: ranks.to_vec(),
            member_bytes: 0,
            shards: 0,
            shard_bytes: 0,
            sent_bytes: 0,
            is_survived: self.topology.survives(&[node]).is_ok_and(|survives| survives),
        };
        for &rank in ranks {
            let k = self.topology.members(self.topology.group_of(rank).0).len() as u64;
            view.member_bytes += self.bytes[rank];
            view.sent_bytes += k * self.bytes[rank];
            for piece in self.topology.kept_by(rank) {
                let k = self.topology.members(piece.group).len() as u64;
                let bytes = self.shard_bytes[&piece.group];
                view.shards += 1;
                view.shard_bytes += bytes;
                view.sent_bytes += k * bytes;
            }
        }
        view
    }

    /// Every group, in the order of the ring.
    pub fn groups(&self) -> impl Iterator<Item = GroupView> {
        self.topology.ring().map(|group| self.group(group))
    }

    fn group(&self, group: GroupId) -> GroupView {
        let topology = &self.topology;
        let members: Vec<usize> = topology.members(group).into_iter().flatten().collect();
        let keepers: Vec<usize> =
            (0..topology.shape().m).map(|row| topology.keeper(group, row)).collect();
        let names = |ranks: &[usize]| -> Vec<String> {
            ranks.iter().map(|rank| topology.name_of(topology.node_of(*rank))).collect()
        };
        let whole: Vec<usize> = topology.sector_nodes(group.sector as usize).collect();
        GroupView {
            group,
            next: topology.next(group),
            member_nodes: names(&members),
            keeper_nodes: names(&keepers),
            members,
            keepers,
            shard_bytes: self.shard_bytes[&group],
            is_survived: topology.survives(&whole).is_ok_and(|survives| survives),
        }
    }

    /// How likely losses of 1, 2, ... nodes at once are survived.
    pub fn losses(&self) -> impl Iterator<Item = (usize, Chance)> {
        let nodes = self.topology.nodes();
        let most = (nodes / 2).max(1).min(self.topology.worst_case() + 4).min(nodes);
        (1..=most).map(|lost| (lost, self.topology.chance(lost, SAMPLES, 1)))
    }
}
