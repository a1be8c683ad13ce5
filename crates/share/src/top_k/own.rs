//! The candidates of this rank by ascending hash: the table it starts with, and what it finds in
//! the view.
//!
//! Sorting scatters the hashes by their first bits, then sorts what lies together. Hashes are
//! spread evenly, so that each lot is small and stays in the processor's cache; candidates in
//! their sorted order would be read from memory one by one. Hashes that are not spread cost no
//! more than sorting all of them at once.
//!
//! Invariants:
//! - Afterwards nothing is looked up by candidate: all passes go straight through memory.

use standfast_comm::{Error, Result};

use super::merge::{COUNT_BYTES, entries, key};

/// So many lots at most: more would not fit into the cache while hashes are scattered.
const LOT_BITS_MAX: u32 = 11;
/// About so many hashes in a lot.
const LOT: usize = 32;

/// An entry of the view whose page this rank holds.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// Number of the entry.
    pub(super) entry: u32,
    pub(super) owner: u32,
    pub(super) candidate: u32,
}

/// This rank's candidates by ascending hash.
#[derive(Debug)]
pub(super) struct Own {
    hash_bytes: usize,
    /// As a table in which each entry was seen once, with the candidate instead of a rank.
    entries: Vec<u8>,
}

impl Own {
    /// None yet, with hashes of so many bytes.
    pub(super) fn new(hash_bytes: usize) -> Self {
        Self { hash_bytes, entries: Vec::new() }
    }

    /// Takes other candidates, by their hashes.
    pub(super) fn sort(&mut self, hashes: &[u8]) {
        assert!(hashes.len().is_multiple_of(self.hash_bytes), "whole hashes");
        match self.hash_bytes {
            16 => sort::<16, 24>(hashes, &mut self.entries),
            20 => sort::<20, 28>(hashes, &mut self.entries),
            32 => sort::<32, 40>(hashes, &mut self.entries),
            other => unreachable!("no hash has {other} bytes"),
        }
    }

    /// Writes the table that this rank starts with over another.
    pub(super) fn write_table(&self, rank: u32, table: &mut Vec<u8>) {
        table.clone_from(&self.entries);
        for entry in table.chunks_exact_mut(self.hash_bytes + COUNT_BYTES) {
            entry[self.hash_bytes + 4..].copy_from_slice(&rank.to_le_bytes());
        }
    }

    /// The bytes of memory that are kept for the next ones.
    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// The entries of the view whose pages this rank holds, in order.
    pub(super) fn held(&self, view: &[u8], rank: usize) -> Result<Vec<Held>> {
        let mut held = Vec::new();
        let mut own = entries(&self.entries, self.hash_bytes).peekable();
        for (number, entry) in (0u32..).zip(entries(view, self.hash_bytes)) {
            let sought = key(entry.hash);
            let order = |hash: &[u8]| key(hash).cmp(&sought).then_with(|| hash.cmp(entry.hash));
            while own.next_if(|own| order(own.hash).is_lt()).is_some() {}
            if let Some(own) = own.next_if(|own| own.hash == entry.hash) {
                held.push(Held { entry: number, owner: entry.rank, candidate: own.rank });
            } else if entry.rank as usize == rank {
                let why = "it gives a page to a rank that does not hold it";
                return Err(Error::Message { rank, from: rank, why });
            }
        }
        Ok(held)
    }
}

/// Writes entries of all hashes, sorted; hashes have `N` bytes and entries `S`.
fn sort<const N: usize, const S: usize>(hashes: &[u8], bytes: &mut Vec<u8>) {
    let (hashes, _) = hashes.as_chunks::<N>();
    let bits = (hashes.len() / LOT).max(2).ilog2().min(LOT_BITS_MAX);
    let lot = |hash: &[u8; N]| (key(hash) >> (64 - bits)) as usize;
    let mut ends = vec![0; 1 << bits];
    hashes.iter().for_each(|hash| ends[lot(hash)] += 1);
    let mut end = 0;
    for of_lot in &mut ends {
        end += *of_lot;
        *of_lot = end - *of_lot;
    }
    // Each lot's end starts at its beginning and moves as the lot fills.
    bytes.resize(hashes.len() * S, 0);
    let (entries, _) = bytes.as_chunks_mut::<S>();
    for (hash, candidate) in hashes.iter().zip(0u32..) {
        let end = &mut ends[lot(hash)];
        let entry = &mut entries[*end];
        entry[..N].copy_from_slice(hash);
        entry[N..N + 4].copy_from_slice(&1u32.to_le_bytes());
        entry[N + 4..].copy_from_slice(&candidate.to_le_bytes());
        *end += 1;
    }
    let mut start = 0;
    for end in ends {
        entries[start..end]
            .sort_unstable_by(|a, b| key(a).cmp(&key(b)).then_with(|| a[..N].cmp(&b[..N])));
        start = end;
    }
}

#[cfg(test)]
mod tests;
