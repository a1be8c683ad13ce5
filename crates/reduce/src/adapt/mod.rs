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
mod pairs;
mod plan;
mod rates;
mod trials;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use elsewhere::Elsewhere;
pub(crate) use elsewhere::Place;
pub(crate) use encoder::Choosing;
use encoder::Report;
use knowledge::{CLASSES, Knowledge, ZSTD, reference};
use plan::{Class, Plan};
pub use rates::Rates;
use trials::{Due, Trials, weighty};

/// A plan is made anew after so many raw bytes: soon while little is known, then seldom, for it takes
/// as long as compressing some pages.
const PLAN_BYTES: (u64, u64) = (1 << 20, 2 << 20);
/// How many plans are made soon.
const SOON: u32 = 8;
/// Of what is remembered of the time that encoders took, so much stays with each report.
const REMEMBER: f64 = 0.98;
/// Bounds of how much longer encoders take than their processor time.
const SLOWDOWN: (f64, f64) = (1.0, 16.0);
/// What a store takes for a byte until it is known.
const STORE_S_FIRST: f64 = 1e-9;
/// What collecting takes for a byte until it is known.
const COLLECT_S_FIRST: f64 = 0.2e-9;

/// Blocks are looked at closely while so much of all bytes gets slow codecs.
const SLOW_PART: f64 = 0.1;
/// While everything is passed on as it is, one block of so many is looked at.
const LOOK_BLOCKS: u32 = 8;

/// What all encoders of a write path know together.
pub struct Adaptive {
    /// Whether the plan stores all there is as it is.
    passes: AtomicBool,
    passed: AtomicU32,
    /// Whether the plan has slow codecs for many blocks.
    slow: AtomicBool,
    /// How often the plan has changed.
    version: AtomicU32,
    plan: Mutex<Arc<Plan>>,
    /// Stored bytes on their way.
    backlog_bytes: AtomicU64,
    /// What the next block of a class is to try.
    due: Due,
    /// Blocks of each class.
    turns: [AtomicU32; CLASSES],
    told: Mutex<Told>,
    /// Held while a plan is made: nobody waits for it.
    state: Mutex<State>,
    /// Where a device encodes too.
    elsewhere: Mutex<Elsewhere>,
}

/// What the write path has told; held for moments only.
struct Told {
    rates: Rates,
    collectors: usize,
}

