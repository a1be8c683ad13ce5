//! What the drains of a store have told: how much went and how long it took.
//!
//! A drain that carries a checkpoint to global storage notes it here, in the local store; the
//! interval `auto` and the planner read it. Advice: no restart depends on it, and whoever cannot
//! read it goes on without.
//!
//! Invariants:
//! - At most [`DRAINS_MAX`] drains are listed, oldest first; `count` counts all there were.

use crate::error::{Error, Result};
use crate::frame::{self, Sort};
use crate::id::Version;

const SORT: Sort = Sort { mark: *b"SFDRAIN\0", what: "record of drains" };

/// Largest record that a reader accepts.
pub const DRAINS_BYTES_MAX: u64 = 4096;
/// Drains that are remembered.
pub const DRAINS_MAX: usize = 16;

/// A checkpoint that arrived in global storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Arrival {
    /// Which one.
    pub version: Version,
    /// What was sent takes this much in the local store.
    pub from_bytes: u64,
    /// And this much in global storage.
    pub to_bytes: u64,
    /// Time it took, pauses included.
    pub elapsed_ns: u64,
    /// When it had arrived, nanoseconds since 1970.
    pub arrived_ns: u64,
}

/// The newest arrivals of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Drains {
    /// How many there were in all.
    pub count: u64,
    /// The newest of them, oldest first.
    pub last: Vec<Arrival>,
}

impl Drains {
    /// Adds an arrival.
    pub fn push(&mut self, arrival: Arrival) {
        self.count = self.count.saturating_add(1);
        self.last.push(arrival);
        let old = self.last.len().saturating_sub(DRAINS_MAX);
        self.last.drain(..old);
    }

    /// Arrivals, as far as they are listed, that came after the first `seen` ones.
    pub fn since(&self, seen: u64) -> &[Arrival] {
        let new = usize::try_from(self.count.saturating_sub(seen)).unwrap_or(usize::MAX);
        &self.last[self.last.len().saturating_sub(new)..]
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        frame::seal(SORT, &frame::encode(self))
    }

    /// Reads and checks the bytes of the file.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let drains: Self = frame::decode(SORT, frame::open(SORT, bytes)?.body)?;
        if drains.last.len() > DRAINS_MAX {
            return Err(Error::Malformed { what: SORT.what, why: "it lists too many drains" });
        }
        Ok(drains)
    }
}

#[cfg(test)]
mod tests;
