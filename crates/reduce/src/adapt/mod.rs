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
//! Where a device encodes too (a GPU), it competes with that plan ([`elsewhere`]).
//!
//! Why plans and not a rule for each block: what a block should cost depends on what the others
//! leave of the threads and of the store ([`plan`]).
//!
//! Invariants:
//! - Any choice stores the block correctly; knowledge only decides how fast.
//! - One [`Adaptive`] serves all encoders of a write path; what it holds is of fixed size.

mod elsewhere;
mod encoder;
mod knowledge;
mod plan;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use elsewhere::Elsewhere;
pub(crate) use elsewhere::Place;
pub(crate) use encoder::Choosing;
use encoder::Report;
use knowledge::{CLASSES, Knowledge, OPTIONS, first_option};
pub use plan::Rates;
use plan::{Class, Plan, TURNS};

/// A plan is made anew after so many raw bytes: soon while little is known, then seldom, for it takes
/// as long as compressing some pages, and the other encoders wait for it.
const PLAN_BYTES: (u64, u64) = (1 << 20, 4 << 20);
/// How many plans are made soon.
const SOON: u32 = 8;
/// Trying what lies next to the plan's choice may take so much of the encoders' time.
const TRIAL_SHARE: f64 = 0.01;
/// The usual length of a block, to tell what a trial will cost.
const BLOCK_BYTES: f64 = 131_072.0;
/// No trial is to be made.
const NO_TRIAL: u16 = u16::MAX;
/// Of what is remembered of the time that encoders took, so much stays with each report.
const REMEMBER: f64 = 0.98;
/// Bounds of how much longer encoders take than their processor time.
const SLOWDOWN: (f64, f64) = (1.0, 16.0);
/// What a store takes for a byte until it is known.
const STORE_S_FIRST: f64 = 1e-9;
/// What collecting takes for a byte until it is known.
const COLLECT_S_FIRST: f64 = 0.2e-9;

/// A class with less of all bytes than this does not keep others from being passed on unseen.
const WEIGHT_MIN: f64 = 0.01;
/// While everything is passed on as it is, one block of so many is looked at.
const LOOK_BLOCKS: u32 = 8;

/// What all encoders of a write path know together.
pub struct Adaptive {
    /// Whether the plan stores all there is as it is.
    passes: AtomicBool,
    passed: AtomicU32,
    /// The plan's option for a round of blocks of each class.
    picks: [[AtomicU8; TURNS as usize]; CLASSES],
    /// What the next block of a class is to try: the class times 256, and the option.
    trial: AtomicU16,
    turns: [AtomicU32; CLASSES],
    state: Mutex<State>,
    /// Where a device encodes too.
    elsewhere: Mutex<Elsewhere>,
}

