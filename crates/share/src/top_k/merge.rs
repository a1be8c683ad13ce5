//! Merging two tables of hash frequencies (Nicolae 2013, Algorithm 2).
//!
//! An entry is a hash, its frequency and the rank that shall store it; a table is its entries end
//! to end, by ascending hash, as bytes: it travels as it is.
//!
//! Hashes that only one side has keep their rank and load it. Then each hash that both have goes
//! to the less loaded of the two ranks. A result beyond the threshold loses its least frequent
//! entries; among equals those of the smallest hashes stay, on every rank the same ones, so that
//! what is common to several ranks survives in all of them.
//!
//! Invariants:
//! - The rank of an entry holds the page: it has brought the entry in.
//! - The result depends on the two tables alone.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use standfast_comm::{Error, Result};

/// Frequency and rank behind each hash.
pub(super) const COUNT_BYTES: usize = 8;

/// One entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) hash: &'a [u8],
    pub(super) frequency: u32,
    pub(super) rank: u32,
}

/// The entries of a table.
pub(super) fn entries(table: &[u8], hash_bytes: usize) -> impl Iterator<Item = Entry<'_>> {
    table.chunks_exact(hash_bytes + COUNT_BYTES).map(move |bytes| {
        let (hash, counts) = bytes.split_at(hash_bytes);
        Entry { hash, frequency: number(counts), rank: number(&counts[4..]) }
    })
}

/// The first bytes of a hash, or of the entry that begins with it. They decide almost every
/// comparison.
pub(super) fn key(hash: &[u8]) -> u64 {
    u64::from_be_bytes(hash[..8].try_into().expect("eight bytes"))
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))
}

/// What tables have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) hash_bytes: usize,
    pub(super) ranks: usize,
    /// Most entries of a result.
    pub(super) threshold: usize,
    /// Who merges: named in errors.
    pub(super) rank: usize,
}

impl Shape {
    /// How many entries a table has.
    pub(super) fn len(&self, table: &[u8]) -> usize {
        table.len() / (self.hash_bytes + COUNT_BYTES)
    }

    /// Refuses a table that no rank can have made.
    pub(super) fn check(&self, table: &[u8]) -> Result<()> {
        match self.hash_bytes {
            16 => Merger::<16, 24>(self).rows(table).map(|_| ()),
            20 => Merger::<20, 28>(self).rows(table).map(|_| ()),
            32 => Merger::<32, 40>(self).rows(table).map(|_| ()),
            other => unreachable!("no hash has {other} bytes"),
        }
    }

    /// The union of two tables, cut to the threshold. `result` is written over.
    pub(super) fn merge(&self, left: &[u8], right: &[u8], result: &mut Vec<u8>) -> Result<()> {
        match self.hash_bytes {
            16 => Merger::<16, 24>(self).merge(left, right, result),
            20 => Merger::<20, 28>(self).merge(left, right, result),
            32 => Merger::<32, 40>(self).merge(left, right, result),
            other => unreachable!("no hash has {other} bytes"),
        }
    }

    // A reduction does not tell whose table it was.
    fn refuse(&self, why: &'static str) -> Error {
        Error::Message { rank: self.rank, from: self.rank, why }
    }
}

/// Merges tables with hashes of `N` bytes and entries of `S`: with lengths known, entries are
/// compared and copied by a few moves instead of calls.
struct Merger<'a, const N: usize, const S: usize>(&'a Shape);

/// A row of the union: an entry of one side, or of both.
enum Row<'a, const S: usize> {
    One(&'a [u8; S]),
    Both(&'a [u8; S], &'a [u8; S]),
}

