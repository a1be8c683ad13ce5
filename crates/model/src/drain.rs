//! A background agent drains checkpoints to the farthest level while the job computes.
//!
//! Data: a [`Hierarchy`] whose last level is drained, and the drain time -> [`Drained`]; a
//! [`Pattern`] of the nearer levels -> [`Outcome`].
//!
//! The agent takes the newest checkpoint of the last near level, works on it only while the host
//! does not write (its writes own the local storage), and publishes it at the first commit after
//! it is through; then it takes the newest again. So one drain spans `d` units, a unit being the
//! stretch between two checkpoints of the last near level. A failure within the near levels'
//! reach lets the drain resume from its mark at the last commit; one beyond them loses it.
//!
//! Two views of age: [`Visibility::Published`] is what a real agent gives: a failure goes back to
//! the newest *finished* drain, `d` to `2 d` units old. [`Visibility::Immediate`] lets a drain
//! count from its start, as if it took no time; published models use it.
//!
//! Invariants:
//! - The farthest level's commit time is not used: its commits never stop the host.

use crate::bounds::positive;
use crate::chain::Block;
use crate::error::{ModelError, Result};
use crate::levels::{Breakdown, Hierarchy, Outcome, Pattern, commits_per_cycle};
use crate::search::{peak, peak_count};

/// When a drained checkpoint can be restored from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// After its drain has finished.
    Published,
    /// From the moment its drain starts: optimistic.
    Immediate,
}

/// Near levels written by the host, a farthest level filled by a background drain.
#[derive(Debug, Clone, PartialEq)]
pub struct Drained {
    pub(crate) hierarchy: Hierarchy,
    pub(crate) drain_s: f64,
    pub(crate) visibility: Visibility,
}

impl Drained {
    /// `drain_s` is the time the agent needs for one checkpoint when nothing pauses it.
    pub fn new(hierarchy: Hierarchy, drain_s: f64, visibility: Visibility) -> Result<Self> {
        positive("drain_s", drain_s)?;
        if hierarchy.levels.len() < 2 {
            return Err(ModelError::Field {
                field: "levels".to_owned(),
                rule: "at least one near level and the drained one",
                value: hierarchy.levels.len() as f64,
            });
        }
        Ok(Self { hierarchy, drain_s, visibility })
    }

    /// Units that one drain spans. `near` has one ratio less than there are near levels.
    pub fn units_per_drain(&self, near: &Pattern) -> u64 {
        let work = unit_segments(near) as f64 * near.interval_s;
        // A drain that needs exactly the work of d units is through at the d-th commit.
        (self.drain_s / work * (1.0 - 1e-12)).ceil().clamp(1.0, 1e15) as u64
    }

    /// Efficiency and breakdown, exact for memoryless failures.
    pub fn outcome(&self, near: &Pattern) -> Result<Outcome> {
        let mut full = near.clone();
        full.every.push(1);
        self.hierarchy.check(&full)?;
        let units = self.units_per_drain(near);
        match self.visibility {
            Visibility::Immediate => self.immediate(near, units),
            Visibility::Published => Ok(self.published(near, units)),
        }
    }

    /// As if the last near commit of each drain were a commit of the farthest level, for free.
    fn immediate(&self, near: &Pattern, units: u64) -> Result<Outcome> {
        let mut hierarchy = self.hierarchy.clone();
        let top = hierarchy.levels.len() - 1;
        hierarchy.levels[top].commit_s = hierarchy.levels[top - 1].commit_s;
        let mut pattern = near.clone();
        pattern.every.push(units);
        let mut outcome = hierarchy.outcome(&pattern)?;
        let moved = std::mem::take(&mut outcome.breakdown.checkpoint[top]);
        outcome.breakdown.checkpoint[top - 1] += moved;
        Ok(outcome)
    }

