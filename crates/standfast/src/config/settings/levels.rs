//! What checkpoints survive: losses of nodes, and how fast global storage is reached.

use std::fmt;
use std::str::FromStr;

use crate::config::size::ByteSize;
use crate::config::text::number;

/// Most shards that a group can have.
const LOSSES_MAX: u32 = 64;

/// So many nodes may be lost at once. With `auto`, as many as the usual groups survive, where nodes
/// have stores of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLosses(u32);

impl NodeLosses {
    /// The ring is off.
    pub const NONE: Self = Self(0);

    /// So many; 0 turns the ring off.
    pub fn new(nodes: u32) -> Option<Self> {
        (nodes <= LOSSES_MAX).then_some(Self(nodes))
    }

    /// How many.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for NodeLosses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::NONE),
            _ => number(text, 1, LOSSES_MAX).map(Self).map_err(|why| format!("{why}, off")),
        }
    }
}

impl fmt::Display for NodeLosses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("off"),
            nodes => nodes.fmt(f),
        }
    }
}

/// Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub ByteSize);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size: ByteSize = text.strip_suffix("/s").unwrap_or(text).parse()?;
        if size.0 == 0 {
            Err("0 would never arrive; off is no limit".into())
        } else {
            Ok(Self(size))
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}
