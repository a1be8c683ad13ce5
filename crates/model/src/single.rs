//! One level of checkpoints: Young's and Daly's intervals, expected time and efficiency.
//!
//! Data: MTTI, commit time, restore time -> [`Single`] -> interval, time, efficiency.
//!
//! Failures are memoryless with mean time to interrupt `M`; a commit of length `d` follows
//! every interval of work; a restore of length `R` follows every failure and may itself be
//! interrupted. Under these assumptions the expected time of a segment is exact, and the
//! formulas for the interval are expansions of its minimum; [`Single::best_interval_s`] is the
//! minimum itself.
//!
//! Invariants:
//! - Every field is finite, the MTTI and the commit time are above zero.

use crate::bounds::{non_negative, positive};
use crate::error::Result;

/// A job that writes all checkpoints to one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Single {
    mtti_s: f64,
    commit_s: f64,
    restore_s: f64,
}

impl Single {
    /// Checks and keeps the three times.
    pub fn new(mtti_s: f64, commit_s: f64, restore_s: f64) -> Result<Self> {
        Ok(Self {
            mtti_s: positive("mtti_s", mtti_s)?,
            commit_s: positive("commit_s", commit_s)?,
            restore_s: non_negative("restore_s", restore_s)?,
        })
    }

    /// Young's interval, `sqrt(2 d M)`.
    pub fn young_interval_s(&self) -> f64 {
        (2.0 * self.commit_s * self.mtti_s).sqrt()
    }

    /// Daly's higher-order interval; the MTTI itself where a commit takes twice the MTTI or more.
    pub fn daly_interval_s(&self) -> f64 {
        if self.commit_s >= 2.0 * self.mtti_s {
            return self.mtti_s;
        }
        let x = self.commit_s / (2.0 * self.mtti_s);
        self.young_interval_s() * (1.0 + x.sqrt() / 3.0 + x / 9.0) - self.commit_s
    }

    /// The interval with the least expected time, found from the derivative.
    ///
    /// With `y = 1 - t/M` the condition is `y e^-y = e^-(1 + d/M)`, which has one root in (0, 1).
    /// The restore time plays no part: it multiplies every interval's time alike.
    pub fn best_interval_s(&self) -> f64 {
        let target = -(1.0 + self.commit_s / self.mtti_s);
        let (mut low, mut high) = (f64::MIN_POSITIVE, 1.0);
        // Bisection on ln(y) - y, which rises on (0, 1); Newton goes astray near 1.
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if middle.ln() - middle < target {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.mtti_s * (1.0 - 0.5 * (low + high))
    }

    /// Expected wall-clock time to finish `work_s` of work with the given interval.
    pub fn expected_time_s(&self, work_s: f64, interval_s: f64) -> Result<f64> {
        let work = non_negative("work_s", work_s)?;
        let interval = positive("interval_s", interval_s)?;
        let m = self.mtti_s;
        let segment = m * (self.restore_s / m).exp() * ((interval + self.commit_s) / m).exp_m1();
        Ok(segment * work / interval)
    }

    /// Work over expected time: the share of the machine that computes something new.
    pub fn efficiency(&self, interval_s: f64) -> Result<f64> {
        Ok(1.0 / self.expected_time_s(1.0, interval_s)?)
    }
}

/// Best efficiency as a function of MTTI over commit time, with restores as long as commits.
pub fn efficiency_of_ratio(mtti_over_commit: f64) -> Result<f64> {
    let ratio = positive("mtti_over_commit", mtti_over_commit)?;
    let single = Single::new(ratio, 1.0, 1.0)?;
    single.efficiency(single.daly_interval_s())
}

#[cfg(test)]
mod tests;
