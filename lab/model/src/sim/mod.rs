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
mod tests {
    use super::*;
    use crate::failures::{Classes, Lifetimes};
    use standfast_model::drain::{Drained, Visibility};
    use standfast_model::levels::Level;

    fn machine(near: f64) -> Hierarchy {
        let levels = vec![
            Level::new(8.0, 8.0, near).unwrap(),
            Level::new(300.0, 300.0, 1.0 - near).unwrap(),
        ];
        Hierarchy::new(1800.0, levels).unwrap()
    }

    fn failures(lifetimes: Lifetimes, near: f64) -> FailureModel {
        FailureModel::new(1800.0, lifetimes, Classes::Shares(vec![near, 1.0 - near])).unwrap()
    }

    #[test]
    fn restores_take_the_share_the_model_says() {
        let pattern = Pattern { interval_s: 150.0, every: vec![6] };
        let outcome = machine(0.7).outcome(&pattern).unwrap();
        let scenario =
            Scenario::host(machine(0.7), pattern, failures(Lifetimes::Exponential, 0.7)).unwrap();
        let length = Length::batches_of_s(1e6).unwrap();
        let seen = scenario.estimate(&length, 4).unwrap();
        for level in 0..2 {
            let expected = outcome.breakdown.restore[level];
            assert!(
                (seen.restore[level] / expected - 1.0).abs() < 0.05,
                "level {level}: {} {expected}",
                seen.restore[level]
            );
        }
    }

    #[test]
    fn weibull_of_shape_one_is_memoryless() {
        let pattern = Pattern { interval_s: 150.0, every: vec![6] };
        let closed = machine(0.7).outcome(&pattern).unwrap().efficiency;
        let lifetimes = Lifetimes::Weibull { nodes: 200, shape: 1.0 };
        let scenario = Scenario::host(machine(0.7), pattern, failures(lifetimes, 0.7)).unwrap();
        let seen = scenario.estimate(&Length::batches_of_s(1e6).unwrap(), 9).unwrap();
        assert!(seen.agrees_with(closed), "{seen:?} {closed}");
    }

    #[test]
    fn a_drain_that_keeps_its_progress_is_no_worse() {
        let near = Pattern { interval_s: 150.0, every: vec![] };
        let length = Length::batches_of_s(1e6).unwrap();
        let run = |mark| {
            let drain = DrainPlay { drain_s: 1000.0, mark };
            Scenario::drained(
                machine(0.6),
                near.clone(),
                drain,
                failures(Lifetimes::Exponential, 0.6),
            )
            .unwrap()
            .estimate(&length, 21)
            .unwrap()
        };
        let (commit, continuous) = (run(DrainMark::Commit), run(DrainMark::Continuous));
        assert!(continuous.efficiency >= commit.efficiency - commit.half_width_99);
        let ideal = Drained::new(machine(0.6), 1000.0, Visibility::Immediate)
            .unwrap()
            .outcome(&near)
            .unwrap();
        assert!(continuous.efficiency <= ideal.efficiency + continuous.half_width_99);
    }

    #[test]
    fn classes_must_fit_the_levels() {
        let pattern = Pattern { interval_s: 150.0, every: vec![6] };
        let classes = Classes::Shares(vec![1.0]);
        let failures = FailureModel::new(1.0, Lifetimes::Exponential, classes).unwrap();
        let text = Scenario::host(machine(0.5), pattern, failures).unwrap_err().to_string();
        assert!(text.contains("failure classes"), "{text}");
    }
}
