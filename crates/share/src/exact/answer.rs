//! Answers: what a home tells each rank of the hashes it sent.
//!
//! ```text
//! count, (position, owner)*                 pages that another rank stores
//! count, (position, set of ranks)*          pages of this rank that others want to find
//! ids, count, (position, segment, slot)*    pages that earlier checkpoints have stored
//! ```
//! A position is the place of the hash in the rank's own message; pages that are not named are the
//! rank's own and nobody else's. An empty message says that none is named.
//!
//! The first two lists are in the order of the home's groups. An owner and a rank that refers to
//! it therefore see the pages between them in the same order: places can be told without names.

use std::collections::HashMap;

use standfast_comm::{Comm, Result};
use standfast_format::SegmentId;

use super::super::assignment::{Assignment, Location, OldPage, Pairs};
use super::super::wire::{Reader, count, put, put_ids};
use super::group::{Groups, Shared};
use super::holders::{put_ranks, read_ranks};
use super::index::{HomeIndex, Known};

/// An answer in the making.
#[derive(Clone, Default)]
struct Draft {
    theirs: Vec<u8>,
    wanted: Vec<u8>,
    wanted_count: u32,
    old: Vec<u8>,
    old_count: u32,
    old_ids: Vec<SegmentId>,
    old_numbers: HashMap<u32, u32>,
}

impl Draft {
    fn add_old(&mut self, position: u32, known: Known, index: &HomeIndex) {
        let ids = &mut self.old_ids;
        let number = *self.old_numbers.entry(known.segment).or_insert_with(|| {
            ids.push(index.id(known.segment));
            ids.len() as u32 - 1
        });
        put(&mut self.old, position);
        put(&mut self.old, number);
        put(&mut self.old, known.slot);
        self.old_count += 1;
    }

    fn finish(self) -> Vec<u8> {
        if self.theirs.is_empty() && self.wanted.is_empty() && self.old.is_empty() {
            return Vec::new();
        }
        let length = self.theirs.len() + self.wanted.len() + self.old.len();
        let mut bytes = Vec::with_capacity(length + 16 + 16 * self.old_ids.len());
        put(&mut bytes, count(self.theirs.len() / 8));
        bytes.extend_from_slice(&self.theirs);
        put(&mut bytes, self.wanted_count);
        bytes.extend_from_slice(&self.wanted);
        put_ids(&mut bytes, &self.old_ids);
        put(&mut bytes, self.old_count);
        bytes.extend_from_slice(&self.old);
        bytes
    }
}

/// Writes the answers to all ranks.
pub(super) fn write(
    groups: &Groups,
    shared: &Shared,
    owners: &[u32],
    known: Option<(&HomeIndex, &[Option<Known>])>,
) -> Vec<Vec<u8>> {
    let ranks = groups.sources();
    let mut drafts = vec![Draft::default(); ranks];
    let mut others = Vec::new();
    for (members, owner) in shared.iter().zip(owners) {
        for member in members {
            let draft = &mut drafts[member.rank as usize];
            if member.rank != *owner {
                put(&mut draft.theirs, member.position);
                put(&mut draft.theirs, *owner);
                continue;
            }
            others.clear();
            others.extend(members.iter().map(|other| other.rank).filter(|rank| rank != owner));
            put(&mut draft.wanted, member.position);
            put_ranks(&mut draft.wanted, &others, ranks);
            draft.wanted_count += 1;
        }
    }
    if let Some((index, known)) = known {
        for (source, draft) in drafts.iter_mut().enumerate() {
            for (group, position) in groups.of(source).iter().zip(0u32..) {
                if let Some(known) = known[*group as usize] {
                    draft.add_old(position, known, index);
                }
            }
        }
    }
    drafts.into_iter().map(Draft::finish).collect()
}

/// Reads the answers of all homes. `candidates` are those that were sent to each home.
pub(super) fn read(
    comm: &dyn Comm,
    answers: &[Vec<u8>],
    candidates: &[Vec<u32>],
    assignment: &mut Assignment,
    pairs: &mut Pairs,
) -> Result<()> {
    for (home, answer) in answers.iter().enumerate() {
        if answer.is_empty() {
            continue;
        }
        let mut reader = Reader::new(answer, comm.rank(), home);
        let sent = &candidates[home];
        read_theirs(&mut reader, sent, assignment, pairs)?;
        read_wanted(&mut reader, sent, assignment, pairs)?;
        read_old(&mut reader, sent, assignment)?;
        reader.finish()?;
    }
    Ok(())
}

/// The candidate at the next position; it must be this rank's own so far.
fn candidate(reader: &mut Reader<'_>, sent: &[u32], assignment: &Assignment) -> Result<u32> {
    let position = reader.below(sent.len(), "it names a page that was not sent")?;
    let candidate = sent[position as usize];
    if assignment.is_mine(candidate) {
        Ok(candidate)
    } else {
        Err(reader.refuse("it says two things of a page"))
    }
}

fn read_theirs(
    reader: &mut Reader<'_>,
    sent: &[u32],
    assignment: &mut Assignment,
    pairs: &mut Pairs,
) -> Result<()> {
    for _ in 0..reader.number()? {
        let candidate = candidate(reader, sent, assignment)?;
        let owner = reader.below(pairs.expected.len(), "it names a rank that does not exist")?;
        if owner == assignment.rank() {
            return Err(reader.refuse("it gives a rank's own page to itself"));
        }
        assignment.give_to(candidate, owner);
        pairs.expected[owner as usize].push(candidate);
    }
    Ok(())
}

fn read_wanted(
    reader: &mut Reader<'_>,
    sent: &[u32],
    assignment: &mut Assignment,
    pairs: &mut Pairs,
) -> Result<()> {
    for _ in 0..reader.number()? {
        let candidate = candidate(reader, sent, assignment)?;
        let wanting = read_ranks(reader, pairs.wanted.len())?;
        if wanting.is_empty() || wanting.contains(&assignment.rank()) {
            return Err(reader.refuse("it says that nobody else wants a page"));
        }
        wanting.iter().for_each(|rank| pairs.wanted[*rank as usize].push(candidate));
        assignment.shares.chosen += 1;
    }
    Ok(())
}

fn read_old(reader: &mut Reader<'_>, sent: &[u32], assignment: &mut Assignment) -> Result<()> {
    let ids = reader.ids()?;
    let first = assignment.add_old_segments(&ids);
    for _ in 0..reader.number()? {
        let candidate = candidate(reader, sent, assignment)?;
        let segment = first + reader.below(ids.len(), "it names a segment without an id")?;
        let place = Location { segment, slot: reader.number()? };
        assignment.mark_old(OldPage { candidate, place });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
