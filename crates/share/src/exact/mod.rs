//! The exact strategy: every hash goes to its home, which sees all holders and names the owner.
//!
//! Data: hashes -> [`home`] (one message to each rank) -> [`group`] (equal hashes) -> [`owners`]
//! ([`holders`], [`balance`]) -> [`answer`] (one message back) -> ... -> `places` (owners tell
//! where pages lie). With an [`index`], homes also know the pages of earlier checkpoints.
//!
//! A checkpoint takes three exchanges of everybody with everybody and one sum over all ranks;
//! where no page is shared, the last two exchanges are left out. Each rank sends and groups about
//! as many hashes as it has candidates, however many ranks there are.

mod answer;
mod balance;
mod gathered;
mod group;
mod holders;
mod home;
mod index;
mod owners;

use standfast_comm::{Comm, Result};
use standfast_format::{HashKind, SegmentId};

use super::Strategy;
use super::assignment::{Assignment, Location, Pairs, Places, StopWatch};
use super::places::{self, NewPages, StoredHashes};
use super::tally::Tally;
use super::wire::{Reader, count, put};
use gathered::Gathered;
use home::{Parts, home_of};

pub use index::HomeIndex;

/// Finds every duplicate, by hashes partitioned over the ranks.
#[derive(Debug)]
pub struct Exact {
    hash_bytes: usize,
    index: Option<HomeIndex>,
    /// Hashes whose home this rank is and that the running attempt stores, by owner.
    stored: Vec<Vec<u8>>,
    /// Pages of the running attempt with their places: entered when it is committed.
    new: Vec<NewPages>,
}

impl Exact {
    /// Among the ranks of one checkpoint only.
    pub fn new(hash: HashKind) -> Self {
        Self { hash_bytes: hash.bytes(), index: None, stored: Vec::new(), new: Vec::new() }
    }

    /// Also with earlier checkpoints: each rank's part of the index may take so many bytes. Every
    /// rank has an index, or none.
    pub fn with_index(hash: HashKind, bytes_max: usize) -> Self {
        Self { index: Some(HomeIndex::new(hash.bytes(), bytes_max)), ..Self::new(hash) }
    }

    /// Changes how many bytes this rank's part of the index may take, if there is one.
    pub fn set_index_bytes_max(&mut self, bytes_max: usize) {
        if let Some(index) = &mut self.index {
            index.set_bytes_max(bytes_max);
        }
    }

    /// This rank's part of the index.
    pub fn index(&self) -> Option<&HomeIndex> {
        self.index.as_ref()
    }

    /// Enters segments of kept checkpoints: each rank brings some of them, oldest first, with the
    /// hashes of their slots; the hashes go to their homes. Collective; without an index it does
    /// nothing.
    pub fn load(&mut self, comm: &dyn Comm, segments: &[(SegmentId, &[u8])]) -> Result<()> {
        let hash_bytes = self.hash_bytes;
        let Some(index) = &mut self.index else { return Ok(()) };
        let received = comm.all_to_all(distribute(segments, hash_bytes, comm.size()))?;
        for (from, message) in received.iter().enumerate() {
            let mut reader = Reader::new(message, comm.rank(), from);
            while !reader.is_empty() {
                let id = SegmentId(reader.bytes(16)?.try_into().expect("an id's bytes"));
                for _ in 0..reader.number()? {
                    let slot = reader.number()?;
                    index.enter(id, reader.bytes(hash_bytes)?, slot);
                }
            }
        }
        Ok(())
    }
}

/// A message for each home: segment by segment, the hashes that belong there and their slots.
fn distribute(segments: &[(SegmentId, &[u8])], hash_bytes: usize, ranks: usize) -> Vec<Vec<u8>> {
    let mut messages = vec![Vec::new(); ranks];
    for (id, hashes) in segments {
        assert!(hashes.len().is_multiple_of(hash_bytes), "whole hashes");
        let mut parts = vec![Vec::new(); ranks];
        for (slot, hash) in (0u32..).zip(hashes.chunks_exact(hash_bytes)) {
            let part = &mut parts[home_of(hash, ranks)];
            put(part, slot);
            part.extend_from_slice(hash);
        }
        for (message, part) in messages.iter_mut().zip(&parts).filter(|(_, part)| !part.is_empty())
        {
            message.extend_from_slice(&id.0);
            put(message, count(part.len() / (4 + hash_bytes)));
            message.extend_from_slice(part);
        }
    }
    messages
}

impl Strategy for Exact {
    fn assign(&mut self, comm: &dyn Comm, hashes: &[u8]) -> Result<Assignment> {
        let comm = &Tally::new(comm);
        let rank = comm.rank();
        let mut watch = StopWatch::start();
        self.abort();
        let candidates = count(hashes.len() / self.hash_bytes) as usize;
        let mut assignment = Assignment::all_mine(rank as u32, candidates);
        let Parts { messages, candidates } = Parts::cut(hashes, self.hash_bytes, comm.size());
        watch.lap("cut");
        let received = comm.all_to_all(messages)?;
        watch.lap("send");
        let gathered = Gathered::group(received, self.hash_bytes, rank, self.index.as_ref())?;
        watch.lap("group");
        let (whole, owners) = gathered.choose_owners(comm)?;
        watch.lap("balance");
        let mut pairs = Pairs::new(comm.size());
        if whole.shared_pages() + whole.known > 0 {
            let answers = gathered.answers(&owners, self.index.as_ref());
            let answers = comm.all_to_all(answers)?;
            answer::read(comm, &answers, &candidates, &mut assignment, &mut pairs)?;
            watch.lap("answer");
        }
        if self.index.is_some() {
            self.stored = gathered.stored(&owners);
            pairs.report(candidates, |candidate| assignment.is_mine(candidate));
        }
        if whole.shared_pages() > 0 || self.index.is_some() {
            assignment.pairs = Some(pairs);
        }
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
        let hashes = std::mem::take(&mut self.stored);
        let stored = StoredHashes { hashes: &hashes, hash_bytes: self.hash_bytes };
        let (places, new) = places::exchange(comm, assignment, segments, place, stored)?;
        self.new = new;
        Ok(places)
    }

    fn commit(&mut self) {
        let new = std::mem::take(&mut self.new);
        if let Some(index) = &mut self.index {
            new.iter().for_each(|pages| index.enter_all(pages));
        }
    }

    fn abort(&mut self) {
        self.stored.clear();
        self.new.clear();
    }

    fn forget(&mut self, gone: &[SegmentId]) {
        if let Some(index) = &mut self.index {
            index.forget(gone);
        }
    }
}
