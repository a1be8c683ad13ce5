//! Who gives what to whom, decided from claims alone.

use std::collections::{BTreeMap, BTreeSet};

use super::{Claim, ShardClaim};
use crate::error::Error;
use crate::topology::{GroupId, Piece, Topology};

/// A piece and the rank of the new job that holds it or gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which piece.
    pub piece: Piece,
    /// `None` for an empty member, which nobody needs to hold.
    pub rank: Option<usize>,
}

/// What a group gives and gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPlan {
    /// Which group.
    pub group: GroupId,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Lengths of its members.
    pub member_bytes: Vec<u64>,
    /// As many pieces as the group has members.
    pub sources: Vec<Place>,
    /// Members that are lost or elsewhere, and shards that are lost.
    pub targets: Vec<Place>,
    /// A shard whose table tells what every member must be.
    pub witness: Option<Place>,
}

/// A group that cannot be brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLoss {
    /// Which group.
    pub group: GroupId,
    /// Places of its members that are lost.
    pub members: Vec<usize>,
    /// Shards that are left.
    pub shards: usize,
}

impl GroupLoss {
    /// The ranks whose bytes are lost.
    pub fn ranks(&self, topology: &Topology) -> Vec<usize> {
        let members = topology.members(self.group);
        self.members.iter().filter_map(|place| members.get(*place).copied().flatten()).collect()
    }

    /// The loss as an error.
    pub fn error(&self, topology: &Topology) -> Error {
        let (group, lost, shards) = (self.group, self.ranks(topology), self.shards);
        Error::NotEnough { group, lost, shards, m: topology.shape().m }
    }
}

/// What recovery will do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Groups that have something to do.
    pub groups: Vec<GroupPlan>,
    /// Groups that cannot be brought back.
    pub lost: Vec<GroupLoss>,
}

/// Plans a recovery. `claims[rank]` is what a rank of the new job holds, `heirs[rank]` who takes
/// the place of a rank of the old one, `bad` what was found damaged where, `block_bytes` how a
/// group is cut that has no shard left.
pub fn plan(
    topology: &Topology,
    claims: &[Claim],
    heirs: &[usize],
    bad: &BTreeSet<(Piece, usize)>,
    block_bytes: u32,
) -> Plan {
    let held = Held::new(claims, bad, block_bytes);
    let mut plan = Plan::default();
    for group in topology.ring() {
        match held.group(topology, group, heirs) {
            Ok(of_group) if of_group.targets.is_empty() => {}
            Ok(of_group) => plan.groups.push(of_group),
            Err(loss) => plan.lost.push(loss),
        }
    }
    plan
}

/// All claims, by piece.
struct Held<'a> {
    block_bytes: u32,
    members: BTreeMap<Piece, Vec<(usize, u64)>>,
    shards: BTreeMap<Piece, Vec<(usize, &'a ShardClaim)>>,
}

impl<'a> Held<'a> {
    fn new(claims: &'a [Claim], bad: &BTreeSet<(Piece, usize)>, block_bytes: u32) -> Self {
        let (members, shards) = (BTreeMap::new(), BTreeMap::new());
        let mut held = Self { block_bytes, members, shards };
        for (rank, claim) in claims.iter().enumerate() {
            for (piece, bytes) in &claim.members {
                if !bad.contains(&(*piece, rank)) {
                    held.members.entry(*piece).or_default().push((rank, *bytes));
                }
            }
            for shard in &claim.shards {
                if !bad.contains(&(shard.piece, rank)) {
                    held.shards.entry(shard.piece).or_default().push((rank, shard));
                }
            }
        }
        held
    }

