//! Counts what goes through a communicator, for the report of a collective step.

use std::sync::atomic::{AtomicU64, Ordering};

use standfast_comm::{Around, Call, Comm, Result};

/// A communicator that counts rounds and bytes sent to other ranks.
pub(super) struct Tally<'a> {
    comm: &'a dyn Comm,
    rounds: AtomicU64,
    bytes: AtomicU64,
}

impl<'a> Tally<'a> {
    pub(super) fn new(comm: &'a dyn Comm) -> Self {
        Self { comm, rounds: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Rounds in which this rank sent or received.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Bytes sent to other ranks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Around for Tally<'_> {
    fn inner(&self) -> &dyn Comm {
        self.comm
    }

    fn before(&self, call: Call) -> Result<()> {
        let bytes = match call {
            Call::Message(bytes) | Call::AllToAll(bytes) => bytes,
            Call::Barrier => 0,
            Call::Begin | Call::Split => return Ok(()),
        };
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }
}
