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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interval_settles_at_the_optimum() {
        let mut live = Live::new(3600.0, 0.0).unwrap();
        let mut now = 0.0;
        for _ in 0..20 {
            // Quiet time makes the interval grow a little while it passes.
            let due = now + live.interval_s(now);
            assert!(!live.need_checkpoint(due - 1.0));
            now = due * 1.02;
            assert!(live.need_checkpoint(now));
            now += 4.0;
            live.checkpoint_done(now, 4.0).unwrap();
            assert!(!live.need_checkpoint(now));
        }
        let expected = Single::new(live.mtti_s(now), 4.0, 0.0).unwrap().best_interval_s();
        assert!((live.interval_s(now) / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn failures_shorten_and_quiet_lengthens_the_interval() {
        let mut live = Live::new(3600.0, 0.0).unwrap();
        live.checkpoint_done(10.0, 4.0).unwrap();
        let before = live.interval_s(100.0);
        let quiet = live.interval_s(40_000.0);
        assert!(quiet > before);
        for _ in 0..40 {
            live.failure_seen(40_000.0);
        }
        assert!(live.interval_s(40_000.0) < before);
    }

    #[test]
    fn drains_and_bounds_are_kept() {
        let mut live = Live::new(3600.0, 0.0).unwrap().with_bounds(30.0, 60.0).unwrap();
        live.checkpoint_done(1.0, 9.0).unwrap();
        assert_eq!(live.interval_s(1.0), 60.0);
        assert_eq!(live.drain_every(1.0), None);
        live.drain_done(150.0).unwrap();
        assert_eq!(live.drain_every(1.0), Some(3));
        assert!(live.checkpoint_done(2.0, f64::NAN).is_err());
        let text = Live::new(1.0, 0.0).unwrap().with_bounds(9.0, 3.0).unwrap_err().to_string();
        assert!(text.contains("interval_min_s"), "{text}");
    }

    #[test]
    fn a_measured_drain_moves_the_interval_to_the_best_for_it() {
        let mut live = Live::new(3600.0, 0.0).unwrap();
        live.checkpoint_done(1.0, 4.0).unwrap();
        let alone = live.interval_s(1.0);
        let mut efficiencies = Vec::new();
        for drain_s in [10.0, 120.0, 900.0] {
            let mut live = live.clone();
            live.drain_done(drain_s).unwrap();
            let drained = live.drained(live.mtti_s(1.0)).unwrap();
            let at = |interval_s| {
                drained.outcome(&Pattern { interval_s, every: vec![] }).unwrap().efficiency
            };
            let chosen = live.interval_s(1.0);
            assert_ne!(chosen, alone);
            for other in [alone, chosen * 0.7, chosen * 1.4] {
                assert!(at(chosen) >= at(other), "{drain_s}: {chosen} {other}");
            }
            let units = drained.units_per_drain(&Pattern { interval_s: chosen, every: vec![] });
            assert_eq!(live.drain_every(1.0), Some(units));
            efficiencies.push(at(chosen));
        }
        assert!(efficiencies.windows(2).all(|pair| pair[1] < pair[0]), "{efficiencies:?}");
        // Where nothing is lost but what the local level repairs, drains do not matter.
        let mut near = live.clone().with_far_share(0.0).unwrap();
        near.drain_done(900.0).unwrap();
        assert!((near.interval_s(1.0) / alone - 1.0).abs() < 0.01);
        assert!(Live::new(1.0, 0.0).unwrap().with_far_share(1.5).is_err());
    }

    proptest! {
        #[test]
        fn a_dearer_checkpoint_never_comes_sooner(mtti in 60.0f64..1e6, cost in 0.0f64..100.0) {
            let mut cheap = Live::new(mtti, 0.0).unwrap();
            let mut dear = cheap.clone();
            cheap.checkpoint_done(1.0, cost).unwrap();
            dear.checkpoint_done(1.0, cost + 1.0).unwrap();
            prop_assert!(dear.interval_s(1.0) >= cheap.interval_s(1.0));
        }
    }
}
