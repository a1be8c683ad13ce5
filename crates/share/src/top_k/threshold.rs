//! The threshold: how many of the most frequent pages a reduction follows.
//!
//! Fixed, or adapted from checkpoint to checkpoint. With `n` ranks the reduction has
//! `rounds = ceil(lg n)` merges of at most `2 T` entries, so with a measured cost of `entry_s` an
//! entry it takes `2 * T * rounds * entry_s`. Storing the candidates of a rank takes
//! `pages * page_s`. The reduction shall take at most a `share` of that:
//!
//! ```text
//! affordable = share * pages * page_s / (2 * rounds * entry_s)
//! needed     = 2 * shared      shared: entries of several holders in the last view;
//!                              a view in which all are shared was too small: 2 * its threshold
//! T          = clamp(min(affordable, needed), least, most)
//! ```
//! `pages` is the mean over all ranks; `entry_s` is each rank's moving average (half of it the last
//! reduction, waiting included), and the largest of all ranks counts. Before the first reduction
//! there is no need known, and `entry_s` is an estimate.
//!
//! Invariants:
//! - All ranks use the same threshold: it is computed from sums and maxima that all know.

use std::time::Duration;

use standfast_comm::collective::{all_max, all_sum};
use standfast_comm::{Comm, Result};

/// Cost of an entry before any was measured.
const ENTRY_S: f64 = 30e-9;

/// How many of the most frequent pages are followed.
#[derive(Clone, Debug)]
pub struct Threshold {
    least: u32,
    most: u32,
    /// Time for the reduction, per candidate page: `share * page_s`.
    page_budget_s: f64,
    entry_s: f64,
    needed: Option<u64>,
}

impl Threshold {
    /// Always so many.
    ///
    /// # Panics
    /// If it is zero.
    pub fn fixed(entries: u32) -> Self {
        assert!(entries > 0, "at least one page is followed");
        Self { least: entries, most: entries, page_budget_s: 0.0, entry_s: ENTRY_S, needed: None }
    }

    /// As many as pay, within bounds: the reduction may take `share` of the time that storing all
    /// candidates would, at `page_s` a page. All ranks give the same values.
    ///
    /// # Panics
    /// If the bounds are not in order or zero, or a cost is not a positive number.
    pub fn adaptive(least: u32, most: u32, page_s: f64, share: f64) -> Self {
        assert!(0 < least && least <= most, "bounds are in order");
        assert!(page_s.is_finite() && page_s > 0.0, "storing a page takes time");
        assert!(share.is_finite() && share > 0.0, "a reduction takes time");
        Self { least, most, page_budget_s: share * page_s, entry_s: ENTRY_S, needed: None }
    }

    /// The threshold for the next reduction, with so many candidates here. Collective.
    pub(super) fn agree(&self, comm: &dyn Comm, candidates: u64) -> Result<usize> {
        if self.least == self.most {
            return Ok(self.least as usize);
        }
        let pages = all_sum(comm, candidates)? as f64 / comm.size() as f64;
        let entry_fs = all_max(comm, (self.entry_s * 1e15) as u64)?;
        let entries = self.affordable(pages, comm.size(), entry_fs as f64 * 1e-15);
        let entries = entries.min(self.needed.unwrap_or(u64::MAX));
        Ok(entries.clamp(self.least.into(), self.most.into()) as usize)
    }

    fn affordable(&self, pages: f64, ranks: usize, entry_s: f64) -> u64 {
        let rounds = f64::from(ranks.next_power_of_two().trailing_zeros().max(1));
        (self.page_budget_s * pages / (2.0 * rounds * entry_s.max(1e-12))) as u64
    }

    /// Takes in a reduction: the entries that were merged here and the time it took, and of the
    /// view that all ranks share, how many entries were of several holders.
    pub(super) fn learn(&mut self, merged: u64, time: Duration, threshold: usize, shared: usize) {
        if merged > 0 {
            self.entry_s = (self.entry_s + time.as_secs_f64() / merged as f64) / 2.0;
        }
        self.needed = Some(2 * shared.min(threshold) as u64);
    }
}

#[cfg(test)]
mod tests;
