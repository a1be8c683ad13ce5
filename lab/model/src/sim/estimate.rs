//! From timelines to numbers with an error bar.
//!
//! Data: [`Scenario`], [`Length`] -> batches of one long run -> [`Estimate`].
//!
//! Why batch means: work gained in consecutive stretches of a long run is nearly independent
//! when a stretch holds hundreds of failures. The ratio of work to time over batches has a
//! Student interval; the first stretch is dropped, because the job starts with nothing to lose.
//!
//! Invariants:
//! - The interval is two-sided at 99 %, from 32 batches.

use serde::Serialize;

use super::Scenario;
use super::timeline::Timeline;
use standfast_model::LEVELS_MAX;
use standfast_model::Result;
use standfast_model::bounds::positive;

const BATCHES: usize = 32;
/// Student's quantile for 31 degrees of freedom, 99.5 %.
pub(crate) const STUDENT_99: f64 = 2.744;
/// The same for 99.995 %: one case in ten thousand falls outside.
const STUDENT_9999: f64 = 4.50;

/// How long to simulate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Length {
    batch_s: f64,
}

impl Length {
    /// Each of the 32 batches, and the warm-up, lasts this long.
    pub fn batches_of_s(batch_s: f64) -> Result<Self> {
        Ok(Self { batch_s: positive("batch_s", batch_s)? })
    }

    /// The whole run, warm-up included, lasts about this long.
    pub fn whole_s(total_s: f64) -> Result<Self> {
        Self::batches_of_s(positive("total_s", total_s)? / (BATCHES + 1) as f64)
    }
}

/// What a simulation found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Work over time.
    pub efficiency: f64,
    /// Half the width of the 99 % interval.
    pub half_width_99: f64,
    /// Half the width of the 99.99 % interval.
    pub half_width_9999: f64,
    /// Failures that were played.
    pub strikes: u64,
    /// Simulated time, without the warm-up.
    pub elapsed_s: f64,
    /// Share of the time spent restoring, by level.
    pub restore: [f64; LEVELS_MAX],
}

impl Estimate {
    /// Whether a value lies within the 99 % interval.
    pub fn agrees_with(&self, efficiency: f64) -> bool {
        (self.efficiency - efficiency).abs() <= self.half_width_99
    }

    /// Whether a value lies within the much wider 99.99 % interval.
    pub fn tolerates(&self, efficiency: f64) -> bool {
        (self.efficiency - efficiency).abs() <= self.half_width_9999
    }
}

pub(super) fn estimate(scenario: &Scenario, length: &Length, seed: u64) -> Result<Estimate> {
    let horizon = length.batch_s * (BATCHES + 2) as f64;
    let mut timeline = Timeline::new(scenario, seed, horizon);
    timeline.advance(length.batch_s);
    let (start, before) = (timeline.now_s(), timeline.counts);
    let (mut time, mut work) = (timeline.now_s(), timeline.work_s());
    let mut batches = Vec::with_capacity(BATCHES);
    for batch in 0..BATCHES {
        timeline.advance(length.batch_s * (batch + 2) as f64);
        batches.push((timeline.work_s() - work, timeline.now_s() - time));
        (time, work) = (timeline.now_s(), timeline.work_s());
    }
    let elapsed = timeline.now_s() - start;
    let (efficiency, error) = ratio(&batches);
    let counts = timeline.counts;
    Ok(Estimate {
        efficiency,
        half_width_99: STUDENT_99 * error,
        half_width_9999: STUDENT_9999 * error,
        strikes: counts.strikes - before.strikes,
        elapsed_s: elapsed,
        restore: std::array::from_fn(|level| {
            (counts.restore_s[level] - before.restore_s[level]) / elapsed
        }),
    })
}

/// Ratio of sums and its standard error.
fn ratio(batches: &[(f64, f64)]) -> (f64, f64) {
    let n = batches.len() as f64;
    let work: f64 = batches.iter().map(|b| b.0).sum();
    let time: f64 = batches.iter().map(|b| b.1).sum();
    let ratio = work / time;
    let squares: f64 = batches.iter().map(|(w, t)| (w - ratio * t).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt() / (time / n);
    (ratio, error)
}
