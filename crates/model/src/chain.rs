//! Renewal algebra of nested levels: what a run of segments costs before it commits.
//!
//! Data: segment lengths, failure rate, class shares -> [`Block`] -> `levels`, `drain`.
//!
//! A [`Block`] is a stretch of work that either commits or is left by a failure that its own
//! level cannot repair. Blocks are put in sequence, then *lifted*: a level repairs its own
//! share of the failures by restoring and starting the block again. Because failures are
//! memoryless, the three numbers of a block (chance to commit, failure-free span, expected time
//! by kind) are exact at each step, for any number of levels.
//!
//! Invariants:
//! - `spent` counts all time until the block commits or is left; its total is the expected time.
//! - `spent.kept` is time that no failure has discarded yet; a lift moves the discarded part to
//!   `lost` of the level that restored.

/// Most levels a hierarchy can have: memory, local, ring, global.
pub const LEVELS_MAX: usize = 4;

/// Expected time by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) kept: f64,
    pub(crate) lost: [f64; LEVELS_MAX],
    pub(crate) restore: [f64; LEVELS_MAX],
}

impl Spent {
    pub(crate) fn total(&self) -> f64 {
        self.kept + self.lost.iter().sum::<f64>() + self.restore.iter().sum::<f64>()
    }

    pub(crate) fn scaled(&self, factor: f64) -> Self {
        Self {
            kept: self.kept * factor,
            lost: self.lost.map(|part| part * factor),
            restore: self.restore.map(|part| part * factor),
        }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        sum.kept += other.kept;
        for level in 0..LEVELS_MAX {
            sum.lost[level] += other.lost[level];
            sum.restore[level] += other.restore[level];
        }
        sum
    }
}

/// A stretch that commits, or is left by a failure above its level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Block {
    /// Chance that it commits before such a failure.
    pub(crate) commits: f64,
    /// Its length without failures.
    pub(crate) span: f64,
    /// Expected time until it commits or is left.
    pub(crate) spent: Spent,
}

/// How one level repairs failures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repair {
    pub(crate) level: usize,
    /// Share of this level's class among the failures that reach it.
    pub(crate) own_share: f64,
    /// Share of all failures that this level can repair.
    pub(crate) within_share: f64,
    pub(crate) restore_s: f64,
    /// Whether failures strike during the restore.
    pub(crate) interruptible: bool,
}

impl Block {
    /// One bare attempt at a segment; any failure leaves it.
    pub(crate) fn attempt(rate: f64, span: f64) -> Self {
        Self {
            commits: (-rate * span).exp(),
            span,
            spent: Spent { kept: -(-rate * span).exp_m1() / rate, ..Spent::default() },
        }
    }

    /// `count` of these blocks, then `last`.
    pub(crate) fn then(&self, count: u64, last: &Self) -> Self {
        let log = self.commits.ln();
        let all = (count as f64 * log).exp();
        Self {
            commits: all * last.commits,
            span: count as f64 * self.span + last.span,
            spent: self.spent.scaled(geometric(log, count)).plus(&last.spent.scaled(all)),
        }
    }

    /// `count` of these blocks, at least one.
    pub(crate) fn times(&self, count: u64) -> Self {
        self.then(count - 1, self)
    }

    /// The same block with a level below it that restores and tries again.
    pub(crate) fn lifted(&self, rate: f64, repair: &Repair) -> Self {
        let (back, wait) = repair.outcome(rate);
        let fails = 1.0 - self.commits;
        // Written so that a block that hardly ever commits loses no digits.
        let tries = 1.0 / ((1.0 - back) + back * self.commits);
        let kept_at_failure = self.spent.kept - self.commits * self.span;
        let mut spent = self.spent.scaled(tries);
        spent.kept = tries * (self.commits * self.span + kept_at_failure * (1.0 - back));
        spent.lost[repair.level] += tries * kept_at_failure * back;
        spent.restore[repair.level] += tries * fails * wait;
        Self { commits: self.commits * tries, span: self.span, spent }
    }
}

impl Repair {
    /// Chance that a failure reaching this level ends in a restored block, and the time spent
    /// restoring until then or until a failure above this level.
    fn outcome(&self, rate: f64) -> (f64, f64) {
        if !self.interruptible {
            return (self.own_share, self.own_share * self.restore_s);
        }
        if self.own_share >= 1.0 && self.within_share >= 1.0 {
            // The farthest level: every failure ends restored.
            return (1.0, (rate * self.restore_s).exp_m1() / rate);
        }
        let undisturbed = (-rate * self.restore_s).exp();
        let again = 1.0 - (1.0 - undisturbed) * self.within_share;
        let wait = -(-rate * self.restore_s).exp_m1() / rate;
        (self.own_share * undisturbed / again, self.own_share * wait / again)
    }
}

/// `1 + c + ... + c^(count-1)` for `c = e^log`, stable for `c` near one.
fn geometric(log: f64, count: u64) -> f64 {
    if log > -1e-300 {
        return count as f64;
    }
    (count as f64 * log).exp_m1() / log.exp_m1()
}

#[cfg(test)]
mod tests;
