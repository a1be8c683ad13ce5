//! The planner inside a running job: `interval = "auto"`.
//!
//! Data: measured commit times, drain times, failures, and the clock of the caller ->
//! [`Live::interval_s`], [`Live::need_checkpoint`].
//!
//! The MTTI starts from a given value that counts like a few failures, and moves with what is
//! seen. Commit and drain times are smoothed, so that one slow checkpoint does not swing the
//! interval. Before a drain was measured the interval is that of one level; from then on it is
//! that of a local level with a background drain, and one checkpoint in so many is drained as
//! bandwidth allows.
//!
//! Invariants:
//! - No clock is read here: all times are passed in, in seconds of one monotonic clock.
//! - The interval stays within its bounds.

use crate::bounds::{non_negative, positive, share};
use crate::drain::{Drained, Visibility};
use crate::error::{ModelError, Result};
use crate::levels::{Hierarchy, Level, Pattern};
use crate::single::Single;

/// The given MTTI counts like this many failures.
const PRIOR_FAILURES: f64 = 2.0;
/// Weight of a new measurement.
const NEW: f64 = 0.3;
/// Share of failures that only the global level repairs, as Moody and others (2010) observed.
const FAR_SHARE: f64 = 0.15;
/// Share of the MTTI after which the first checkpoint is due, before any cost is known.
const FIRST_SHARE: f64 = 0.02;

/// A planner that learns while the job runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    prior_mtti_s: f64,
    started_s: f64,
    failures: u64,
    far_share: f64,
    commit_s: Option<f64>,
    drain_s: Option<f64>,
    last_s: f64,
    low_s: f64,
    high_s: f64,
}

impl Live {
    /// Starts at `now_s` with an expected MTTI.
    pub fn new(mtti_s: f64, now_s: f64) -> Result<Self> {
        Ok(Self {
            prior_mtti_s: positive("mtti_s", mtti_s)?,
            started_s: non_negative("now_s", now_s)?,
            failures: 0,
            far_share: FAR_SHARE,
            commit_s: None,
            drain_s: None,
            last_s: now_s,
            low_s: 1.0,
            high_s: f64::MAX,
        })
    }

    /// The share of failures that only the global level repairs.
    pub fn with_far_share(mut self, far_share: f64) -> Result<Self> {
        self.far_share = share("far_share", far_share)?;
        Ok(self)
    }

    /// Keeps the interval between two values.
    pub fn with_bounds(mut self, low_s: f64, high_s: f64) -> Result<Self> {
        self.low_s = positive("interval_min_s", low_s)?;
        self.high_s = positive("interval_max_s", high_s)?;
        if low_s > high_s {
            return Err(ModelError::Pair {
                field: "interval_min_s",
                value: low_s,
                other: "interval_max_s",
                limit: high_s,
                rule: "the least interval cannot exceed the greatest",
            });
        }
        Ok(self)
    }

    /// A checkpoint ended at `now_s` after blocking the job for `blocked_s`.
    pub fn checkpoint_done(&mut self, now_s: f64, blocked_s: f64) -> Result<()> {
        let measured = non_negative("blocked_s", blocked_s)?;
        self.commit_s = Some(smoothed(self.commit_s, measured));
        self.last_s = now_s;
        Ok(())
    }

    /// A drain took this long, from taking up a checkpoint to its arrival.
    pub fn drain_done(&mut self, drain_s: f64) -> Result<()> {
        let measured = non_negative("drain_s", drain_s)?;
        self.drain_s = Some(smoothed(self.drain_s, measured));
        Ok(())
    }

    /// The job was struck, and has been restored at `now_s`.
    pub fn failure_seen(&mut self, now_s: f64) {
        self.failures += 1;
        self.last_s = now_s;
    }

    /// The MTTI as believed now.
    pub fn mtti_s(&self, now_s: f64) -> f64 {
        let seen = (now_s - self.started_s).max(0.0);
        (PRIOR_FAILURES * self.prior_mtti_s + seen) / (PRIOR_FAILURES + self.failures as f64)
    }

    /// Work between checkpoints that costs least, as believed now.
    pub fn interval_s(&self, now_s: f64) -> f64 {
        let mtti = self.mtti_s(now_s);
        let best = match (self.commit_s, self.drained(mtti)) {
            (None, _) => FIRST_SHARE * mtti,
            (Some(_), Some(drained)) => drained.best_pattern().interval_s,
            (Some(commit), None) => Single::new(mtti, least_commit_s(commit, mtti), 0.0)
                .map_or(mtti, |single| single.best_interval_s()),
        };
        best.clamp(self.low_s, self.high_s)
    }

    /// The job with a drain, where both a checkpoint and a drain were measured. A restore takes
    /// about as long as what it undoes.
    fn drained(&self, mtti_s: f64) -> Option<Drained> {
        let (commit, drain) = (least_commit_s(self.commit_s?, mtti_s), self.drain_s?);
        let near = Level::new(commit, commit, 1.0 - self.far_share).ok()?;
        let far = Level::new(0.0, drain, self.far_share).ok()?;
        let hierarchy = Hierarchy::new(mtti_s, vec![near, far]).ok()?;
        Drained::new(hierarchy, drain, Visibility::Published).ok()
    }

    /// Whether it is time for a checkpoint.
    pub fn need_checkpoint(&self, now_s: f64) -> bool {
        now_s - self.last_s >= self.interval_s(now_s)
    }

    /// One checkpoint in how many can be drained; none before a drain was measured.
    pub fn drain_every(&self, now_s: f64) -> Option<u64> {
        let drained = self.drained(self.mtti_s(now_s))?;
        let near = Pattern { interval_s: self.interval_s(now_s), every: vec![] };
        Some(drained.units_per_drain(&near))
    }
}

/// A commit that costs nothing measurable still should not run all the time.
fn least_commit_s(commit_s: f64, mtti_s: f64) -> f64 {
    commit_s.max(1e-6 * mtti_s)
}

fn smoothed(before: Option<f64>, measured: f64) -> f64 {
    before.map_or(measured, |old| (1.0 - NEW) * old + NEW * measured)
}

#[cfg(test)]
mod tests;
