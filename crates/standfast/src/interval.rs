//! When the next checkpoint is due: never, after a fixed time, or after the time that costs least.
//!
//! Data: the setting `interval`, the caller's clock, the time that each checkpoint
//! held the program up and what drains have told -> [`Pace::is_due`] -> `point`.
//!
//! Why the clock is passed to [`Pace`]: hours are tested in microseconds.
//!
//! Invariants:
//! - Time counts from the end of the last checkpoint or restart: work that could be lost.
//! - `auto` never asks for a checkpoint that would only wait for the one being written.

use std::time::Duration;

use standfast_format::{Drains, Version};
use standfast_model::live::Live;
use standfast_restart::read_drains;

use crate::config::{Config, Pacing};
use crate::job::Job;

/// The rule of one job, and what it has seen.
pub(crate) struct Pace {
    rule: Rule,
    /// When the next checkpoint is due, in seconds; infinite for never.
    due_s: f64,
    newest: Option<Version>,
    /// Drains that were taken into account.
    drains: u64,
}

/// Share of failures that only the global level repairs, without and with shards on other nodes,
/// as Moody and others (2010) observed and expected.
const FAR_SHARE: f64 = 0.15;
const FAR_SHARE_RING: f64 = 0.04;
/// Expected time between failures of a job, where nobody knows better.
const MTTI_S: f64 = 24.0 * 3600.0;

enum Rule {
    Off,
    Every(Duration),
    Auto(Live),
}

impl Pace {
    /// A job that was opened at time zero of the caller's clock.
    pub(crate) fn new(config: &Config) -> Self {
        let rule = match config.timing.interval {
            Pacing::Off => Rule::Off,
            Pacing::Every(time) => Rule::Every(time.0),
            Pacing::Auto(mtti) => {
                let far = if config.levels.has_ring() { FAR_SHARE_RING } else { FAR_SHARE };
                let mtti_s = mtti.map_or(MTTI_S, |mtti| mtti.0.as_secs_f64());
                let live = Live::new(mtti_s, 0.0).and_then(|live| live.with_far_share(far));
                Rule::Auto(live.expect("the setting is above 0"))
            }
        };
        let mut pace = Self { rule, due_s: f64::INFINITY, newest: None, drains: 0 };
        pace.start_again(Duration::ZERO);
        pace
    }

    /// Whether enough work has been done since the last checkpoint.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        now.as_secs_f64() >= self.due_s
    }

    /// The checkpoint that must be written before another one is asked for.
    pub(crate) fn waits_for(&self) -> Option<Version> {
        self.newest.filter(|_| matches!(self.rule, Rule::Auto(_)))
    }

    /// A checkpoint held the program up from `begun` to `now`.
    pub(crate) fn taken(&mut self, version: Version, begun: Duration, now: Duration) {
        if let Rule::Auto(live) = &mut self.rule {
            let blocked = now.saturating_sub(begun);
            live.checkpoint_done(blocked.as_secs_f64()).expect("a duration is not negative");
        }
        self.newest = Some(version);
        self.start_again(now);
    }

    /// Whether drains matter to it.
    fn follows_drains(&self) -> bool {
        matches!(self.rule, Rule::Auto(_))
    }

    /// Takes in what drains have told since the last time.
    fn drained(&mut self, drains: &Drains) {
        let Rule::Auto(live) = &mut self.rule else { return };
        for arrival in drains.since(self.drains) {
            let seconds = Duration::from_nanos(arrival.elapsed_ns).as_secs_f64();
            live.drain_done(seconds).expect("a duration is not negative");
        }
        self.drains = drains.count;
    }

    /// Memory is as in a checkpoint: only work from now on could be lost.
    pub(crate) fn start_again(&mut self, now: Duration) {
        let now_s = now.as_secs_f64();
        self.due_s = now_s
            + match &self.rule {
                Rule::Off => f64::INFINITY,
                Rule::Every(time) => time.as_secs_f64(),
                Rule::Auto(live) => live.interval_s(now_s),
            };
    }
}

impl Job {
    /// Lets the interval `auto` know how long drains take, which run in processes of their own.
    pub(crate) fn learn_drains(&self) {
        // A store far away has no drain, and asking it takes time.
        if !self.pace().follows_drains() || self.config().config.place.store.contains("://") {
            return;
        }
        if let Some(drains) = read_drains(&*self.store) {
            self.pace().drained(&drains);
        }
    }
}

#[cfg(test)]
mod tests;
