//! Several levels of checkpoints, all written by the host: efficiency, breakdown, best ratio.
//!
//! Data: [`Level`]s and an MTTI -> [`Hierarchy`]; a [`Pattern`] (interval and ratios) ->
//! [`Outcome`].
//!
//! Every interval of work ends with a checkpoint. Of `every[0]` checkpoints one goes to the
//! second level, of `every[1]` of those one goes to the third, and so on. A failure belongs to a
//! class: the nearest level that still holds the data. It restores from there and redoes what
//! came after. A failure during a restore is again of some class; the farther of the two levels
//! is then used.
//!
//! A checkpoint of a high level also serves the lower classes; give its commit time as the
//! whole time the job stands still for it.
//!
//! Invariants:
//! - Shares of the classes add up to one; a pattern has one ratio less than there are levels.
//! - The parts of a [`Breakdown`] add up to one.

use serde::Serialize;

use crate::bounds::{at_least_one, non_negative, positive, share};
use crate::chain::{Block, LEVELS_MAX, Repair};
use crate::error::{ModelError, Result};
use crate::search::{peak, peak_count};

/// Largest ratio between neighbouring levels that the searches consider.
const RATIO_MAX: u64 = 1024;
/// Largest ratio a pattern may have: three of them still multiply without overflow.
const RATIO_LIMIT: u64 = 1_000_000;

/// One level: what a commit and a restore cost, and which failures it is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    pub(crate) commit_s: f64,
    pub(crate) restore_s: f64,
    pub(crate) share: f64,
}

impl Level {
    /// `share` is the part of all failures whose nearest usable level is this one.
    pub fn new(commit_s: f64, restore_s: f64, failure_share: f64) -> Result<Self> {
        Ok(Self {
            commit_s: non_negative("commit_s", commit_s)?,
            restore_s: non_negative("restore_s", restore_s)?,
            share: share("failure_share", failure_share)?,
        })
    }

    /// What a commit costs.
    pub fn commit_s(&self) -> f64 {
        self.commit_s
    }

    /// What a restore costs.
    pub fn restore_s(&self) -> f64 {
        self.restore_s
    }

    /// The part of all failures that this level is for.
    pub fn share(&self) -> f64 {
        self.share
    }
}

/// Levels from nearest to farthest, and how often the job is interrupted.
#[derive(Debug, Clone, PartialEq)]
pub struct Hierarchy {
    pub(crate) mtti_s: f64,
    pub(crate) levels: Vec<Level>,
    pub(crate) interruptible: bool,
}

/// When to checkpoint and to which level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pattern {
    /// Work between two checkpoints.
    pub interval_s: f64,
    /// Checkpoints of one level per checkpoint of the next.
    pub every: Vec<u64>,
}

/// Where the time goes, as shares of the whole; one entry per level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Breakdown {
    /// Work that counts.
    pub compute: f64,
    /// Commits of checkpoints, by level.
    pub checkpoint: Vec<f64>,
    /// Restores, by level.
    pub restore: Vec<f64>,
    /// Work and commits that were lost and done again, by the level that was restored.
    pub rerun: Vec<f64>,
}

/// What a pattern achieves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Work over expected time.
    pub efficiency: f64,
    /// The parts of the time.
    pub breakdown: Breakdown,
}

impl Hierarchy {
    /// Checks shares and order; failures may strike during restores.
    pub fn new(mtti_s: f64, levels: Vec<Level>) -> Result<Self> {
        positive("mtti_s", mtti_s)?;
        if levels.is_empty() || levels.len() > LEVELS_MAX {
            return Err(ModelError::Field {
                field: "levels".to_owned(),
                rule: "between 1 and 4 levels",
                value: levels.len() as f64,
            });
        }
        let total: f64 = levels.iter().map(|level| level.share).sum();
        if (total - 1.0).abs() > 1e-9 {
            return Err(ModelError::Field {
                field: "failure_share".to_owned(),
                rule: "1 when summed over the levels",
                value: total,
            });
        }
        Ok(Self { mtti_s, levels, interruptible: true })
    }

    /// The same machine under the assumption that no failure strikes during a restore.
    pub fn with_undisturbed_restores(mut self) -> Self {
        self.interruptible = false;
        self
    }

    /// Mean time to interrupt.
    pub fn mtti_s(&self) -> f64 {
        self.mtti_s
    }

    /// The levels, from nearest to farthest.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Whether failures may strike during restores.
    pub fn is_interruptible(&self) -> bool {
        self.interruptible
    }

    pub(crate) fn rate(&self) -> f64 {
        1.0 / self.mtti_s
    }

    /// Refuses a pattern that does not fit these levels.
    pub fn check(&self, pattern: &Pattern) -> Result<()> {
        positive("interval_s", pattern.interval_s)?;
        if pattern.every.len() + 1 != self.levels.len() {
            return Err(ModelError::Pair {
                field: "every",
                value: pattern.every.len() as f64,
                other: "levels",
                limit: self.levels.len() as f64,
                rule: "a pattern needs one ratio less than there are levels",
            });
        }
        for &ratio in &pattern.every {
            at_least_one("every", ratio)?;
            if ratio > RATIO_LIMIT {
                return Err(ModelError::Field {
                    field: "every".to_owned(),
                    rule: "at most 1,000,000",
                    value: ratio as f64,
                });
            }
        }
        Ok(())
    }

