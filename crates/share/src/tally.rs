//! Counts what goes through a communicator, for the report of a collective step.

use std::sync::atomic::{AtomicU64, Ordering};

use standfast_comm::{Comm, Concurrency, Result, Tag};

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

    fn round(&self, bytes: usize) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Comm for Tally<'_> {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn concurrency(&self) -> Concurrency {
        self.comm.concurrency()
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.round(bytes.len());
        self.comm.send(to, tag, bytes)
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.round(0);
        self.comm.receive(from, tag)
    }

    fn receive_into(&self, from: usize, tag: Tag, into: &mut Vec<u8>) -> Result<()> {
        self.round(0);
        self.comm.receive_into(from, tag, into)
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.round(bytes.len());
        self.comm.exchange(to, bytes, from, tag)
    }

    fn exchange_over(
        &self,
        to: usize,
        bytes: &[u8],
        from: usize,
        tag: Tag,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        self.round(bytes.len());
        self.comm.exchange_over(to, bytes, from, tag, into)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let all: usize = outgoing.iter().map(Vec::len).sum();
        self.round(all - outgoing[self.rank()].len());
        self.comm.all_to_all(outgoing)
    }

    fn barrier(&self) -> Result<()> {
        self.round(0);
        self.comm.barrier()
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        self.comm.split(colour, key)
    }
}
