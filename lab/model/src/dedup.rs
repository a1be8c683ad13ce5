//! Cost of collective dedup by an all-reduce of the most frequent page hashes.
//!
//! Data: pages, ranks and the threshold -> seconds, from two measured constants.
//!
//! Hashing and writing pass over the pages; merging two tables of at most `threshold` entries
//! sorts them by frequency; the all-reduce merges once per doubling of the ranks. So the time is
//! `page_s * pages + merge_s * lg(ranks) * lg(threshold) * threshold`.
//!
//! Invariants:
//! - One rank merges nothing.

use standfast_model::Result;
use standfast_model::bounds::{at_least_one, non_negative};

/// Measured constants of one machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectiveDedup {
    page_s: f64,
    merge_s: f64,
}

impl CollectiveDedup {
    /// Seconds per page, and per comparison step of a merge.
    pub fn new(page_s: f64, merge_s: f64) -> Result<Self> {
        Ok(Self {
            page_s: non_negative("page_s", page_s)?,
            merge_s: non_negative("merge_s", merge_s)?,
        })
    }

    /// Time of one rank's dedup.
    pub fn time_s(&self, pages: u64, ranks: u64, threshold: u64) -> Result<f64> {
        let rounds = doublings(at_least_one("ranks", ranks)?);
        let entries = at_least_one("threshold", threshold)?;
        let merge = rounds as f64 * doublings(entries).max(1) as f64 * entries as f64;
        Ok(self.page_s * pages as f64 + self.merge_s * merge)
    }
}

/// `ceil(lg n)`: rounds of recursive doubling over `n` ranks.
fn doublings(n: u64) -> u32 {
    n.next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests;
