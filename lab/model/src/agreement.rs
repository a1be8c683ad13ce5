//! Closed forms against the simulator on random machines.
//!
//! Data: a count and a seed -> random cases -> [`Agreement`].
//!
//! One case in a hundred falls outside its own 99 % interval even if everything is right: a
//! hundred such intervals all hold in 37 % of honest seeds. So three questions are asked, each
//! with an answer that chance does not spoil:
//!
//! - Do all cases lie within the intervals that hold *together* with 99 % ([`Agreement::jointly`];
//!   Bonferroni: each at 99.99 %)? Honest seeds fail in at most one of a hundred.
//! - Is a case that lies outside its own 99 % interval still outside the 99.99 % interval when it
//!   is played again, sixteen times as long and with other failures ([`Agreement::persisting`])?
//!   Chance does that once in a million cases; a wrong formula always, as its error stays and the
//!   intervals shrink to a quarter.
//! - Do the differences of one form lean to one side ([`Agreement::bias`])? Errors far below one
//!   interval add up over cases and show here.
//!
//! Invariants:
//! - A case is decided by the seed alone; none is drawn again because of its result, and the
//!   first look is what is counted.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::failures::{Classes, FailureModel, Lifetimes};
use crate::random::Random;
use crate::sim::{DrainMark, DrainPlay, Length, STUDENT_99, Scenario};
use standfast_model::Result;
use standfast_model::drain::{Drained, Visibility};
use standfast_model::levels::{Hierarchy, Level, Pattern};
use standfast_model::ring::Groups;
use standfast_model::single::Single;

/// Failures per batch of a first look, about.
const BATCH_FAILURES: f64 = 400.0;
/// Draws of a survival case.
const SETS: u32 = 4000;
/// How much longer the second look is.
const LONGER: u32 = 16;
/// Normal quantiles, two-sided 99 % and 99.99 %.
const NORMAL_99: f64 = 2.576;
const NORMAL_9999: f64 = 3.891;

/// What the simulator found.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Look {
    /// An efficiency or a chance.
    pub simulated: f64,
    /// Half the width of its 99 % interval.
    pub half_width_99: f64,
    /// Half the width of its 99.99 % interval: a hundred of them hold together with 99 %.
    pub half_width_9999: f64,
    /// Its standard error.
    pub error: f64,
}

/// One comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// Which closed form.
    pub form: &'static str,
    /// Its value.
    pub closed: f64,
    /// The simulator's.
    pub first: Look,
    /// A longer run with other failures; made where the first one disagreed.
    pub second: Option<Look>,
}

impl Case {
    fn new(
        random: &mut Random,
        form: &'static str,
        closed: f64,
        look: impl Fn(u32, u64) -> Result<Look>,
    ) -> Result<Self> {
        let seeds = [random.below(1 << 40), random.below(1 << 40)];
        let first = look(1, seeds[0])?;
        let mut case = Self { form, closed, first, second: None };
        if !case.inside() {
            case.second = Some(look(LONGER, seeds[1])?);
        }
        Ok(case)
    }

    fn off(&self, look: &Look) -> f64 {
        (self.closed - look.simulated).abs()
    }

    /// Within its own 99 % interval.
    pub fn inside(&self) -> bool {
        self.off(&self.first) <= self.first.half_width_99
    }

    /// Outside its own 99 % interval, and far outside in the longer second look.
    pub fn persists(&self) -> bool {
        self.second.is_some_and(|second| self.off(&second) > second.half_width_9999)
    }

    /// Within the interval that holds together with those of 99 other cases.
    fn inside_jointly(&self) -> bool {
        self.off(&self.first) <= self.first.half_width_9999
    }

    /// The difference in standard errors; none where the simulator saw no spread at all.
    fn score(&self) -> Option<f64> {
        let score = (self.closed - self.first.simulated) / self.first.error;
        score.is_finite().then_some(score)
    }
}

/// All comparisons of one or more seeds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Agreement {
    /// The comparisons.
    pub cases: Vec<Case>,
}

impl Agreement {
    /// Cases within their own 99 % interval.
    pub fn inside(&self) -> usize {
        self.cases.iter().filter(|case| case.inside()).count()
    }

    /// Cases within the intervals that hold together with 99 %, for up to a hundred of them.
    pub fn jointly(&self) -> usize {
        self.cases.iter().filter(|case| case.inside_jointly()).count()
    }

    /// Cases that the second look confirms to be wrong.
    pub fn persisting(&self) -> usize {
        self.cases.iter().filter(|case| case.persists()).count()
    }

    /// How far the differences of each form lean to one side, as a standard normal number.
    pub fn bias(&self) -> BTreeMap<&'static str, f64> {
        let mut scores: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
        for case in &self.cases {
            scores.entry(case.form).or_default().extend(case.score());
        }
        let lean = |scores: Vec<f64>| scores.iter().sum::<f64>() / (scores.len() as f64).sqrt();
        scores.into_iter().map(|(form, scores)| (form, lean(scores))).collect()
    }
}

