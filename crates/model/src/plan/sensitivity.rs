//! What if an input is wrong: the same plan on another machine, and a new plan for it.
//!
//! Data: [`Inputs`] and the chosen plan -> [`Sensitivity`] cases.

use serde::Serialize;

use super::Inputs;
use super::machine::{Chosen, Machine};
use crate::error::Result;

/// One "what if".
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensitivity {
    /// What is different.
    pub change: String,
    /// Efficiency if the plan is kept.
    pub efficiency_kept: f64,
    /// Efficiency with a plan of its own.
    pub efficiency_replanned: f64,
    /// Interval of that plan.
    pub interval_s: f64,
}

type Change = fn(&mut Inputs);

const CHANGES: [(&str, Change); 7] = [
    ("MTTI is half", |i| i.failures.mtti_s *= 0.5),
    ("MTTI is double", |i| i.failures.mtti_s *= 2.0),
    ("global bandwidth is half", |i| {
        i.rates.global_write_bps *= 0.5;
        i.rates.global_read_bps *= 0.5;
    }),
    ("local bandwidth is half", |i| {
        i.rates.local_write_bps *= 0.5;
        i.rates.local_read_bps *= 0.5;
    }),
    ("capture is half as fast", |i| i.rates.capture_bps *= 0.5),
    ("twice as much changes", |i| {
        i.job.changed_share = (2.0 * i.job.changed_share).min(1.0);
    }),
    ("no process failures", |i| i.failures.process_share = 0.0),
];

pub(crate) fn cases(inputs: &Inputs, chosen: &Chosen) -> Result<Vec<Sensitivity>> {
    CHANGES
        .iter()
        .map(|(change, apply)| {
            let mut other = inputs.clone();
            apply(&mut other);
            let kept = Machine::with_codec(&other, &chosen.machine.codec_name)?;
            let replanned = Machine::best(&other)?;
            Ok(Sensitivity {
                change: (*change).to_owned(),
                efficiency_kept: kept.outcome(&chosen.pattern)?.efficiency,
                efficiency_replanned: replanned.outcome.efficiency,
                interval_s: replanned.pattern.interval_s,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
