//! Trials: which codec is compared next with the one that a class is judged by, on one block.
//!
//! Data: the plan and what is only guessed -> [`Trials`] -> [`Due`] -> the encoder that meets such a
//! block next compresses it by both.
//!
//! Invariants:
//! - Comparing takes a small part of the encoders' time, but for a few milliseconds at first and for
//!   what they would spend waiting for the store.

use std::sync::atomic::{AtomicU16, Ordering};

use super::knowledge::{CLASSES, Knowledge, OPTIONS, reference};
use super::plan::{Class, Cost, Plan};
use super::rates::Rates;

/// Comparing codecs may take so much of the encoders' time, and so many seconds at first, when nothing
/// is known, which is also the most that may be owed; so many seconds are saved up at most.
const TRIAL_SHARE: f64 = 0.01;
const TRIAL_FIRST_S: f64 = 2e-3;
const TRIAL_S_MAX: f64 = 20e-3;
/// What is known is compared once more, for data change, where so many times the time is left; and what
/// is known of other classes, or far from what is used, where so many times.
const AGAIN: f64 = 4.0;
const ALSO: f64 = 2.0;
/// Where the store takes so many times as long as the encoders, what is far from what is used is tried
/// too. There is more time by that, up to so much, and what is taken of it counts less.
const LEISURE: (f64, f64) = (2.0, 4.0);
/// The usual length of a block, to tell what a trial will cost.
const BLOCK_BYTES: f64 = 131_072.0;
/// A class with less of all bytes than this is not compared on, and does not keep others from being
/// passed on unseen.
const WEIGHT_MIN: f64 = 0.01;

/// The classes that matter, without the bytes that are only passed on.
pub(super) fn weighty(classes: &[Class]) -> impl Iterator<Item = &Class> {
    classes.iter().filter(|class| class.at < CLASSES && class.weight >= WEIGHT_MIN)
}

/// What the next block of a class is to try, for whoever meets it first.
pub(super) struct Due(AtomicU16);

impl Due {
    const NOTHING: u16 = u16::MAX;

    pub(super) fn nothing() -> Self {
        Self(AtomicU16::new(Self::NOTHING))
    }

    /// Puts up a class and an option.
    pub(super) fn set(&self, trial: Option<(usize, usize)>) {
        let trial = trial.map_or(Self::NOTHING, |(class, option)| (class << 8 | option) as u16);
        self.0.store(trial, Ordering::Relaxed);
    }

    /// Takes the option away if it is for this class.
    pub(super) fn take(&self, class: usize) -> Option<usize> {
        let trial = self.0.load(Ordering::Relaxed);
        if trial == Self::NOTHING || usize::from(trial >> 8) != class {
            return None;
        }
        let relaxed = Ordering::Relaxed;
        let taken = self.0.compare_exchange(trial, Self::NOTHING, relaxed, relaxed);
        taken.ok().map(|trial| usize::from(trial & 0xFF))
    }
}

/// The time that there is for trials.
pub(super) struct Trials {
    left_s: f64,
    /// How many times as long as the encoders the store takes.
    leisure: f64,
    /// What a second of the last one counts.
    weight: f64,
}

impl Trials {
    pub(super) fn new() -> Self {
        Self { left_s: TRIAL_FIRST_S, leisure: 1.0, weight: 1.0 }
    }

    /// Encoders have worked so long.
    pub(super) fn earn(&mut self, busy_s: f64) {
        self.left_s = (self.left_s + TRIAL_SHARE * busy_s * self.leisure).min(TRIAL_S_MAX);
    }

    /// The last one took so long.
    pub(super) fn spend(&mut self, trial_s: f64) {
        self.left_s = (self.left_s - trial_s * self.weight).max(-TRIAL_FIRST_S);
    }