/// Compares `count` random machines; the forms take turns.
pub fn compare(count: u32, seed: u64) -> Result<Agreement> {
    let mut random = Random::new(seed);
    let cases = (0..count)
        .map(|index| match index % 10 {
            0 | 1 => single(&mut random),
            2 | 3 => host(&mut random, 2),
            4 => undisturbed(&mut random),
            5 => host(&mut random, 3),
            6 | 7 => drained(&mut random, 2),
            8 => drained(&mut random, 3),
            _ => survival(&mut random),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Agreement { cases })
}

fn single(random: &mut Random) -> Result<Case> {
    let mtti = random.log_between(600.0, 1e5);
    let commit = mtti * random.log_between(0.002, 0.3);
    let restore = commit * random.between(0.0, 2.0);
    let single = Single::new(mtti, commit, restore)?;
    let interval = single.best_interval_s() * random.log_between(0.4, 2.5);
    let machine = Hierarchy::new(mtti, vec![Level::new(commit, restore, 1.0)?])?;
    let pattern = Pattern { interval_s: interval, every: vec![] };
    let closed = single.efficiency(interval)?;
    play(random, "single level", closed, machine, pattern, None)
}

/// Levels that get slower and rarer with distance, slow enough to matter.
fn machine(random: &mut Random, levels: usize) -> Result<Hierarchy> {
    let mtti = random.log_between(600.0, 1e5);
    let mut commit = mtti * random.log_between(0.0005, 0.02);
    let mut left = 1.0;
    let mut list = Vec::new();
    for index in 0..levels {
        let last = index + 1 == levels;
        let part = if last { left } else { left * random.between(0.4, 0.95) };
        left -= part;
        list.push(Level::new(commit, commit * random.between(0.3, 1.5), part)?);
        commit = (commit * random.log_between(2.0, 20.0)).min(mtti * 0.25);
    }
    Hierarchy::new(mtti, list)
}

fn host(random: &mut Random, levels: usize) -> Result<Case> {
    let machine = machine(random, levels)?;
    let form = if levels == 2 { "two levels, host" } else { "three levels, host" };
    by_host(random, form, machine)
}

fn undisturbed(random: &mut Random) -> Result<Case> {
    let machine = machine(random, 2)?.with_undisturbed_restores();
    by_host(random, "two levels, undisturbed restores", machine)
}

fn by_host(random: &mut Random, form: &'static str, machine: Hierarchy) -> Result<Case> {
    let interval_s = machine.mtti_s() * random.log_between(0.02, 0.3);
    let every = (1..machine.levels().len()).map(|_| 1 + random.below(8)).collect();
    let pattern = Pattern { interval_s, every };
    let closed = machine.outcome(&pattern)?.efficiency;
    play(random, form, closed, machine, pattern, None)
}

fn drained(random: &mut Random, levels: usize) -> Result<Case> {
    let machine = machine(random, levels)?;
    let interval_s = machine.mtti_s() * random.log_between(0.02, 0.3);
    let every = (2..levels).map(|_| 1 + random.below(5)).collect();
    let near = Pattern { interval_s, every };
    let drain_s = machine.mtti_s() * random.log_between(0.02, 1.0);
    let model = Drained::new(machine.clone(), drain_s, Visibility::Published)?;
    let closed = model.outcome(&near)?.efficiency;
    let form = if levels == 2 { "two levels, drained" } else { "three levels, drained" };
    play(random, form, closed, machine, near, Some(drain_s))
}

fn play(
    random: &mut Random,
    form: &'static str,
    closed: f64,
    machine: Hierarchy,
    pattern: Pattern,
    drain_s: Option<f64>,
) -> Result<Case> {
    let mtti_s = machine.mtti_s();
    let shares = machine.levels().iter().map(Level::share).collect();
    let failures = FailureModel::new(mtti_s, Lifetimes::Exponential, Classes::Shares(shares))?;
    let mark = DrainMark::Commit;
    let scenario = match drain_s {
        None => Scenario::host(machine, pattern, failures)?,
        Some(drain_s) => {
            Scenario::drained(machine, pattern, DrainPlay { drain_s, mark }, failures)?
        }
    };
    Case::new(random, form, closed, |longer, seed| {
        let length = Length::batches_of_s(f64::from(longer) * BATCH_FAILURES * mtti_s)?;
        let seen = scenario.estimate(&length, seed)?;
        Ok(Look {
            simulated: seen.efficiency,
            half_width_99: seen.half_width_99,
            half_width_9999: seen.half_width_9999,
            error: seen.half_width_99 / STUDENT_99,
        })
    })
}

fn survival(random: &mut Random) -> Result<Case> {
    let k = 2 + random.below(7);
    let m = 1 + random.below(k.min(3));
    let groups = Groups::new(k * (4 + random.below(12)) + random.below(k), k, m)?;
    let failures = m + 1 + random.below(3);
    let closed = groups.survival(failures);
    Case::new(random, "ring survival", closed, |longer, seed| {
        let sets = longer * SETS;
        let seen = draw(&groups, failures, sets, seed)?;
        let n = f64::from(sets);
        // Wilson's interval is sound near 0 and 1, where the usual one has no width.
        let wide = |z: f64| {
            z / (1.0 + z * z / n) * (seen * (1.0 - seen) / n + z * z / (4.0 * n * n)).sqrt()
                + (z * z / n) * (0.5 - seen).abs() / (1.0 + z * z / n)
        };
        Ok(Look {
            simulated: seen,
            half_width_99: wide(NORMAL_99),
            half_width_9999: wide(NORMAL_9999),
            error: (closed * (1.0 - closed) / n).sqrt(),
        })
    })
}

/// Share of random sets of failed nodes that the groups survive.
fn draw(groups: &Groups, failures: u64, sets: u32, seed: u64) -> Result<f64> {
    let mut random = Random::new(seed);
    let mut alive = 0u32;
    for _ in 0..sets {
        let mut nodes: Vec<u64> = Vec::new();
        while (nodes.len() as u64) < failures {
            let node = random.below(groups.nodes());
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        alive += u32::from(groups.survives(&nodes)?);
    }
    Ok(f64::from(alive) / f64::from(sets))
}

#[cfg(test)]
mod tests;
