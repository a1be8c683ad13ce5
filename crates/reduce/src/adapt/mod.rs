//! The codec `auto`: each block gets the codec that makes checkpoints quickest now.
//!
//! ```text
//! encoders --what blocks cost and saved--> knowledge --\
//! the write path --rates of collecting, storing--> ----- plan --> a codec for each class of blocks
//! ```
//! A block's class is what a small sample says about it: the filter that suits it and how much it
//! may shrink. Blocks in which the sample finds nothing are passed on as they are and belong to no
//! class.
//!
//! Why plans and not a rule for each block: what a block should cost depends on what the others
//! leave of the threads and of the store ([`plan`]).
//!
//! Invariants:
//! - Any choice stores the block correctly; knowledge only decides how fast.
//! - One [`Adaptive`] serves all encoders of a write path; what it holds is of fixed size.

mod encoder;
mod knowledge;
mod plan;

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use encoder::Choosing;
use encoder::Report;
use knowledge::{CLASSES, Knowledge, OPTIONS, first_option};
use plan::Plan;
pub use plan::Rates;

/// A plan is made anew after so many raw bytes.
const PLAN_BYTES: u64 = 1 << 20;
/// Of so many blocks of a class one tries what lies next to the plan's choice.
const TRIAL_TURNS: u32 = 64;
/// What is known already is tried again after so many plans.
const AGAIN_PLANS: u32 = 8;
/// Of what is remembered of the time that encoders took, so much stays with each report.
const REMEMBER: f64 = 0.98;
/// Bounds of how much longer encoders take than their processor time.
const SLOWDOWN: (f64, f64) = (1.0, 16.0);
/// What a store takes for a byte until it is known.
const STORE_S_FIRST: f64 = 1e-9;
/// What collecting takes for a byte until it is known.
const COLLECT_S_FIRST: f64 = 0.2e-9;

/// What all encoders of a write path know together.
pub struct Adaptive {
    /// The plan's option for eight blocks of each class.
    picks: [[AtomicU8; 8]; CLASSES],
    /// What to try beside the plan.
    trials: [AtomicU8; CLASSES],
    turns: [AtomicU32; CLASSES],
    state: Mutex<State>,
}

struct State {
    knowledge: Knowledge,
    plan: Option<Plan>,
    plans: u32,
    rates: Rates,
    unplanned_bytes: u64,
    wall_s: f64,
    zip_s: f64,
}

impl Adaptive {
    /// Nothing known yet, for so many encoders on so many cores. `in_turn`: the stages do not
    /// overlap.
    pub fn new(threads: usize, cores: usize, in_turn: bool) -> Self {
        let rates = Rates {
            collect_s: COLLECT_S_FIRST,
            store_s: STORE_S_FIRST,
            threads: threads.max(1),
            cores: cores.max(1),
            slowdown: 1.0,
            backlog_bytes: 0.0,
            in_turn,
        };
        let first = |class| [(); 8].map(|()| AtomicU8::new(first_option(class) as u8));
        Self {
            picks: std::array::from_fn(first),
            trials: std::array::from_fn(|class| AtomicU8::new(first_option(class) as u8)),
            turns: std::array::from_fn(|_| AtomicU32::new(0)),
            state: Mutex::new(State {
                knowledge: Knowledge::new(),
                plan: None,
                plans: 0,
                rates,
                unplanned_bytes: 0,
                wall_s: 0.0,
                zip_s: 0.0,
            }),
        }
    }

    /// The rates that plans are made with now.
    pub fn rates(&self) -> Rates {
        self.lock().rates
    }

    /// Tells what collecting takes for a raw byte.
    pub fn collecting(&self, seconds_per_byte: f64) {
        self.lock().rates.collect_s = seconds_per_byte;
    }

    /// Tells what storing takes for a stored byte, and how many are not yet written.
    pub fn storing(&self, seconds_per_byte: Option<f64>, backlog_bytes: u64) {
        let mut state = self.lock();
        if let Some(seconds) = seconds_per_byte {
            state.rates.store_s = seconds;
        }
        state.rates.backlog_bytes = backlog_bytes as f64;
    }

    fn option(&self, class: usize) -> usize {
        let turn = self.turns[class].fetch_add(1, Ordering::Relaxed);
        let pick = match turn % TRIAL_TURNS == TRIAL_TURNS - 1 {
            true => &self.trials[class],
            false => &self.picks[class][turn as usize % 8],
        };
        usize::from(pick.load(Ordering::Relaxed))
    }