    /// Renewal reward over drains. A drain that is not lost advances the job by its `d` units.
    /// A lost one costs a restore and a start-up of `d + 1` units, after which the job stands one
    /// unit further than when the lost drain began.
    fn published(&self, near: &Pattern, units: u64) -> Outcome {
        let top = self.hierarchy.levels.len() - 1;
        let unit = self.unit(near);
        let steady = unit.times(units);
        let startup = unit.times(units + 1);
        let lost = 1.0 - steady.commits;
        let restore = self.restore_s();
        let mut spent = steady.spent.plus(&startup.spent.scaled(lost / startup.commits));
        spent.restore[top] += lost * restore / startup.commits;
        let total = spent.total();
        let gained = steady.commits * units as f64 + lost;
        let segments = gained * unit_segments(near) as f64;
        let compute = segments * near.interval_s;
        if !total.is_finite() || !(compute / total).is_normal() {
            return Outcome::hopeless(top + 1);
        }
        let mut breakdown = Breakdown {
            compute: compute / total,
            checkpoint: commits_per_cycle(near)
                .iter()
                .zip(&self.hierarchy.levels)
                .map(|(&count, level)| gained * count as f64 * level.commit_s / total)
                .chain([0.0])
                .collect(),
            restore: spent.restore[..=top].iter().map(|t| t / total).collect(),
            rerun: spent.lost[..=top].iter().map(|t| t / total).collect(),
        };
        breakdown.rerun[top] = 0.0;
        breakdown.rerun[top] = 1.0 - breakdown.total();
        Outcome { efficiency: compute / total, breakdown }
    }

    fn unit(&self, near: &Pattern) -> Block {
        let last_near = self.hierarchy.levels.len() - 2;
        let commit = self.hierarchy.levels[last_near].commit_s;
        self.hierarchy.block(near, last_near, commit)
    }

    /// Expected time of a restore from the farthest level.
    fn restore_s(&self) -> f64 {
        let level = self.hierarchy.levels[self.hierarchy.levels.len() - 1];
        if self.hierarchy.interruptible {
            (level.restore_s * self.hierarchy.rate()).exp_m1() * self.hierarchy.mtti_s
        } else {
            level.restore_s
        }
    }

    /// The best interval and near ratios.
    pub fn best_pattern(&self) -> Pattern {
        let ratios = self.hierarchy.levels.len() - 2;
        let mut best = Pattern { interval_s: self.hierarchy.mtti_s, every: vec![1; ratios] };
        let value = |pattern: &Pattern| self.outcome(pattern).map_or(0.0, |o| o.efficiency);
        for _ in 0..12 {
            for index in 0..ratios {
                best.every[index] = peak_count(1024, |count| {
                    let mut trial = best.clone();
                    trial.every[index] = count;
                    value(&trial)
                });
            }
            let found = self.best_interval(&best.every, &value);
            let done = (found / best.interval_s - 1.0).abs() < 1e-6;
            best.interval_s = found;
            if done {
                break;
            }
        }
        best
    }

    /// Whole units per drain make the efficiency a saw with many teeth, so each number of units
    /// is searched on its own stretch of intervals.
    fn best_interval(&self, every: &[u64], value: &impl Fn(&Pattern) -> f64) -> f64 {
        let at = |interval_s: f64| value(&Pattern { interval_s, every: every.to_vec() });
        let (low, high) = (self.hierarchy.mtti_s * 1e-5, self.hierarchy.mtti_s * 20.0);
        let rough = peak(low, high, at);
        let segments: u64 = every.iter().product();
        let mut best = (rough, at(rough));
        for units in 1..=4096u64 {
            let longest = self.drain_s / (units * segments) as f64 * (1.0 + 1e-9);
            if longest < rough * 0.3 {
                break;
            }
            let edge = longest.clamp(low, high);
            let value = at(edge);
            if value > best.1 {
                best = (edge, value);
            }
        }
        let inner = peak(best.0 * 0.8, best.0 * 1.25, at);
        if at(inner) > best.1 { inner } else { best.0 }
    }
}

fn unit_segments(near: &Pattern) -> u64 {
    near.every.iter().product()
}

#[cfg(test)]
mod tests;
