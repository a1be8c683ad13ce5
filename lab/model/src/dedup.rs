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
mod tests {
    use super::*;
    use crate::random::Random;
    use std::cell::Cell;

    /// Merges tables by recursive doubling and counts the comparisons of all sorts of one rank.
    fn comparisons(ranks: u64, threshold: usize) -> u64 {
        let count = Cell::new(0u64);
        let mut random = Random::new(ranks);
        let mut fresh = || -> Vec<u64> { (0..threshold).map(|_| random.below(1 << 40)).collect() };
        let mut table = fresh();
        for _ in 0..doublings(ranks) {
            // Tables arrive keyed by hash, in no order of frequency.
            let mut union: Vec<u64> = table.iter().copied().chain(fresh()).collect();
            union.sort_unstable_by(|a, b| {
                count.set(count.get() + 1);
                b.cmp(a)
            });
            union.truncate(threshold);
            table = union;
        }
        count.get()
    }

    #[test]
    fn counted_work_stays_within_a_constant_of_the_formula() {
        let unit = CollectiveDedup::new(0.0, 1.0).unwrap();
        for ranks in [2, 16, 1000] {
            for threshold in [64u64, 1024, 8192] {
                let bound = unit.time_s(0, ranks, threshold).unwrap();
                let ratio = comparisons(ranks, threshold as usize) as f64 / bound;
                // A sort of 2 T entries takes about 2 T lg(2 T) comparisons.
                assert!((0.8..3.0).contains(&ratio), "{ranks} {threshold}: {ratio}");
            }
        }
    }

    #[test]
    fn one_rank_pays_for_its_pages_only() {
        let cost = CollectiveDedup::new(1e-6, 1e-8).unwrap();
        assert_eq!(cost.time_s(1000, 1, 100).unwrap(), 1e-3);
        assert!(cost.time_s(1, 0, 1).unwrap_err().to_string().contains("ranks"));
        assert!(CollectiveDedup::new(-1.0, 0.0).is_err());
    }
}