    fn group(
        &self,
        topology: &Topology,
        group: GroupId,
        heirs: &[usize],
    ) -> Result<GroupPlan, GroupLoss> {
        let members = topology.members(group);
        let (k, m) = (members.len(), topology.shape().m);
        let piece = |index: usize| Piece { group, index: index as u32 };
        let agreed = self.agreed(group, k, m);
        let (block_bytes, member_bytes) = match agreed {
            Some(claim) => (claim.block_bytes, claim.member_bytes.clone()),
            None => (self.block_bytes, self.claimed_bytes(&members, group)?),
        };
        let shard = |row: usize| {
            let (holder, _) = self.shard(piece(k + row), agreed?)?;
            Some(Place { piece: piece(k + row), rank: Some(holder) })
        };
        let shards: Vec<Option<Place>> = (0..m).map(shard).collect();
        let left = shards.iter().flatten().count();
        let mut sources = Vec::new();
        let mut targets = Vec::new();
        let mut gone = Vec::new();
        for (place, rank) in members.iter().enumerate() {
            let empty = member_bytes[place] == 0;
            let heir = rank.map(|rank| heirs[rank]);
            let holder = self.member(piece(place), member_bytes[place], heir);
            if empty || holder.is_some() {
                sources.push(Place { piece: piece(place), rank: holder });
            } else {
                gone.push(place);
            }
            // An empty member has nothing to bring; its heir makes an empty file by itself.
            if !empty && holder != heir {
                targets.push(Place { piece: piece(place), rank: heir });
            }
        }
        if gone.len() > left {
            return Err(GroupLoss { group, members: gone, shards: left });
        }
        sources.extend(shards.iter().flatten().take(gone.len()));
        let missing = (0..m).filter(|row| shards[*row].is_none());
        targets.extend(missing.map(|row| Place {
            piece: piece(k + row),
            rank: Some(heirs[topology.keeper(group, row)]),
        }));
        let witness = shards.into_iter().flatten().next();
        Ok(GroupPlan { group, block_bytes, member_bytes, sources, targets, witness })
    }

    /// What most of a group's shards say of it; of equals the first.
    fn agreed(&self, group: GroupId, k: usize, m: usize) -> Option<&'a ShardClaim> {
        let rows = Piece { group, index: k as u32 }..Piece { group, index: (k + m) as u32 };
        let mut votes: Vec<(usize, &ShardClaim)> = Vec::new();
        for (_, claim) in self.shards.range(rows).flat_map(|(_, holders)| holders) {
            match votes.iter_mut().find(|(_, other)| same_group(other, claim)) {
                Some((count, _)) => *count += 1,
                None => votes.push((1, claim)),
            }
        }
        let most = votes.iter().map(|(count, _)| *count).max()?;
        votes.into_iter().find(|(count, _)| *count == most).map(|(_, claim)| claim)
    }

    /// Without any shard only a group that has lost no member can go on.
    fn claimed_bytes(
        &self,
        members: &[Option<usize>],
        group: GroupId,
    ) -> Result<Vec<u64>, GroupLoss> {
        let claimed = |place: usize| {
            let holders = self.members.get(&Piece { group, index: place as u32 })?;
            holders.first().map(|(_, bytes)| *bytes)
        };
        let present =
            |(place, rank): (usize, &Option<usize>)| rank.is_none() || claimed(place).is_some();
        let gone: Vec<usize> =
            members.iter().enumerate().filter(|of| !present(*of)).map(|(place, _)| place).collect();
        if gone.is_empty() {
            return Ok((0..members.len()).map(|place| claimed(place).unwrap_or(0)).collect());
        }
        Err(GroupLoss { group, members: gone, shards: 0 })
    }

    /// Who holds a member: best its heir, else the first.
    fn member(&self, piece: Piece, bytes: u64, heir: Option<usize>) -> Option<usize> {
        let holders = self.members.get(&piece)?.iter();
        let mut ranks = holders.filter(|(_, claimed)| *claimed == bytes).map(|(rank, _)| *rank);
        ranks.clone().find(|rank| Some(*rank) == heir).or_else(|| ranks.next())
    }

    fn shard(&self, piece: Piece, agreed: &ShardClaim) -> Option<(usize, &'a ShardClaim)> {
        let holders = self.shards.get(&piece)?;
        holders.iter().find(|(_, claim)| same_group(claim, agreed)).copied()
    }
}

fn same_group(one: &ShardClaim, other: &ShardClaim) -> bool {
    one.block_bytes == other.block_bytes && one.member_bytes == other.member_bytes
}
