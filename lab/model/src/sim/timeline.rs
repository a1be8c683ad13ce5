//! The clock of one simulated job.
//!
//! Data: a [`Scenario`] and a seed -> [`Timeline::advance`] -> position, time, counts.
//!
//! A *position* counts committed segments of work. `held[level]` is the newest position that
//! level can restore. A commit of level `l` updates all levels up to `l`; a failure of class `c`
//! goes back to `held[c]` and leaves the nearer levels with the same position.
//!
//! Invariants:
//! - `held` never grows with the level.

use super::{DrainMark, DrainPlay, Scenario};
use crate::failures::{Strike, Strikes};
use standfast_model::LEVELS_MAX;

/// Counts of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) strikes: u64,
    pub(crate) restore_s: [f64; LEVELS_MAX],
}

/// A drain in progress.
#[derive(Debug, Clone, Copy)]
struct Drain {
    source: u64,
    /// Only the continuous kind counts its own work; the other follows the position.
    worked_s: f64,
}

pub(crate) struct Timeline<'a> {
    scenario: &'a Scenario,
    strikes: Strikes,
    next: Strike,
    now_s: f64,
    position: u64,
    held: [u64; LEVELS_MAX],
    drain: Option<Drain>,
    /// Segments between two commits of each level the host writes, and their time.
    strides: Vec<u64>,
    block_s: Vec<f64>,
    pub(crate) counts: Counts,
}

impl<'a> Timeline<'a> {
    pub(crate) fn new(scenario: &'a Scenario, seed: u64, horizon_s: f64) -> Self {
        let mut strikes = scenario.failures.strikes(seed, horizon_s);
        let next = strikes.next_strike();
        let levels = scenario.hierarchy.levels();
        let mut strides = vec![1];
        let mut block_s = vec![scenario.pattern.interval_s + levels[0].commit_s()];
        for (below, &ratio) in scenario.pattern.every.iter().enumerate() {
            strides.push(strides[below] * ratio);
            let dearer = levels[below + 1].commit_s() - levels[below].commit_s();
            block_s.push(ratio as f64 * block_s[below] + dearer);
        }
        Self {
            scenario,
            strikes,
            next,
            now_s: 0.0,
            position: 0,
            held: [0; LEVELS_MAX],
            drain: None,
            strides,
            block_s,
            counts: Counts::default(),
        }
    }

    pub(crate) fn now_s(&self) -> f64 {
        self.now_s
    }

    /// Work that is committed at some level.
    pub(crate) fn work_s(&self) -> f64 {
        self.position as f64 * self.scenario.pattern.interval_s
    }

    /// Plays until the clock reaches `until_s`, stopping at the first commit or restore after it.
    pub(crate) fn advance(&mut self, until_s: f64) {
        while self.now_s < until_s {
            self.skip(until_s);
            let level = self.level_of(self.position + 1);
            let commit = self.scenario.hierarchy.levels()[level].commit_s();
            let interval = self.scenario.pattern.interval_s;
            let end = self.now_s + interval + commit;
            if self.next.at_s < end {
                let worked = (self.next.at_s - self.now_s).clamp(0.0, interval);
                self.drain_worked(worked);
                self.fail();
            } else {
                self.drain_worked(interval);
                self.now_s = end;
                self.commit(level);
            }
        }
    }

    /// Jumps over whole blocks that end before the next strike, from the largest kind down.
    fn skip(&mut self, until_s: f64) {
        let limit = self.next.at_s.min(until_s);
        for level in (0..self.strides.len()).rev() {
            let stride = self.strides[level];
            if !self.position.is_multiple_of(stride) {
                continue;
            }
            let mut count = ((limit - self.now_s) / self.block_s[level]).max(0.0) as u64;
            if let Some(&above) = self.strides.get(level + 1) {
                // The last block before the boundary commits to the level above.
                count = count.min((above - self.position % above) / stride - 1);
            } else if !self.drain_can_jump() {
                count = 0;
            }
            // One block is left to be played, so that rounding cannot step over a strike.
            if count > 1 {
                self.jump(level, count - 1);
            }
        }
    }