    fn learn(&self, report: Report) {
        let mut state = self.lock();
        for ((class, option), seen) in report.seen {
            state.knowledge.learn(class, option, &seen);
        }
        if report.noise_bytes > 0 {
            state.knowledge.noise(report.noise_bytes);
        }
        state.wall_s = state.wall_s * REMEMBER + report.wall_s;
        state.zip_s = state.zip_s * REMEMBER + report.zip_s;
        if state.zip_s > 0.0 {
            let slowdown = state.wall_s / state.zip_s;
            state.rates.slowdown = slowdown.clamp(SLOWDOWN.0, SLOWDOWN.1);
        }
        state.unplanned_bytes += report.raw_bytes;
        if state.plan.is_none() || state.unplanned_bytes >= PLAN_BYTES {
            self.plan(&mut state);
        }
    }

    fn plan(&self, state: &mut State) {
        state.unplanned_bytes = 0;
        state.plans += 1;
        let classes = state.knowledge.classes();
        let plan = plan::plan(&classes, &state.rates, state.plan.as_ref());
        for class in 0..CLASSES {
            for (turn, pick) in self.picks[class].iter().enumerate() {
                pick.store(plan.option(class, turn as u32) as u8, Ordering::Relaxed);
            }
            let trial = trial(&state.knowledge, class, plan.option(class, 0), state.plans);
            self.trials[class].store(trial as u8, Ordering::Relaxed);
        }
        state.plan = Some(plan);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Numbers only: whoever panicked has left them usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to try beside an option: a neighbour that is only guessed; and now and then one that is
/// known, for data change.
fn trial(knowledge: &Knowledge, class: usize, option: usize, plans: u32) -> usize {
    let (above, below) = ((option + 1).min(OPTIONS - 1), option.saturating_sub(1));
    match (plans / AGAIN_PLANS) % 2 {
        _ if !knowledge.is_known(class, above) => above,
        _ if !knowledge.is_known(class, below) => below,
        _ if !plans.is_multiple_of(AGAIN_PLANS) => option,
        0 => above,
        _ => below,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockEncoder;
    use crate::filter::FilterChoice;
    use standfast_format::CodecKind;
    use std::sync::Arc;

    const BLOCK: usize = 128 << 10;

    fn text() -> Vec<u8> {
        let words = ["rank", "page", "of", "the", "block", "is", "written", "before"];
        let mut state = 1_u32;
        let mut text = Vec::new();
        while text.len() < BLOCK {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.extend_from_slice(words[(state >> 29) as usize].as_bytes());
            text.push(b' ');
        }
        text.truncate(BLOCK);
        text
    }

    /// The codec of most of the blocks after many were encoded at a store of this rate.
    fn usual(store_mbps: f64) -> CodecKind {
        let adaptive = Arc::new(Adaptive::new(2, 2, false));
        adaptive.storing(Some(1e-6 / store_mbps), 0);
        let mut encoder = BlockEncoder::adaptive(Arc::clone(&adaptive), FilterChoice::Auto, BLOCK);
        let text = text();
        let mut counts = std::collections::HashMap::new();
        for turn in 0..200 {
            let codec = encoder.encode(&text, 0).codec;
            *counts.entry(codec).or_insert(0) += usize::from(turn >= 100);
        }
        counts.into_iter().max_by_key(|(_, count)| *count).expect("some were encoded").0
    }

    #[test]
    fn a_slow_store_gets_a_strong_codec_and_a_fast_one_none() {
        assert_eq!(usual(1.0), CodecKind::Zstd);
        assert_eq!(usual(1e9), CodecKind::None);
    }

    #[test]
    fn noise_is_passed_on_and_counted() {
        let adaptive = Arc::new(Adaptive::new(1, 1, false));
        let mut encoder = BlockEncoder::adaptive(Arc::clone(&adaptive), FilterChoice::Auto, BLOCK);
        let mut state = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .take(BLOCK)
        .collect();
        for _ in 0..20 {
            assert_eq!(encoder.encode(&noise, 0).codec, CodecKind::None);
        }
        let classes = adaptive.lock().knowledge.classes();
        assert!(classes.last().expect("noise is the last").weight > 0.99);
    }
}
