//! Closed forms against the simulator on random machines.
//!
//! Data: a count and a seed -> random cases -> [`Agreement`]: how many closed forms lie within
//! the simulator's own 99 % interval.
//!
//! One case in a hundred must fall outside a 99 % interval even if everything is right; a wrong
//! formula shows as many misses, or as one outside the 99.99 % interval. Both are reported.
//!
//! Invariants:
//! - A case is decided by the seed alone; none is drawn again because of its result.

use serde::Serialize;

use crate::drain::{Drained, Visibility};
use crate::error::Result;
use crate::failures::{Classes, FailureModel, Lifetimes};
use crate::levels::{Hierarchy, Level, Pattern};
use crate::random::Random;
use crate::ring::Groups;
use crate::sim::{DrainMark, DrainPlay, Length, Scenario};
use crate::single::Single;

/// Draws per survival case.
const SETS: u32 = 4000;
/// Normal quantiles, two-sided 99 % and 99.99 %.
const NORMAL_99: f64 = 2.576;
const NORMAL_9999: f64 = 3.891;

/// One comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// Which closed form.
    pub form: &'static str,
    /// Its value: an efficiency or a chance.
    pub closed: f64,
    /// What the simulator found.
    pub simulated: f64,
    /// Half the width of the simulator's 99 % interval.
    pub half_width_99: f64,
    /// Half the width of its 99.99 % interval.
    pub half_width_9999: f64,
}

impl Case {
    /// Within the 99 % interval.
    pub fn inside(&self) -> bool {
        (self.closed - self.simulated).abs() <= self.half_width_99
    }

    /// Outside even the 99.99 % interval: the formula or the simulator is wrong.
    pub fn broken(&self) -> bool {
        (self.closed - self.simulated).abs() > self.half_width_9999
    }
}

/// All comparisons of one seed.
#[derive(Debug, Clone, Serialize)]
pub struct Agreement {
    /// The comparisons.
    pub cases: Vec<Case>,
}

impl Agreement {
    /// Cases within the 99 % interval.
    pub fn inside(&self) -> usize {
        self.cases.iter().filter(|case| case.inside()).count()
    }

    /// Cases outside the 99.99 % interval.
    pub fn broken(&self) -> usize {
        self.cases.iter().filter(|case| case.broken()).count()
    }
}

/// Compares `count` random machines; the forms take turns.
pub fn compare(count: u32, seed: u64) -> Result<Agreement> {
    let mut random = Random::new(seed);
    let cases = (0..count)
        .map(|index| match index % 10 {
            0 | 1 => single(&mut random),
            2..=4 => host(&mut random, 2),
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
    let interval_s = machine.mtti_s() * random.log_between(0.02, 0.3);
    let every = (1..levels).map(|_| 1 + random.below(8)).collect();
    let pattern = Pattern { interval_s, every };
    let closed = machine.outcome(&pattern)?.efficiency;
    let form = if levels == 2 { "two levels, host" } else { "three levels, host" };
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
    let shares = machine.levels.iter().map(|level| level.share).collect();
    let failures =
        FailureModel::new(machine.mtti_s(), Lifetimes::Exponential, Classes::Shares(shares))?;
    let length = Length::batches_of_s(400.0 * machine.mtti_s())?;
    let mark = DrainMark::Commit;
    let scenario = match drain_s {
        None => Scenario::host(machine, pattern, failures)?,
        Some(drain_s) => {
            Scenario::drained(machine, pattern, DrainPlay { drain_s, mark }, failures)?
        }
    };
    let seen = scenario.estimate(&length, random.below(1 << 40))?;
    Ok(Case {
        form,
        closed,
        simulated: seen.efficiency,
        half_width_99: seen.half_width_99,
        half_width_9999: seen.half_width_9999,
    })
}

fn survival(random: &mut Random) -> Result<Case> {
    let k = 2 + random.below(7);
    let m = 1 + random.below(k.min(3));
    let groups = Groups::new(k * (4 + random.below(12)) + random.below(k), k, m)?;
    let failures = m + 1 + random.below(3);
    let mut alive = 0u32;
    for _ in 0..SETS {
        let mut nodes: Vec<u64> = Vec::new();
        while (nodes.len() as u64) < failures {
            let node = random.below(groups.nodes());
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        alive += u32::from(groups.survives(&nodes)?);
    }
    let n = f64::from(SETS);
    let seen = f64::from(alive) / n;
    // Wilson's interval is sound near 0 and 1, where the usual one has no width.
    let wide = |z: f64| {
        z / (1.0 + z * z / n) * (seen * (1.0 - seen) / n + z * z / (4.0 * n * n)).sqrt()
            + (z * z / n) * (0.5 - seen).abs() / (1.0 + z * z / n)
    };
    Ok(Case {
        form: "ring survival",
        closed: groups.survival(failures),
        simulated: seen,
        half_width_99: wide(NORMAL_99),
        half_width_9999: wide(NORMAL_9999),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms_agree_with_the_simulator_on_100_machines() {
        let agreement = compare(100, 2026).unwrap();
        for case in agreement.cases.iter().filter(|case| !case.inside()) {
            println!("outside: {case:?}");
        }
        assert_eq!(agreement.broken(), 0);
        // 99 are expected; four misses or more would happen in 2 % of honest seeds.
        assert!(agreement.inside() >= 97, "{} inside", agreement.inside());
    }

    #[test]
    fn a_wrong_formula_is_found() {
        let mut agreement = compare(30, 5).unwrap();
        for case in &mut agreement.cases {
            // One part in thirty off, as if restores had been forgotten.
            case.closed *= 1.03;
        }
        assert!(agreement.inside() < 20, "{} inside", agreement.inside());
        assert!(agreement.broken() > 5);
    }
}
