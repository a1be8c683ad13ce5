//! Collective operations built from messages, for any number of ranks.
//!
//! Reductions go by recursive doubling: ranks beyond the largest power of two first hand their
//! part to a partner below, then in each round pairs at twice the distance of the last combine,
//! and at the end the partners pass the result on. The combination sees its parts in the order
//! of ranks, so every rank computes the same result, also where combining does not commute.

use crate::error::Result;
use crate::{Comm, Tag};

/// Tags of this module; programs use lower ones.
const REDUCE: Tag = Tag(0xff00);
const GATHER: Tag = Tag(0xff01);
const BARRIER: Tag = Tag(0xff03);

/// Combines the parts of all ranks; every rank gets the same result.
///
/// `combine(lower, upper)` joins two parts, of which the first covers lower ranks.
pub fn all_reduce(
    comm: &(impl Comm + ?Sized),
    part: Vec<u8>,
    mut combine: impl FnMut(&[u8], &[u8]) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let mut reduction = Reduction { part, ..Reduction::default() };
    reduction.run(comm, |lower, upper, result| {
        *result = combine(lower, upper)?;
        Ok(())
    })?;
    Ok(reduction.part)
}

/// The buffers of a reduction, for those that reduce much and often: new memory costs more than
/// combining does.
#[derive(Debug, Default)]
pub struct Reduction {
    /// This rank's part; afterwards the result.
    pub part: Vec<u8>,
    other: Vec<u8>,
    result: Vec<u8>,
}

impl Reduction {
    /// Combines the parts of all ranks. Collective.
    ///
    /// `combine(lower, upper, result)` joins two parts, of which the first covers lower ranks, and
    /// writes over what is in `result`.
    pub fn run(
        &mut self,
        comm: &(impl Comm + ?Sized),
        mut combine: impl FnMut(&[u8], &[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        comm.begin()?;
        let Self { part, other, result } = self;
        let (rank, size) = (comm.rank(), comm.size());
        let core = largest_power_of_two(size);
        let extra = size - core;
        // Ranks 0..2*extra form neighbouring pairs, so that each covers a stretch of ranks.
        let paired = rank < 2 * extra;
        if paired && rank % 2 == 1 {
            comm.send(rank - 1, REDUCE, part)?;
            return comm.receive_into(rank - 1, REDUCE, part);
        }
        if paired {
            comm.receive_into(rank + 1, REDUCE, other)?;
            combine(part, other, result)?;
            std::mem::swap(part, result);
        }
        let place = if paired { rank / 2 } else { rank - extra };
        let rank_at = |place: usize| if place < extra { 2 * place } else { place + extra };
        let mut distance = 1;
        while distance < core {
            let peer = rank_at(place ^ distance);
            comm.exchange_over(peer, part, peer, REDUCE, other)?;
            let is_lower = place & distance == 0;
            let (lower, upper) = if is_lower { (&*part, &*other) } else { (&*other, &*part) };
            combine(lower, upper, result)?;
            std::mem::swap(part, result);
            distance *= 2;
        }
        if paired {
            comm.send(rank + 1, REDUCE, part)?;
        }
        Ok(())
    }

    /// The bytes of memory that are kept for the next one.
    pub fn capacity(&self) -> usize {
        self.part.capacity() + self.other.capacity() + self.result.capacity()
    }
}

/// What every rank has contributed, by rank. In a logarithmic number of rounds (Bruck).
pub fn all_gather(comm: &(impl Comm + ?Sized), own: &[u8]) -> Result<Vec<Vec<u8>>> {
    comm.begin()?;
    let (rank, size) = (comm.rank(), comm.size());
    // Parts of this rank, the next, the one after...
    let mut parts = vec![own.to_vec()];
    while parts.len() < size {
        let distance = parts.len();
        let count = distance.min(size - distance);
        let (to, from) = ((rank + size - distance) % size, (rank + distance) % size);
        let received = comm.exchange(to, &join(&parts[..count]), from, GATHER)?;
        let received = cut(&received).filter(|parts| parts.len() == count);
        let why = "a gathered message is cut off";
        parts.extend(received.ok_or(crate::Error::Message { rank, from, why })?);
    }
    parts.rotate_right(rank);
    Ok(parts)
}

/// Waits until every rank has come here. By dissemination: after the k-th round every rank has
/// heard of 2^k others.
pub fn barrier(comm: &(impl Comm + ?Sized)) -> Result<()> {
    comm.begin()?;
    let (rank, size) = (comm.rank(), comm.size());
    let mut distance = 1;
    while distance < size {
        let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
        comm.exchange(to, &[], from, BARRIER)?;
        distance *= 2;
    }
    Ok(())
}

/// Largest value over all ranks.
pub fn all_max(comm: &(impl Comm + ?Sized), value: u64) -> Result<u64> {
    all_reduce_u64(comm, value, u64::max)
}

/// Smallest value over all ranks.
pub fn all_min(comm: &(impl Comm + ?Sized), value: u64) -> Result<u64> {
    all_reduce_u64(comm, value, u64::min)
}

/// Sum over all ranks.
pub fn all_sum(comm: &(impl Comm + ?Sized), value: u64) -> Result<u64> {
    all_reduce_u64(comm, value, u64::wrapping_add)
}

fn all_reduce_u64(
    comm: &(impl Comm + ?Sized),
    value: u64,
    combine: impl Fn(u64, u64) -> u64,
) -> Result<u64> {
    let rank = comm.rank();
    let number = |bytes: &[u8]| {
        let why = "a number has 8 bytes";
        let bytes =
            bytes.try_into().map_err(|_| crate::Error::Message { rank, from: rank, why })?;
        Ok(u64::from_le_bytes(bytes))
    };
    let whole = all_reduce(comm, value.to_le_bytes().to_vec(), |lower, upper| {
        Ok(combine(number(lower)?, number(upper)?).to_le_bytes().to_vec())
    })?;
    number(&whole)
}

fn largest_power_of_two(up_to: usize) -> usize {
    1 << up_to.ilog2()
}

/// Puts messages behind each other, each after its length.
fn join(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// Takes joined messages apart; `None` if they are cut off.
fn cut(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (part, rest) = rest.split_at_checked(length)?;
        parts.push(part.to_vec());
        bytes = rest;
    }
    Some(parts)
}

#[cfg(test)]
mod tests;
