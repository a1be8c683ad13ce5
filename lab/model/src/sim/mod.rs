//! Discrete-event simulation of a job under checkpoints: the independent check of the models.
//!
//! Data: [`Scenario`] (levels, pattern, failures, perhaps a drain) and [`Length`] -> a timeline
//! -> [`Estimate`] with a stated confidence interval.
//!
//! The simulator knows nothing of the closed forms: it plays segments, commits, strikes,
//! restores and drains on a clock, remembers which position each level holds, and counts. Time
//! jumps from strike to strike over equal segments, so a month of a hundred thousand nodes takes
//! milliseconds.
//!
//! Invariants:
//! - The same seed gives the same run.
//! - A position on a far level is never ahead of one on a nearer level.

mod estimate;
mod timeline;

pub(crate) use estimate::STUDENT_99;
pub use estimate::{Estimate, Length};

use crate::failures::FailureModel;
use standfast_model::bounds::positive;
use standfast_model::levels::{Hierarchy, Pattern};
use standfast_model::{ModelError, Result};

/// What a drain keeps when a failure strikes that does not destroy its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainMark {
    /// It goes on from where it stood at the restored commit, and publishes at a commit.
    Commit,
    /// It goes on from where it was, and publishes at once.
    Continuous,
}

/// The background drain of a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrainPlay {
    /// Time for one checkpoint when nothing pauses it.
    pub drain_s: f64,
    /// What it keeps over failures.
    pub mark: DrainMark,
}

/// Everything a simulated job needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    hierarchy: Hierarchy,
    pattern: Pattern,
    drain: Option<DrainPlay>,
    failures: FailureModel,
}

impl Scenario {
    /// All levels are written by the host; the pattern has a ratio for every step between levels.
    pub fn host(hierarchy: Hierarchy, pattern: Pattern, failures: FailureModel) -> Result<Self> {
        hierarchy.check(&pattern)?;
        Self::checked(hierarchy, pattern, None, failures)
    }

    /// The last level is drained; the pattern covers the near levels only.
    pub fn drained(
        hierarchy: Hierarchy,
        near: Pattern,
        drain: DrainPlay,
        failures: FailureModel,
    ) -> Result<Self> {
        let mut full = near.clone();
        full.every.push(1);
        hierarchy.check(&full)?;
        positive("drain_s", drain.drain_s)?;
        Self::checked(hierarchy, near, Some(drain), failures)
    }

    fn checked(
        hierarchy: Hierarchy,
        pattern: Pattern,
        drain: Option<DrainPlay>,
        failures: FailureModel,
    ) -> Result<Self> {
        if failures.levels() != hierarchy.levels().len() {
            return Err(ModelError::Pair {
                field: "failure classes",
                value: failures.levels() as f64,
                other: "levels",
                limit: hierarchy.levels().len() as f64,
                rule: "every class needs its level",
            });
        }
        Ok(Self { hierarchy, pattern, drain, failures })
    }

    /// Plays the scenario and estimates its long-run efficiency.
    pub fn estimate(&self, length: &Length, seed: u64) -> Result<Estimate> {
        estimate::estimate(self, length, seed)
    }
}

#[cfg(test)]
mod tests;