    /// Efficiency and breakdown of a pattern, exact for memoryless failures.
    pub fn outcome(&self, pattern: &Pattern) -> Result<Outcome> {
        self.check(pattern)?;
        let top = self.levels.len() - 1;
        let block = self.block(pattern, top, self.levels[top].commit_s);
        let total = block.spent.total();
        if !total.is_finite() {
            // The job dies faster than it can commit: no work survives within any horizon.
            return Ok(Outcome::hopeless(self.levels.len()));
        }
        let compute = cycle_s(pattern);
        let part = |time: f64| time / total;
        let counts = commits_per_cycle(pattern);
        Ok(Outcome {
            efficiency: part(compute),
            breakdown: Breakdown {
                compute: part(compute),
                checkpoint: (counts.iter().zip(&self.levels))
                    .map(|(&count, level)| part(count as f64 * level.commit_s))
                    .collect(),
                restore: block.spent.restore[..=top].iter().map(|&t| part(t)).collect(),
                rerun: block.spent.lost[..=top].iter().map(|&t| part(t)).collect(),
            },
        })
    }

    /// The block between two checkpoints of `level`, whose last commit takes `last_commit_s`.
    pub(crate) fn block(&self, pattern: &Pattern, level: usize, last_commit_s: f64) -> Block {
        let run = if level == 0 {
            Block::attempt(self.rate(), pattern.interval_s + last_commit_s)
        } else {
            let usual = self.block(pattern, level - 1, self.levels[level - 1].commit_s);
            let last = self.block(pattern, level - 1, last_commit_s);
            usual.then(pattern.every[level - 1] - 1, &last)
        };
        run.lifted(self.rate(), &self.repair(level))
    }

    fn repair(&self, level: usize) -> Repair {
        let within: f64 = self.levels[..=level].iter().map(|l| l.share).sum();
        let reaching: f64 = self.levels[level..].iter().map(|l| l.share).sum();
        let farthest = level + 1 == self.levels.len();
        Repair {
            level,
            own_share: if farthest { 1.0 } else { (self.levels[level].share / reaching).min(1.0) },
            within_share: if farthest { 1.0 } else { within },
            restore_s: self.levels[level].restore_s,
            interruptible: self.interruptible,
        }
    }

    /// The best interval and ratios together.
    pub fn best_pattern(&self) -> Pattern {
        let pattern = Pattern { interval_s: self.mtti_s, every: vec![1; self.levels.len() - 1] };
        self.best_from(pattern, 0)
    }

    /// Searches the ratios from `index` on, nested, and the interval innermost. Nested because
    /// interval and ratios pull on each other: one at a time gets stuck on a ridge.
    fn best_from(&self, mut pattern: Pattern, index: usize) -> Pattern {
        if index == pattern.every.len() {
            let mut trial = pattern.clone();
            let at = |interval_s: f64| {
                trial.interval_s = interval_s;
                self.value(&trial)
            };
            pattern.interval_s = peak(self.mtti_s * 1e-6, self.mtti_s * 20.0, at);
            return pattern;
        }
        let inner = |count: u64| {
            let mut trial = pattern.clone();
            trial.every[index] = count;
            self.best_from(trial, index + 1)
        };
        inner(peak_count(RATIO_MAX, |count| self.value(&inner(count))))
    }

    /// The efficiency alone, for searches: no breakdown, no allocation.
    fn value(&self, pattern: &Pattern) -> f64 {
        let top = self.levels.len() - 1;
        let total = self.block(pattern, top, self.levels[top].commit_s).spent.total();
        if total.is_finite() { cycle_s(pattern) / total } else { 0.0 }
    }
}

/// Work of one full cycle of the pattern.
fn cycle_s(pattern: &Pattern) -> f64 {
    pattern.every.iter().product::<u64>() as f64 * pattern.interval_s
}

/// How many commits of each level one full cycle of the pattern holds.
pub(crate) fn commits_per_cycle(pattern: &Pattern) -> Vec<u64> {
    let mut counts = vec![0; pattern.every.len() + 1];
    let mut reaching: u64 = pattern.every.iter().product();
    for (level, count) in counts.iter_mut().enumerate() {
        let above = pattern.every.get(level).map_or(0, |&ratio| reaching / ratio);
        *count = reaching - above;
        reaching = above;
    }
    counts
}

impl Outcome {
    /// A job that loses all it does.
    pub fn hopeless(levels: usize) -> Self {
        let mut rerun = vec![0.0; levels];
        rerun[levels - 1] = 1.0;
        Self {
            efficiency: 0.0,
            breakdown: Breakdown {
                compute: 0.0,
                checkpoint: vec![0.0; levels],
                restore: vec![0.0; levels],
                rerun,
            },
        }
    }
}

impl Breakdown {
    /// Sum of all parts; one, up to rounding.
    pub fn total(&self) -> f64 {
        let sum = |parts: &[f64]| parts.iter().sum::<f64>();
        self.compute + sum(&self.checkpoint) + sum(&self.restore) + sum(&self.rerun)
    }
}

#[cfg(test)]
mod tests;