    /// The class and the option to try next, if there is time for it.
    pub(super) fn next(
        &mut self,
        knowledge: &Knowledge,
        classes: &[Class],
        plan: &Plan,
        rates: &Rates,
        turn: usize,
    ) -> Option<(usize, usize)> {
        self.leisure = plan.leisure().clamp(1.0, LEISURE.1);
        let farthest = if self.leisure >= LEISURE.0 { Distance::Far } else { Distance::Next };
        let backlog_bytes = rates.backlog_bytes.unwrap_or(0.0);
        let near = weighty(classes).flat_map(|class| near(class, plan, backlog_bytes));
        let open: Vec<Near<'_>> = near.filter(|near| near.distance <= farthest).collect();
        let (Near { class, option, .. }, times) = guessed(&open, knowledge, rates)
            .or_else(|| Some((seldom(&open, knowledge, turn)?, AGAIN)))?;
        let zip_s = class.options[*option].zip_s + class.options[reference(class.at)].zip_s;
        let weight = times / self.leisure;
        if weight * BLOCK_BYTES * zip_s > self.left_s {
            return None;
        }
        self.weight = weight;
        Some((class.at, *option))
    }
}

/// What is used and only guessed, where the most time goes, the harder one first; then what lies next
/// to it, then what is far; and how many times the time must be left for it.
fn guessed<'a>(
    open: &'a [Near<'a>],
    knowledge: &Knowledge,
    rates: &Rates,
) -> Option<(&'a Near<'a>, f64)> {
    let is_guessed = |near: &&Near<'_>| !knowledge.is_known(near.class.at, near.option);
    let by_use = |a: &&Near<'_>, b: &&Near<'_>| {
        let by_time = || a.part_s(rates).total_cmp(&b.part_s(rates));
        b.distance.cmp(&a.distance).then_with(by_time)
    };
    let tried = open.iter().rev().filter(is_guessed).max_by(by_use)?;
    let can_wait = tried.distance == Distance::Far
        || knowledge.is_known_of_others(tried.class.at, tried.option);
    Some((tried, if can_wait { ALSO } else { 1.0 }))
}

/// What was compared least often; of several the next in turn.
fn seldom<'a>(open: &'a [Near<'a>], knowledge: &Knowledge, turn: usize) -> Option<&'a Near<'a>> {
    let (before, from) = open.split_at(turn % open.len().max(1));
    let times = |near: &Near<'_>| knowledge.times(near.class.at, near.option);
    from.iter().chain(before).min_by(|a, b| times(a).total_cmp(&times(b)))
}

/// How far an option is from those that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    Used,
    Next,
    Far,
}

/// An option of a class that may be tried.
struct Near<'a> {
    class: &'a Class,
    option: usize,
    distance: Distance,
    /// The lighter of those that are used.
    light: usize,
}

impl Near<'_> {
    /// What the class takes of the time for a raw byte.
    fn part_s(&self, rates: &Rates) -> f64 {
        let Cost { zip_s, share } = self.class.options[self.light];
        self.class.weight * (zip_s / rates.threads as f64 + share * rates.store_s)
    }
}

/// What the plan does with a class, or may do next; then all that is harder.
fn near<'a>(class: &'a Class, plan: &Plan, backlog_bytes: f64) -> impl Iterator<Item = Near<'a>> {
    let [light, heavy] = plan.options(class.at, backlog_bytes);
    let (used, next) = ([heavy, light], [heavy + 1, light.wrapping_sub(1)]);
    let near = used.map(|option| (option, Distance::Used)).into_iter();
    let near = near.chain(next.map(|option| (option, Distance::Next)));
    let near = near.chain((heavy + 2..OPTIONS).map(|option| (option, Distance::Far)));
    let is_open = move |(near, _): &(usize, Distance)| match *near {
        // It is seen wherever it is used.
        near if near == reference(class.at) => heavy == 0,
        near => (1..OPTIONS).contains(&near),
    };
    near.filter(is_open).map(move |(option, distance)| Near { class, option, distance, light })
}

#[cfg(test)]
mod tests;
