//! Names of groups and of what they hold.

use std::fmt;

/// A group: one rank of every node of a sector.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct GroupId {
    /// Which stretch of nodes.
    pub sector: u32,
    /// Which rank of each node.
    pub level: u32,
}

/// A member's bytes (by place, from 0) or a shard (from the number of members on) of a group.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Piece {
    /// Whose.
    pub group: GroupId,
    /// Which one.
    pub index: u32,
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group {}.{}", self.sector, self.level)
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "piece {} of {}", self.index, self.group)
    }
}