struct State {
    knowledge: Knowledge,
    plan: Option<Plan>,
    plans: u32,
    rates: Rates,
    unplanned_bytes: u64,
    collectors: usize,
    /// Seconds that trials may take now, and what the one that is due takes of them.
    trial_s: f64,
    due_s: f64,
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
            ahead_bytes: 0.0,
            collecting: false,
            in_turn,
        };
        let first = |class| std::array::from_fn(|_| AtomicU8::new(first_option(class) as u8));
        Self {
            passes: AtomicBool::new(false),
            passed: AtomicU32::new(0),
            picks: std::array::from_fn(first),
            trial: AtomicU16::new(NO_TRIAL),
            turns: std::array::from_fn(|_| AtomicU32::new(0)),
            state: Mutex::new(State {
                knowledge: Knowledge::new(),
                plan: None,
                plans: 0,
                rates,
                unplanned_bytes: 0,
                collectors: 0,
                trial_s: 0.0,
                due_s: 0.0,
                wall_s: 0.0,
                zip_s: 0.0,
            }),
            elsewhere: Mutex::new(Elsewhere::new()),
        }
    }

    /// The rates that plans are made with now.
    pub fn rates(&self) -> Rates {
        self.lock().rates
    }

    /// Somebody begins to collect; tell when that ends.
    pub fn begin_collecting(&self) {
        let mut state = self.lock();
        state.collectors += 1;
        state.rates.collecting = true;
    }

    /// Somebody has collected everything.
    pub fn end_collecting(&self) {
        let mut state = self.lock();
        state.collectors = state.collectors.saturating_sub(1);
        state.rates.collecting = state.collectors > 0;
    }

    /// Tells what collecting takes for a raw byte.
    pub fn collecting(&self, seconds_per_byte: f64) {
        self.lock().rates.collect_s = seconds_per_byte;
    }

    /// Tells how many raw bytes wait to be compressed.
    pub fn waiting(&self, ahead_bytes: u64) {
        self.lock().rates.ahead_bytes = ahead_bytes as f64;
    }

    /// Tells what storing takes for a stored byte, and how many are not yet written.
    pub fn storing(&self, seconds_per_byte: Option<f64>, backlog_bytes: u64) {
        let mut state = self.lock();
        if let Some(seconds) = seconds_per_byte {
            state.rates.store_s = seconds;
        }
        state.rates.backlog_bytes = backlog_bytes as f64;
    }

    /// Whether a block is to be stored as it is without a look at it: samples cost more than a fast
    /// store leaves time for.
    fn passes(&self) -> bool {
        self.passes.load(Ordering::Relaxed)
            && !self.passed.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOK_BLOCKS)
    }

    fn option(&self, class: usize) -> usize {
        let trial = self.trial.load(Ordering::Relaxed);
        if usize::from(trial >> 8) == class {
            let taken =
                self.trial.compare_exchange(trial, NO_TRIAL, Ordering::Relaxed, Ordering::Relaxed);
            if taken.is_ok() {
                return usize::from(trial & 0xFF);
            }
        }
        let turn = self.turns[class].fetch_add(1, Ordering::Relaxed);
        usize::from(self.picks[class][turn as usize % TURNS as usize].load(Ordering::Relaxed))
    }

    fn learn(&self, report: Report) {
        let mut state = self.lock();
        for ((class, option), seen) in report.seen {
            state.knowledge.learn(class, option, &seen);
        }
        if report.noise_bytes > 0 {
            state.knowledge.noise(report.noise_bytes);
        }
        state.wall_s = state.wall_s * REMEMBER + report.wall_s / state.rates.crowding();
        state.zip_s = state.zip_s * REMEMBER + report.zip_s;
        state.trial_s += TRIAL_SHARE * report.zip_s;
        if state.zip_s > 0.0 {
            let slowdown = state.wall_s / state.zip_s;
            state.rates.slowdown = slowdown.clamp(SLOWDOWN.0, SLOWDOWN.1);
        }
        state.unplanned_bytes += report.raw_bytes;
        let due = if state.plans < SOON { PLAN_BYTES.0 } else { PLAN_BYTES.1 };
        if state.plan.is_none() || state.unplanned_bytes >= due {
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
        }
        let weighty = (0..CLASSES).filter(|class| classes[*class].weight >= WEIGHT_MIN);
        let mut turns = weighty.flat_map(|class| (0..TURNS).map(move |turn| (class, turn)));
        let passes = turns.all(|(class, turn)| plan.option(class, turn) == 0);
        self.passes.store(passes, Ordering::Relaxed);
        self.plan_trial(state, &classes, &plan);
        state.plan = Some(plan);
    }

    /// Lets one block try a neighbour of its class's option, if there is time for it.
    fn plan_trial(&self, state: &mut State, classes: &[Class], plan: &Plan) {
        if self.trial.swap(NO_TRIAL, Ordering::Relaxed) != NO_TRIAL {
            // Its class did not come again.
            state.trial_s += state.due_s;
        }
        let Some((class, option)) = trial(&state.knowledge, classes, plan, state.plans) else {
            return;
        };
        let costs = &classes[class].options;
        let more_s = costs[option].zip_s - costs[plan.option(class, 0)].zip_s;
        let takes_s = BLOCK_BYTES * more_s.max(0.0);
        if takes_s <= state.trial_s {
            state.trial_s -= takes_s;
            state.due_s = takes_s;
            self.trial.store((class as u16) << 8 | option as u16, Ordering::Relaxed);
        }
    }

    /// Where a block is encoded, if there is a device for it; what goes there is to come back.
    fn place(&self, elem: u8, raw_bytes: usize) -> Place {
        let here_s = || {
            let state = self.lock();
            let score = |plan: &Plan| plan.score(&state.knowledge.classes(), &state.rates);
            state.plan.as_ref().map_or(f64::INFINITY, score)
        };
        let there_s = |zip_s, share| plan::score_elsewhere(zip_s, share, &self.rates());
        let mut elsewhere = lock(&self.elsewhere);
        let place = elsewhere.place(elem, raw_bytes, here_s, there_s);
        if place != Place::Here {
            elsewhere.begin();
        }
        place
    }

    fn came_back(&self, elem: u8, place: Place, done: Option<(usize, usize)>) {
        lock(&self.elsewhere).end(elem, place, done);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Numbers only: whoever panicked has left them usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A class and what to try for it: the neighbour that is only guessed, of the class with the most
/// bytes; where all are known one of them again, in turn, for data change.
fn trial(
    knowledge: &Knowledge,
    classes: &[Class],
    plan: &Plan,
    plans: u32,
) -> Option<(usize, usize)> {
    let neighbours = (0..CLASSES).filter(|class| classes[*class].weight > 0.0).flat_map(|class| {
        let option = plan.option(class, 0);
        let near = [option + 1, option.wrapping_sub(1)];
        near.into_iter().filter(|near| *near < OPTIONS).map(move |near| (class, near))
    });
    let all: Vec<(usize, usize)> = neighbours.collect();
    let guessed = all.iter().filter(|(class, option)| !knowledge.is_known(*class, *option));
    let weight = |class: usize| classes[class].weight;
    let heaviest = guessed.max_by(|a, b| weight(a.0).total_cmp(&weight(b.0)));
    heaviest.or_else(|| all.get(plans as usize % all.len().max(1))).copied()
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

    #[test]
    fn what_a_fast_store_takes_as_it_is_is_hardly_looked_at() {
        let adaptive = Arc::new(Adaptive::new(2, 2, false));
        let mut encoder = BlockEncoder::adaptive(Arc::clone(&adaptive), FilterChoice::Auto, BLOCK);
        let text = text();
        adaptive.storing(Some(1e-15), 0);
        for _ in 0..100 {
            encoder.encode(&text, 0);
        }
        let looks = (0..80).filter(|_| !adaptive.passes()).count();
        assert_eq!(looks, 80 / LOOK_BLOCKS as usize);
        // The store becomes slow: the blocks that are still looked at tell what to do.
        adaptive.storing(Some(1e-6), 0);
        let codecs: Vec<CodecKind> = (0..100).map(|_| encoder.encode(&text, 0).codec).collect();
        assert_eq!(codecs[99], CodecKind::Zstd);
    }

    /// A device that halves every block in no time.
    struct Halving;

    impl crate::Offload for Halving {
        fn callers(&self) -> usize {
            1
        }

        fn encode(
            &self,
            _: u32,
            raw: &[u8],
            _: u8,
            out: &mut Vec<u8>,
        ) -> Option<(CodecKind, standfast_format::FilterKind)> {
            out.resize(raw.len() / 2, 0);
            Some((CodecKind::Float, standfast_format::FilterKind::None))
        }
    }

    #[test]
    fn a_device_competes_with_the_encoders_of_this_process() {
        for (store_mbps, expected) in [(1.0, CodecKind::Zstd), (1500.0, CodecKind::Float)] {
            let adaptive = Arc::new(Adaptive::new(1, 1, false));
            adaptive.storing(Some(1e-6 / store_mbps), 0);
            let mut encoder =
                BlockEncoder::adaptive(Arc::clone(&adaptive), FilterChoice::Auto, BLOCK)
                    .offloaded(Some(Arc::new(Halving)));
            let text = text();
            // Windows of 256 blocks: as numbers, as bytes, here, then the best.
            let codecs: Vec<CodecKind> = (0..800).map(|_| encoder.encode(&text, 8).codec).collect();
            assert_eq!(codecs[0], CodecKind::Float);
            assert_ne!(codecs[600], CodecKind::Float);
            assert_eq!(codecs[799], expected, "a store of {store_mbps} MB/s");
        }
    }
}
