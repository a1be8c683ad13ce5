//! Recovery: what is lost comes back from what is left.
//!
//! Data: every rank's [`Holding`] -> [`plan`] (pure, the same on all ranks) -> a star for each
//! group that lost something -> rebuilt members at their heirs, missing shards at their keepers.
//!
//! *Fast* recovery runs on replacements or survivors: the ranks of a new job hold what they can
//! read, and `heirs` says who takes the place of every rank. *Slow* recovery is the same after
//! nodes came back with their disks; most is then there and only lost disks are decoded.
//! [`Topology::outlook`](crate::topology::Topology::outlook) says beforehand which one it will be.
//!
//! Damage is found while a block is read. Its holder says so, the star ends, and the work is
//! planned again without that piece, until it is done or too little is left.
//!
//! Invariants:
//! - A piece with a wrong checksum, stamp or length is never used.
//! - All ranks follow the same plan, or none does.
//! - After a recovery every group has all its members and all its shards again.

mod claim;
mod plan;
mod rounds;
mod slots;

pub use claim::{Claim, ShardClaim};
pub use plan::{GroupLoss, GroupPlan, Place, Plan, plan};
pub use rounds::{Recovered, Recovery, recover, recover_with};

use crate::shard::Shard;

/// What a rank can read of the checkpoint that is wanted.
#[derive(Clone, Debug, Default)]
pub struct Holding {
    /// Members' bytes, by the rank that wrote them, and their lengths.
    pub members: Vec<(usize, u64)>,
    /// Shards that could be opened.
    pub shards: Vec<Shard>,
}

#[cfg(test)]
mod tests;
