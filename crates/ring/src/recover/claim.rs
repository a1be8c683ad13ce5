//! What a rank says it holds.

use super::Holding;
use crate::error::{Error, Result};
use crate::shard::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, Stamp};
use crate::topology::{Piece, Topology};

/// Longest claim that is taken from a rank.
const CLAIM_BYTES_MAX: usize = 16 << 20;

/// What a rank holds, as the others need to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Claim {
    /// Members and their lengths.
    pub members: Vec<(Piece, u64)>,
    /// Shards.
    pub shards: Vec<ShardClaim>,
}

/// A shard, and what its header says of its group.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ShardClaim {
    /// Which one.
    pub piece: Piece,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Lengths of the group's members.
    pub member_bytes: Vec<u64>,
}

impl Claim {
    /// What can be used of a holding: shards of another checkpoint, or of a group that this
    /// topology does not have, are as good as lost.
    pub fn of(topology: &Topology, stamp: Stamp, holding: &Holding) -> Self {
        let known = holding.members.iter().filter(|(rank, _)| *rank < topology.ranks());
        let members = known.map(|&(rank, bytes)| {
            let (group, place) = topology.group_of(rank);
            (Piece { group, index: place as u32 }, bytes)
        });
        let shape = topology.shape();
        let current = holding.shards.iter().filter(|shard| {
            let header = &shard.header;
            header.stamp == stamp && header.family == shape.family && header.m as usize == shape.m
        });
        let shards = current.map(|shard| ShardClaim {
            piece: shard.piece(),
            block_bytes: shard.header.block_bytes,
            member_bytes: shard.header.member_bytes.clone(),
        });
        let mut claim = Self { members: members.collect(), shards: shards.collect() };
        claim.shards.retain(|shard| shard.fits(topology));
        claim
    }

    /// All pieces of the claim.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece> {
        let members = self.members.iter().map(|(piece, _)| *piece);
        members.chain(self.shards.iter().map(|shard| shard.piece))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("our own fields can be encoded")
    }

    /// Reads what a rank says. What no rank can hold is refused, not ignored: it is no accident.
    pub(super) fn decode(topology: &Topology, from: usize, bytes: &[u8]) -> Result<Self> {
        let unreadable = Error::Message { from, why: "a claim that cannot be read" };
        if bytes.len() > CLAIM_BYTES_MAX {
            return Err(unreadable);
        }
        let claim: Self = match postcard::take_from_bytes(bytes) {
            Ok((claim, [])) => claim,
            _ => return Err(unreadable),
        };
        let is_member = |piece: &Piece| {
            topology.has_group(piece.group)
                && (piece.index as usize) < topology.sector_nodes(piece.group.sector as usize).len()
        };
        let members = claim.members.iter();
        let lengths = members.clone().all(|(_, bytes)| *bytes <= i64::MAX as u64);
        if lengths
            && members.clone().all(|(piece, _)| is_member(piece))
            && claim.shards.iter().all(|shard| shard.fits(topology))
        {
            return Ok(claim);
        }
        Err(Error::Message { from, why: "a claim of pieces that do not exist" })
    }
}

impl ShardClaim {
    /// Whether the topology has such a shard.
    fn fits(&self, topology: &Topology) -> bool {
        if !topology.has_group(self.piece.group) {
            return false;
        }
        let k = topology.sector_nodes(self.piece.group.sector as usize).len();
        let rows = k..k + topology.shape().m;
        self.member_bytes.len() == k
            && rows.contains(&(self.piece.index as usize))
            && (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&self.block_bytes)
            && self.member_bytes.iter().all(|bytes| *bytes <= i64::MAX as u64)
    }
}
