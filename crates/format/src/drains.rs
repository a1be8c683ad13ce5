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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrival(number: u64) -> Arrival {
        let version = Version(number);
        Arrival { version, from_bytes: 9, to_bytes: 4, elapsed_ns: 7, arrived_ns: number }
    }

    #[test]
    fn the_newest_are_kept_and_told_once() {
        let mut drains = Drains::default();
        assert!(drains.since(0).is_empty());
        (1..=20).for_each(|number| drains.push(arrival(number)));
        assert_eq!((drains.count, drains.last.len()), (20, DRAINS_MAX));
        assert_eq!(drains.since(18), [arrival(19), arrival(20)]);
        assert!(drains.since(20).is_empty() && drains.since(99).is_empty());
        assert_eq!(drains.since(0).len(), DRAINS_MAX);
    }

    #[test]
    fn damage_and_excess_are_found() {
        let mut drains = Drains::default();
        drains.push(arrival(1));
        let mut bytes = drains.encode();
        bytes[30] ^= 1;
        assert!(Drains::decode(&bytes).is_err());
        let many = Drains { count: 1, last: vec![arrival(1); DRAINS_MAX + 1] };
        assert!(Drains::decode(&many.encode()).is_err());
    }

    proptest! {
        #[test]
        fn records_lead_back(count: u64, numbers in prop::collection::vec(any::<u64>(), 0..=16)) {
            let last = numbers.into_iter().map(|number| Arrival {
                from_bytes: u64::MAX, to_bytes: u64::MAX, elapsed_ns: u64::MAX, ..arrival(number)
            });
            let drains = Drains { count, last: last.collect() };
            let bytes = drains.encode();
            prop_assert!(bytes.len() as u64 <= DRAINS_BYTES_MAX);
            prop_assert_eq!(Drains::decode(&bytes).unwrap(), drains);
        }
    }
}