    fn jump(&mut self, level: usize, count: u64) {
        let segments = count * self.strides[level];
        self.drain_worked(segments as f64 * self.scenario.pattern.interval_s);
        self.now_s += count as f64 * self.block_s[level];
        self.position += segments;
        for held in &mut self.held[..=level] {
            *held = self.position;
        }
        if level + 1 == self.strides.len() {
            self.drain_jumped();
        }
    }

    /// Over whole blocks a drain can be followed if it works by commits and is under way.
    fn drain_can_jump(&self) -> bool {
        match self.scenario.drain {
            None => true,
            Some(play) => play.mark == DrainMark::Commit && self.drain.is_some(),
        }
    }

    /// Catches up with the drains that ended within a jump.
    fn drain_jumped(&mut self) {
        let (Some(play), Some(drain)) = (self.scenario.drain, &mut self.drain) else {
            return;
        };
        let block = self.strides[self.strides.len() - 1];
        let work = block as f64 * self.scenario.pattern.interval_s;
        let blocks = (play.drain_s * (1.0 - 1e-12) / work).ceil().max(1.0) as u64;
        let done = (self.position - drain.source) / (blocks * block);
        if done > 0 {
            let top = self.scenario.hierarchy.levels().len() - 1;
            drain.source += done * blocks * block;
            self.held[top] = drain.source - blocks * block;
        }
    }

    fn level_of(&self, position: u64) -> usize {
        (1..self.strides.len())
            .rev()
            .find(|&level| position.is_multiple_of(self.strides[level]))
            .unwrap_or(0)
    }

    fn commit(&mut self, level: usize) {
        self.position += 1;
        for held in &mut self.held[..=level] {
            *held = self.position;
        }
        if let Some(play) = self.scenario.drain {
            self.drain_at_commit(play, level);
        }
    }

    /// Strikes until a restore gets through.
    fn fail(&mut self) {
        let top = self.scenario.hierarchy.levels().len() - 1;
        let mut level = 0;
        loop {
            self.now_s = self.next.at_s;
            level = level.max(self.next.class);
            self.counts.strikes += 1;
            self.next = self.strikes.next_strike();
            let restore = self.scenario.hierarchy.levels()[level].restore_s();
            if !self.scenario.hierarchy.is_interruptible() {
                self.now_s += restore;
                self.counts.restore_s[level] += restore;
                while self.next.at_s < self.now_s {
                    self.next = self.strikes.next_strike();
                }
                break;
            }
            let spent = restore.min(self.next.at_s - self.now_s);
            self.counts.restore_s[level] += spent;
            if spent == restore {
                self.now_s += restore;
                break;
            }
        }
        self.position = self.held[level];
        for held in &mut self.held[..level] {
            *held = self.position;
        }
        if level == top {
            self.drain = None;
        }
    }

    /// The continuous kind publishes in the middle of a segment.
    fn drain_worked(&mut self, worked_s: f64) {
        let Some(play) = self.scenario.drain else {
            return;
        };
        if play.mark == DrainMark::Commit {
            return;
        }
        let top = self.scenario.hierarchy.levels().len() - 1;
        let mut left = worked_s;
        while let Some(drain) = &mut self.drain {
            let need = play.drain_s - drain.worked_s;
            if need > left {
                drain.worked_s += left;
                return;
            }
            left -= need;
            self.held[top] = drain.source.min(self.held[top - 1]);
            let newest = self.held[top - 1];
            self.drain = (newest > drain.source).then_some(Drain { source: newest, worked_s: 0.0 });
        }
    }

    /// Publishes a finished drain and takes up the newest checkpoint of the last near level.
    fn drain_at_commit(&mut self, play: DrainPlay, level: usize) {
        let top = self.scenario.hierarchy.levels().len() - 1;
        if level + 1 != top {
            return;
        }
        if let Some(drain) = self.drain {
            if play.mark == DrainMark::Continuous {
                return;
            }
            let worked = (self.position - drain.source) as f64 * self.scenario.pattern.interval_s;
            if worked < play.drain_s * (1.0 - 1e-12) {
                return;
            }
            self.held[top] = drain.source;
        }
        self.drain = Some(Drain { source: self.position, worked_s: 0.0 });
    }
}