struct State {
    knowledge: Knowledge,
    plans: u32,
    unplanned_bytes: u64,
    trials: Trials,
    wall_s: f64,
    busy_s: f64,
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
            backlog_bytes: None,
            ahead_bytes: 0.0,
            collecting: false,
            in_turn,
        };
        Self {
            passes: AtomicBool::new(false),
            passed: AtomicU32::new(0),
            slow: AtomicBool::new(false),
            version: AtomicU32::new(0),
            plan: Mutex::new(Arc::new(Plan::fixed(references()))),
            backlog_bytes: AtomicU64::new(0),
            due: Due::nothing(),
            turns: std::array::from_fn(|_| AtomicU32::new(0)),
            told: Mutex::new(Told { rates, collectors: 0 }),
            state: Mutex::new(State {
                knowledge: Knowledge::new(),
                plans: 0,
                unplanned_bytes: 0,
                trials: Trials::new(),
                wall_s: 0.0,
                busy_s: 0.0,
            }),
            elsewhere: Mutex::new(Elsewhere::new()),
        }
    }

    /// The rates that plans are made with now.
    pub fn rates(&self) -> Rates {
        lock(&self.told).rates
    }

    /// Somebody begins to collect; tell when that ends.
    pub fn begin_collecting(&self) {
        let mut told = lock(&self.told);
        told.collectors += 1;
        told.rates.collecting = true;
    }

    /// Somebody has collected everything.
    pub fn end_collecting(&self) {
        let mut told = lock(&self.told);
        told.collectors = told.collectors.saturating_sub(1);
        told.rates.collecting = told.collectors > 0;
    }

    /// Tells what collecting takes for a raw byte.
    pub fn collecting(&self, seconds_per_byte: f64) {
        lock(&self.told).rates.collect_s = seconds_per_byte;
    }

    /// Tells how many raw bytes wait to be compressed.
    pub fn waiting(&self, ahead_bytes: u64) {
        lock(&self.told).rates.ahead_bytes = ahead_bytes as f64;
    }

    /// Tells what storing takes for a stored byte, and how many are not yet written, where that is
    /// counted.
    pub fn storing(&self, seconds_per_byte: Option<f64>, backlog_bytes: Option<u64>) {
        self.backlog_bytes.store(backlog_bytes.unwrap_or(0), Ordering::Relaxed);
        let mut told = lock(&self.told);
        if let Some(seconds) = seconds_per_byte {
            told.rates.store_s = seconds;
        }
        told.rates.backlog_bytes = backlog_bytes.map(|bytes| bytes as f64);
    }

    /// Whether a block is to be stored as it is without a look at it: samples cost more than a fast
    /// store leaves time for.
    fn passes(&self) -> bool {
        self.passes.load(Ordering::Relaxed)
            && !self.passed.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOK_BLOCKS)
    }

    fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// The plan and its version.
    fn current(&self) -> (Arc<Plan>, u32) {
        let plan = lock(&self.plan);
        (Arc::clone(&plan), self.version())
    }

    /// What the plan says for a block of a class.
    fn option(&self, plan: &Plan, class: usize) -> usize {
        let turn = self.turns[class].fetch_add(1, Ordering::Relaxed);
        let backlog_bytes = self.backlog_bytes.load(Ordering::Relaxed);
        plan.option(class, backlog_bytes as f64, turn)
    }

    /// Takes in what an encoder has learned, unless another one is just telling: then next time.
    fn learn(&self, report: &mut Report) {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let report = std::mem::take(report);
        for (class, option, pair) in report.pairs {
            state.knowledge.compare(class, option, pair);
        }
        for ((class, option), seen) in report.seen {
            state.knowledge.learn(class, option, &seen);
        }
        if report.noise_bytes > 0 {
            state.knowledge.noise(report.noise_bytes);
        }
        state.knowledge.beside(report.beside_s, report.beside_bytes);
        state.trials.earn(report.busy_s);
        state.trials.spend(report.trial_s);
        let rates = self.slowed(&mut state, report.wall_s, report.busy_s);
        state.unplanned_bytes += report.raw_bytes;
        let due = if state.plans < SOON { PLAN_BYTES.0 } else { PLAN_BYTES.1 };
        if state.plans == 0 || state.unplanned_bytes >= due {
            self.plan(&mut state, &rates);
        }
    }

    /// The rates, with what blocks took by the clock and by the processor.
    fn slowed(&self, state: &mut State, wall_s: f64, busy_s: f64) -> Rates {
        let rates = &mut lock(&self.told).rates;
        state.wall_s = state.wall_s * REMEMBER + wall_s / rates.crowding();
        state.busy_s = state.busy_s * REMEMBER + busy_s;
        if state.busy_s > 0.0 {
            rates.slowdown = (state.wall_s / state.busy_s).clamp(SLOWDOWN.0, SLOWDOWN.1);
        }
        *rates
    }

    fn plan(&self, state: &mut State, rates: &Rates) {
        state.unplanned_bytes = 0;
        state.plans += 1;
        let classes = state.knowledge.classes();
        let plan = Arc::new(plan::plan(&classes, &references(), rates));
        let backlog_bytes = rates.backlog_bytes.unwrap_or(0.0);
        let passes = weighty(&classes).all(|class| plan.options(class.at, backlog_bytes) == [0, 0]);
        self.passes.store(passes, Ordering::Relaxed);
        let is_slow = |class: &&Class| plan.options(class.at, backlog_bytes)[0] >= ZSTD;
        let slow_part: f64 = weighty(&classes).filter(is_slow).map(|class| class.weight).sum();
        self.slow.store(slow_part >= SLOW_PART, Ordering::Relaxed);
        let turn = state.plans as usize;
        let next = state.trials.next(&state.knowledge, &classes, &plan, rates, turn);
        self.due.set(next);
        *lock(&self.plan) = plan;
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Where a block is encoded, if there is a device for it; what goes there is to come back.
    fn place(&self, elem: u8, raw_bytes: usize) -> Place {
        let here_s = || lock(&self.plan).score();
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
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Numbers only: whoever panicked has left them usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is done with the first block of each class.
fn references() -> Vec<u8> {
    // The last is for bytes that are only passed on.
    (0..CLASSES).map(|class| reference(class) as u8).chain([0]).collect()
}

#[cfg(test)]
mod tests;
