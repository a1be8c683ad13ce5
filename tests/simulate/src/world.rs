//! What all parts of one run share: the seed, the trace, what went wrong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::chance::{Chance, mix};
use crate::fibers::Clock;

/// Most lines of a trace that are kept: the end tells what went wrong.
const TRACE_LINES_MAX: usize = 4000;
/// How long a turn takes, by the clocks of nodes.
const TURN_NS: u64 = 1000;

/// One run.
pub struct World {
    /// What everything follows from.
    pub seed: u64,
    /// The bug that this run has, if any.
    pub planted: Option<crate::Planted>,
    is_traced: bool,
    told: Mutex<Outcome>,
    calm: AtomicBool,
    /// Its time.
    pub clock: Clock,
}

/// What a run has shown.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What happened, where it was traced.
    pub trace: Vec<String>,
    /// What must not be.
    pub wrong: Vec<String>,
    /// What should not be and is written down already.
    pub known: Option<String>,
}

impl World {
    /// A run of a seed. Traces take time: only runs that are shown have one.
    pub fn new(seed: u64, planted: Option<crate::Planted>, is_traced: bool) -> Arc<Self> {
        let told = Mutex::default();
        Arc::new(Self {
            seed,
            planted,
            is_traced,
            told,
            calm: AtomicBool::new(false),
            clock: Clock::default(),
        })
    }

    /// Numbers for one part of the run.
    pub fn chance(&self, part: &str) -> Chance {
        Chance::new(mix(&[self.seed, crate::chance::mix_text(part)]))
    }

    /// Whether the run has this bug.
    pub fn has(&self, bug: crate::Planted) -> bool {
        self.planted == Some(bug)
    }

    /// From now on nothing fails.
    pub fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    /// Whether nothing fails any more.
    pub fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// A line of the trace.
    pub fn trace(&self, line: impl FnOnce() -> String) {
        if self.is_traced {
            let line = format!("{:6} {}", self.clock.now(), line());
            let mut told = self.told();
            if told.trace.len() == TRACE_LINES_MAX {
                told.trace.remove(0);
            }
            told.trace.push(line);
        }
    }

    /// Something happened that must not.
    pub fn wrong(&self, what: String) {
        self.trace(|| format!("WRONG: {what}"));
        let mut told = self.told();
        if told.known.is_none() {
            told.wrong.push(what);
        }
    }

    /// Something happened that should not, and that is written down already: from here on the run
    /// proves nothing.
    pub fn known(&self, what: String) {
        self.trace(|| format!("KNOWN: {what}"));
        let mut told = self.told();
        if told.wrong.is_empty() {
            told.known.get_or_insert(what);
        }
    }

    /// What the run has shown.
    pub fn outcome(&self) -> Outcome {
        let mut told = self.told();
        std::mem::take(&mut *told)
    }

    fn told(&self) -> MutexGuard<'_, Outcome> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Random numbers and the time for jobs. Clocks of nodes differ, and may go back between lives.
pub struct Nature {
    world: Arc<World>,
    chance: Chance,
    ahead_ns: u64,
}

impl Nature {
    /// For the jobs of this thread, from now on.
    pub fn install(world: &Arc<World>) {
        standfast::simulation::install(Some(Box::new(Self::of(world))));
    }

    /// The turn in which it was this time.
    pub fn turn_at(world: &Arc<World>, ns: u64) -> u64 {
        ns.saturating_sub(Self::of(world).ahead_ns) / TURN_NS
    }

    fn of(world: &Arc<World>) -> Self {
        let mut chance = world.chance("nature");
        let ahead_ns = 1_700_000_000_000_000_000 + chance.below(1_000_000);
        Self { world: Arc::clone(world), chance, ahead_ns }
    }
}

impl standfast::simulation::Source for Nature {
    fn fill(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.chance.number().to_le_bytes()[..piece.len()]);
        }
    }

    fn now_ns(&mut self) -> u64 {
        self.ahead_ns + self.world.clock.now() * TURN_NS
    }
}
