//! Holder sets: which ranks hold a page, and how many pages have the same holders.
//!
//! Data: shared groups -> [`Classes`] (one for each set of holders) -> `balance`; as bytes to the
//! other homes, where [`Classes::add_encoded`] joins them.
//!
//! Simulations have few classes: everybody, neighbours. So a decision about millions of pages is
//! one about a handful of sets.

use std::collections::HashMap;

use standfast_comm::Result;

use super::super::wire::{Reader, count, put};

/// Marks a set that is written as a bit for each rank.
const BITS: u32 = 1 << 31;

/// Appends a set of ranks, in ascending order: as a list, or as bits where that is shorter.
pub(super) fn put_ranks(bytes: &mut Vec<u8>, ranks: &[u32], of: usize) {
    let members = count(ranks.len());
    if ranks.len() * 4 <= of.div_ceil(8) {
        put(bytes, members);
        ranks.iter().for_each(|rank| put(bytes, *rank));
        return;
    }
    put(bytes, members | BITS);
    let start = bytes.len();
    bytes.resize(start + of.div_ceil(8), 0);
    ranks.iter().for_each(|rank| bytes[start + *rank as usize / 8] |= 1 << (rank % 8));
}

/// Reads a set of ranks: ascending, below `of`.
pub(super) fn read_ranks(reader: &mut Reader<'_>, of: usize) -> Result<Vec<u32>> {
    let members = reader.number()?;
    if members & BITS == 0 {
        return read_list(reader, members as usize, of);
    }
    let bits = reader.bytes(of.div_ceil(8))?;
    let is_set = |rank: &u32| bits[*rank as usize / 8] & (1 << (rank % 8)) != 0;
    let ranks: Vec<u32> = (0..of as u32).filter(is_set).collect();
    if ranks.len() != (members & !BITS) as usize {
        return Err(reader.refuse("a set of ranks has another size than it says"));
    }
    Ok(ranks)
}

fn read_list(reader: &mut Reader<'_>, members: usize, of: usize) -> Result<Vec<u32>> {
    let mut ranks = Vec::new();
    for _ in 0..members {
        let rank = reader.below(of, "it names a rank that does not exist")?;
        if ranks.last().is_some_and(|last| *last >= rank) {
            return Err(reader.refuse("a set of ranks is not in order"));
        }
        ranks.push(rank);
    }
    Ok(ranks)
}

/// Pages by their set of holders.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// Holders, class by class.
    pub(super) holders: Vec<u32>,
    /// Where the holders of each class end.
    ends: Vec<usize>,
    /// Pages of each class.
    pub(super) counts: Vec<u64>,
    numbers: HashMap<Vec<u32>, usize>,
}

impl Classes {
    /// How many sets of holders there are.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Where the holders of a class stand among all.
    pub(super) fn range(&self, class: usize) -> std::ops::Range<usize> {
        let start = class.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[class]
    }

    /// Adds pages of a set of holders; returns its class.
    pub(super) fn add(&mut self, holders: &[u32], pages: u64) -> usize {
        if let Some(class) = self.numbers.get(holders) {
            self.counts[*class] += pages;
            return *class;
        }
        let class = self.counts.len();
        self.holders.extend_from_slice(holders);
        self.ends.push(self.holders.len());
        self.counts.push(pages);
        self.numbers.insert(holders.to_vec(), class);
        class
    }

    /// All sets with their page counts, as bytes.
    pub(super) fn encode(&self, ranks: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (class, pages) in self.counts.iter().enumerate() {
            // A home numbers its hashes in 32 bits.
            put(&mut bytes, count(*pages as usize));
            put_ranks(&mut bytes, &self.holders[self.range(class)], ranks);
        }
        bytes
    }

    /// Adds the sets that another rank has encoded; returns class and pages of each.
    pub(super) fn add_encoded(
        &mut self,
        mut reader: Reader<'_>,
        ranks: usize,
    ) -> Result<Vec<(usize, u64)>> {
        let mut added = Vec::new();
        while !reader.is_empty() {
            let pages = u64::from(reader.number()?);
            let holders = read_ranks(&mut reader, ranks)?;
            if holders.len() < 2 {
                return Err(reader.refuse("a shared page has fewer than two holders"));
            }
            added.push((self.add(&holders, pages), pages));
        }
        Ok(added)
    }
}

#[cfg(test)]
mod tests;
