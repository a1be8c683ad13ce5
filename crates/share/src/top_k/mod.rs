//! The top-K strategy: all ranks agree on one table of the most frequent pages (Nicolae 2013).
//!
//! Data: hashes -> a table with frequency 1 and this rank for each -> recursive doubling with
//! [`merge`] -> the view, the same on all ranks: at most [`Threshold`] entries (hash, frequency,
//! owner). A candidate whose hash the view gives to another rank becomes a reference; all others
//! are stored. Then each rank tells the owners what it refers to, so that they can tell the places
//! later without being asked.
//!
//! What it finds: with a threshold of at least all distinct hashes, every duplicate. Below that,
//! pages that fell out of a table on the way are stored by several ranks. The table of the first
//! merge is not cut before, as published: neighbours find all they share.
//!
//! Invariants:
//! - An owner holds the page and sees the same view, so it stores what others refer to.

mod merge;
mod own;
mod threshold;

use standfast_comm::collective::Reduction;
use standfast_comm::{Comm, Result};
use standfast_format::{HashKind, SegmentId};

use super::Strategy;
use super::assignment::{Assignment, Location, Pairs, Places, StopWatch};
use super::places::{self, StoredHashes};
use super::tally::Tally;
use super::wire::{Reader, count, put};
use merge::{Shape, entries};
use own::{Held, Own};

pub use threshold::Threshold;

/// Finds the most frequent duplicates, by a reduction over all ranks.
#[derive(Debug)]
pub struct TopK {
    hash_bytes: usize,
    threshold: Threshold,
    own: Own,
    reduction: Reduction,
}

/// Memory that is kept from one checkpoint to the next, at most: new memory costs more than merging
/// does.
const KEPT_BYTES: usize = 16 << 20;

impl TopK {
    /// With hashes of one kind, following so many pages.
    pub fn new(hash: HashKind, threshold: Threshold) -> Self {
        let hash_bytes = hash.bytes();
        Self { hash_bytes, threshold, own: Own::new(hash_bytes), reduction: Reduction::default() }
    }

    /// Makes the view of all ranks; returns how many entries were merged here on the way.
    fn reduce(&mut self, comm: &dyn Comm, shape: Shape) -> Result<u64> {
        let mut merged = 0;
        self.reduction.run(comm, |lower, upper, result| {
            merged += (shape.len(lower) + shape.len(upper)) as u64;
            shape.merge(lower, upper, result)
        })?;
        shape.check(&self.reduction.part)?;
        Ok(merged)
    }

    /// Gives memory back that is too much to be kept.
    fn release(&mut self) {
        if self.own.capacity() + self.reduction.capacity() > KEPT_BYTES {
            self.own = Own::new(self.hash_bytes);
            self.reduction = Reduction::default();
        }
    }
}

impl Strategy for TopK {
    fn assign(&mut self, comm: &dyn Comm, hashes: &[u8]) -> Result<Assignment> {
        let comm = &Tally::new(comm);
        let rank = comm.rank();
        let mut watch = StopWatch::start();
        let candidates = count(hashes.len() / self.hash_bytes);
        let mut assignment = Assignment::all_mine(rank as u32, candidates as usize);
        self.own.sort(hashes);
        self.own.write_table(rank as u32, &mut self.reduction.part);
        watch.lap("table");
        let threshold = self.threshold.agree(comm, candidates.into())?;
        watch.lap("threshold");
        let shape = Shape { hash_bytes: self.hash_bytes, ranks: comm.size(), threshold, rank };
        let merged = self.reduce(comm, shape)?;
        let time = watch.lap("reduce");
        let view = &self.reduction.part;
        let shared = entries(view, self.hash_bytes).filter(|entry| entry.frequency > 1).count();
        self.threshold.learn(merged, time, threshold, shared);
        let held = self.own.held(view, rank)?;
        self.release();
        let mut pairs = Pairs::new(comm.size());
        let requests = refer(&held, comm.size(), &mut assignment, &mut pairs);
        let asked = comm.all_to_all(requests)?;
        assignment.shares.chosen = answer(&held, rank, &asked, &mut pairs)?;
        watch.lap("ask");
        assignment.pairs = Some(pairs);
        assignment.finish(watch, comm);
        Ok(assignment)
    }

    fn locate(
        &mut self,
        comm: &dyn Comm,
        assignment: &Assignment,
        segments: &[SegmentId],
        place: &dyn Fn(u32) -> Location,
    ) -> Result<Places> {
        let stored = StoredHashes { hashes: &[], hash_bytes: self.hash_bytes };
        Ok(places::exchange(comm, assignment, segments, place, stored)?.0)
    }
}

/// Refers to other owners; returns what is asked of each: entries of the view, in order.
fn refer(
    held: &[Held],
    ranks: usize,
    assignment: &mut Assignment,
    pairs: &mut Pairs,
) -> Vec<Vec<u8>> {
    let mut requests = vec![Vec::new(); ranks];
    for Held { entry, owner, candidate } in held {
        if *owner != assignment.rank() {
            assignment.give_to(*candidate, *owner);
            pairs.expected[*owner as usize].push(*candidate);
            put(&mut requests[*owner as usize], *entry);
        }
    }
    requests
}

/// Finds what others asked for among this rank's own entries; returns how many were asked for.
fn answer(held: &[Held], rank: usize, asked: &[Vec<u8>], pairs: &mut Pairs) -> Result<u64> {
    let mut wanted = vec![false; held.len()];
    for (from, requests) in asked.iter().enumerate() {
        let mut reader = Reader::new(requests, rank, from);
        let mut next = 0;
        while !reader.is_empty() {
            let entry = reader.number()?;
            let found = held[next..].binary_search_by_key(&entry, |held| held.entry);
            let at = next + found.map_err(|_| reader.refuse("it asks for an unknown page"))?;
            if held[at].owner as usize != rank || from == rank {
                return Err(reader.refuse("it asks for a page that another rank stores"));
            }
            pairs.wanted[from].push(held[at].candidate);
            wanted[at] = true;
            next = at + 1;
        }
    }
    Ok(wanted.into_iter().filter(|wanted| *wanted).count() as u64)
}

#[cfg(test)]
mod tests;