impl<const N: usize, const S: usize> Merger<'_, N, S> {
    fn frequency(row: &[u8; S]) -> usize {
        number(&row[N..]) as usize
    }

    fn owner(row: &[u8; S]) -> usize {
        number(&row[N + 4..]) as usize
    }

    /// The entries of a table that some rank can have made.
    fn rows<'t>(&self, table: &'t [u8]) -> Result<&'t [[u8; S]]> {
        let (rows, rest) = table.as_chunks::<S>();
        if !rest.is_empty() {
            return Err(self.0.refuse("a table of frequencies is cut off"));
        }
        let in_order =
            |a: &[u8; S], b: &[u8; S]| key(a) < key(b) || (key(a) == key(b) && a[..N] < b[..N]);
        if !rows.is_sorted_by(in_order) {
            return Err(self.0.refuse("a table of frequencies is not in order"));
        }
        let ranks = self.0.ranks;
        // All of them are looked at without a branch: tables are hardly ever wrong.
        let known = rows.iter().fold(true, |all, row| all & (Self::owner(row) < ranks));
        if !known {
            return Err(self.0.refuse("it names a rank that does not exist"));
        }
        let possible = |row| Self::frequency(row).wrapping_sub(1) < ranks;
        if !rows.iter().fold(true, |all, row| all & possible(row)) {
            return Err(self.0.refuse("a frequency is above the number of ranks"));
        }
        Ok(rows)
    }

    /// Twice over the union: what is on one side loads its rank, and frequencies are counted;
    /// then owners are chosen for what is on both sides, and what is frequent enough is written.
    /// The union itself is never in memory.
    fn merge(&self, left: &[u8], right: &[u8], result: &mut Vec<u8>) -> Result<()> {
        let (left, right) = (self.rows(left)?, self.rows(right)?);
        let mut loads = vec![0u64; self.0.ranks];
        let mut frequencies = vec![0usize; 2 * self.0.ranks + 1];
        Self::for_each_row(left, right, |row| {
            match row {
                Row::One(row) => {
                    loads[Self::owner(row)] += 1;
                    frequencies[Self::frequency(row)] += 1;
                }
                Row::Both(left, right) => {
                    frequencies[Self::frequency(left) + Self::frequency(right)] += 1;
                }
            }
            ControlFlow::Continue(())
        });
        if frequencies[self.0.ranks + 1..].iter().any(|count| *count > 0) {
            return Err(self.0.refuse("a page has more holders than there are ranks"));
        }
        let mut cut = Cut::new(&frequencies, self.0.threshold);
        let kept = S * frequencies.iter().sum::<usize>().min(self.0.threshold);
        result.clear();
        result.reserve(kept);
        Self::for_each_row(left, right, |row| {
            match row {
                Row::One(row) => {
                    if cut.keeps(Self::frequency(row)) {
                        result.extend_from_slice(row);
                    }
                }
                Row::Both(left, right) => {
                    let (one, other) = (Self::owner(left), Self::owner(right));
                    let owner = if loads[one] < loads[other] { one } else { other };
                    loads[owner] += 1;
                    let frequency = Self::frequency(left) + Self::frequency(right);
                    if cut.keeps(frequency) {
                        let mut row = *left;
                        row[N..N + 4].copy_from_slice(&(frequency as u32).to_le_bytes());
                        row[N + 4..].copy_from_slice(&(owner as u32).to_le_bytes());
                        result.extend_from_slice(&row);
                    }
                }
            }
            if result.len() < kept { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        Ok(())
    }

    /// Goes through the union of two tables by ascending hash, until told to stop.
    ///
    /// Which side is next is as good as random, so a branch on it would be guessed wrong half of
    /// the time: the row and both steps are computed from the comparison instead.
    fn for_each_row<'t>(
        left: &'t [[u8; S]],
        right: &'t [[u8; S]],
        mut each: impl FnMut(Row<'t, S>) -> ControlFlow<()>,
    ) {
        let (mut at_left, mut at_right) = (0, 0);
        while let (Some(one), Some(other)) = (left.get(at_left), right.get(at_right)) {
            let (key, other_key) = (key(one), key(other));
            let mut is_less = key < other_key;
            let mut both = false;
            if key == other_key {
                let order = one[..N].cmp(&other[..N]);
                (is_less, both) = (order.is_lt(), order.is_eq());
            }
            let row = if both {
                Row::Both(one, other)
            } else {
                Row::One(std::hint::select_unpredictable(is_less, one, other))
            };
            if each(row).is_break() {
                return;
            }
            at_left += usize::from(is_less | both);
            at_right += usize::from(!is_less);
        }
        let rest = left[at_left..].iter().chain(&right[at_right..]);
        let _ = rest.map(Row::One).try_for_each(each);
    }
}

/// Which entries stay: those above a frequency, and of that one the first few.
struct Cut {
    least: usize,
    room: usize,
}

impl Cut {
    /// Frequencies are at most the number of ranks, so they are counted instead of sorted.
    fn new(frequencies: &[usize], threshold: usize) -> Self {
        let mut room = threshold;
        for (frequency, count) in frequencies.iter().enumerate().rev() {
            if *count > room {
                return Self { least: frequency, room };
            }
            room -= count;
        }
        Self { least: 0, room: 0 }
    }

    fn keeps(&mut self, frequency: usize) -> bool {
        match frequency.cmp(&self.least) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => {
                let keeps = self.room > 0;
                self.room -= usize::from(keeps);
                keeps
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
