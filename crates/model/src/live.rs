//! The planner inside a running job: `interval = "auto"`.
//!
//! Data: measured commit times, drain times, and the clock of the caller -> [`Live::interval_s`].
//!
//! The MTTI starts from a given value that counts like a few failures, and grows while none is
//! seen: a process that is struck does not go on. Commit and drain times are smoothed, so that one slow checkpoint does not swing the
//! interval. Before a drain was measured the interval is that of one level; from then on it is
//! that of a local level with a background drain.
//!
//! Invariants:
//! - No clock is read here: all times are passed in, in seconds of one monotonic clock.
//! - The interval is at least a second.

use crate::bounds::{non_negative, positive, share};
use crate::drain::{Drained, Visibility};
use crate::error::Result;
use crate::levels::{Hierarchy, Level};
use crate::single::Single;

/// The given MTTI counts like this many failures.
const PRIOR_FAILURES: f64 = 2.0;
/// Weight of a new measurement.
const NEW: f64 = 0.3;
/// Share of failures that only the global level repairs, as Moody and others (2010) observed.
const FAR_SHARE: f64 = 0.15;
/// Share of the MTTI after which the first checkpoint is due, before any cost is known.
const FIRST_SHARE: f64 = 0.02;
/// The shortest interval.
const LEAST_S: f64 = 1.0;

/// A planner that learns while the job runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    prior_mtti_s: f64,
    started_s: f64,
    far_share: f64,
    commit_s: Option<f64>,
    drain_s: Option<f64>,
}

impl Live {
    /// Starts at `now_s` with an expected MTTI.
    pub fn new(mtti_s: f64, now_s: f64) -> Result<Self> {
        Ok(Self {
            prior_mtti_s: positive("mtti_s", mtti_s)?,
            started_s: non_negative("now_s", now_s)?,
            far_share: FAR_SHARE,
            commit_s: None,
            drain_s: None,
        })
    }

    /// The share of failures that only the global level repairs.
    pub fn with_far_share(mut self, far_share: f64) -> Result<Self> {
        self.far_share = share("far_share", far_share)?;
        Ok(self)
    }

    /// A checkpoint blocked the job for `blocked_s`.
    pub fn checkpoint_done(&mut self, blocked_s: f64) -> Result<()> {
        let measured = non_negative("blocked_s", blocked_s)?;
        self.commit_s = Some(smoothed(self.commit_s, measured));
        Ok(())
    }

    /// A drain took this long, from taking up a checkpoint to its arrival.
    pub fn drain_done(&mut self, drain_s: f64) -> Result<()> {
        let measured = non_negative("drain_s", drain_s)?;
        self.drain_s = Some(smoothed(self.drain_s, measured));
        Ok(())
    }

    /// The MTTI as believed now.
    pub fn mtti_s(&self, now_s: f64) -> f64 {
        let seen = (now_s - self.started_s).max(0.0);
        self.prior_mtti_s + seen / PRIOR_FAILURES
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
        best.max(LEAST_S)
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
