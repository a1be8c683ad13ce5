//! Multilevel checkpoints when lost work is redone at the job's overall pace.
//!
//! Data: two levels, interval and ratio -> [`Outcome`].
//!
//! The NDP paper evaluates its configurations with a model built on Daly's, without printing it.
//! This is the reading that fits its numbers: every segment costs what Daly says, a share of the
//! failures also loses the work since the last far checkpoint, and that work is redone at the
//! average speed of the whole job, far checkpoints included. The exact model in `levels` redoes
//! it at the speed of the segments concerned, so it finds higher efficiencies.
//!
//! Invariants:
//! - Parts add up to one.

use standfast_model::levels::{Breakdown, Outcome};

/// Inputs of both configurations.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) mtti_s: f64,
    pub(super) interval_s: f64,
    /// Share of failures that the near level repairs.
    pub(super) near: f64,
    pub(super) near_commit_s: f64,
    pub(super) far_restore_s: f64,
    /// Whether failures strike during far restores.
    pub(super) disturbed: bool,
}

impl Pace {
    /// The host writes one checkpoint in `ratio` to the far level.
    pub(super) fn host(&self, ratio: u64, far_commit_s: f64) -> Outcome {
        let near = self.failures(self.interval_s + self.near_commit_s) * (ratio - 1) as f64;
        let far = self.failures(self.interval_s + far_commit_s);
        // Failures within the near segments lose half the work of a cycle on average, those
        // during the far commit all of it.
        let lost = (1.0 - self.near) * (0.5 * near + far);
        let commits = [(ratio - 1) as f64 * self.near_commit_s, far_commit_s];
        self.outcome(ratio, near + far, lost, commits)
    }

    /// An agent drains one checkpoint in `ratio`, at no cost to the host.
    pub(super) fn drained(&self, ratio: u64) -> Outcome {
        let near = self.failures(self.interval_s + self.near_commit_s) * ratio as f64;
        let lost = (1.0 - self.near) * 0.5 * near;
        self.outcome(ratio, near, lost, [ratio as f64 * self.near_commit_s, 0.0])
    }

    /// Expected failures until a segment of this length gets through.
    fn failures(&self, segment_s: f64) -> f64 {
        (segment_s / self.mtti_s).exp_m1()
    }

    fn outcome(&self, ratio: u64, failures: f64, lost: f64, commits: [f64; 2]) -> Outcome {
        let stretch = |t: f64| (t / self.mtti_s).exp_m1() * self.mtti_s;
        let far_restore =
            if self.disturbed { stretch(self.far_restore_s) } else { self.far_restore_s };
        let restore = [
            failures * self.near * stretch(self.near_commit_s),
            failures * (1.0 - self.near) * far_restore,
        ];
        let compute = ratio as f64 * self.interval_s;
        let retried = failures * self.mtti_s - compute - commits[0] - commits[1];
        let total = (failures * self.mtti_s + restore[0] + restore[1]) / (1.0 - lost);
        // Losing more than is gained: the job never ends.
        if lost >= 1.0 {
            return Outcome::hopeless(2);
        }
        let part = |times: [f64; 2]| times.iter().map(|t| t / total).collect();
        Outcome {
            efficiency: compute / total,
            breakdown: Breakdown {
                compute: compute / total,
                checkpoint: part(commits),
                restore: part(restore),
                rerun: vec![retried / total, lost],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_add_up(near in 0.0f64..1.0, ratio in 1u64..80, commit in 1.0f64..900.0, disturbed: bool) {
            let pace = Pace {
                mtti_s: 1800.0,
                interval_s: 150.0,
                near,
                near_commit_s: 7.0,
                far_restore_s: commit,
                disturbed,
            };
            for outcome in [pace.host(ratio, commit), pace.drained(ratio)] {
                prop_assert!((outcome.breakdown.total() - 1.0).abs() < 1e-9);
            }
        }
    }
}
