//! What a run has promised, and what it shows of it later.
//!
//! A *generation* is one try at a checkpoint: its number is in every page that it captures. So what
//! comes back tells which try it is of, whatever its version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::world::World;

/// Words of a page.
pub(crate) const PAGE_WORDS: usize = 128;
/// Pages of a rank.
pub(crate) const PAGES: usize = 6;

/// What a rank's memory holds in a generation: pages that never change, pages that all ranks
/// share, pages of its own.
pub(crate) fn contents(rank: usize, generation: u64) -> Vec<u64> {
    let page = |at: usize| match at {
        0 => generation,
        1 => 7,
        2 => 1000 + rank as u64,
        3 => 100_000 * generation + rank as u64,
        4 => 5000 + generation / 2,
        _ => 0,
    };
    let words = |at| (0..PAGE_WORDS as u64).map(move |word| page(at).wrapping_mul(word + 1));
    let mut words: Vec<u64> = (0..PAGES).flat_map(words).collect();
    // Not a whole number of pages.
    words.pop();
    words
}

#[derive(Default)]
struct State {
    /// The version of every generation.
    versions: BTreeMap<u64, u64>,
    /// The turn in which the first rank began each.
    begun: BTreeMap<u64, u64>,
    /// The newest generation that somebody was told is durable.
    acked: u64,
    /// The newest that was told to survive the loss of a node.
    acked_ring: u64,
    /// What ranks came back to in this life: generation, and the rank that told it first.
    came_back: Option<(u64, usize)>,
    /// The newest may be gone: something was damaged or lost beyond what is promised.
    is_excused: bool,
}

/// What was promised.
pub(crate) struct Oracle {
    world: Arc<World>,
    state: Mutex<State>,
}

impl Oracle {
    /// Nothing is promised yet.
    pub(crate) fn new(world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self { world: Arc::clone(world), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A try begins.
    pub(crate) fn tries(&self, generation: u64, version: u64) {
        let mut state = self.state();
        state.versions.insert(generation, version);
        state.begun.entry(generation).or_insert(self.world.clock.now());
    }

    /// Somebody was told that a generation is durable.
    pub(crate) fn acked(&self, generation: u64) {
        let mut state = self.state();
        state.acked = state.acked.max(generation);
    }

    /// Knows the tries that another one knows.
    pub(crate) fn learn(&self, other: &Oracle) {
        self.state().versions = other.state().versions.clone();
    }

    /// The try at a version that was taken in this turn.
    pub(crate) fn taken(&self, version: u64, turn: u64) -> u64 {
        let state = self.state();
        let begun = |generation: &u64| state.begun.get(generation).is_some_and(|own| *own <= turn);
        let mut same = state.versions.iter().rev().filter(|(_, own)| **own == version);
        same.find(|(generation, _)| begun(generation)).map_or(0, |(generation, _)| *generation)
    }

    /// Somebody was told that it survives the loss of a node.
    pub(crate) fn acked_ring(&self, generation: u64) {
        let mut state = self.state();
        state.acked_ring = state.acked_ring.max(generation);
    }

    /// A node is lost: only what survives that is promised from now on, and until it is protected
    /// again not that another one may be lost. Returns whether anything was given up.
    pub(crate) fn lose_node(&self) -> bool {
        let mut state = self.state();
        let less = state.acked_ring < state.acked;
        state.acked = std::mem::take(&mut state.acked_ring);
        less
    }

    /// Something was damaged: the newest may be gone, but nothing wrong may come back.
    pub(crate) fn excuse(&self) {
        self.state().is_excused = true;
    }

    /// Whether something was damaged.
    pub(crate) fn is_excused(&self) -> bool {
        self.state().is_excused
    }

    /// Ranks begin again.
    pub(crate) fn begin_life(&self) {
        self.state().came_back = None;
    }

    /// The newest generation that is promised.
    pub(crate) fn promised(&self) -> u64 {
        self.state().acked
    }

    /// A rank has come back with this memory. Returns the generation, if it is right.
    pub(crate) fn came_back(&self, rank: usize, version: u64, memory: &[u64]) -> Option<u64> {
        let generation = memory[0];
        let mut state = self.state();
        let wrong = |what: String| {
            self.world.wrong(what);
            None
        };
        if state.versions.get(&generation) != Some(&version) {
            return wrong(format!(
                "rank {rank} came back to checkpoint {version} with the memory of generation {generation}"
            ));
        }
        if memory != contents(rank, generation) {
            return wrong(format!("rank {rank} came back to checkpoint {version}: wrong bytes"));
        }
        match state.came_back {
            Some((other, first)) if other != generation => {
                return wrong(format!(
                    "rank {rank} came back to generation {generation}, rank {first} to {other}"
                ));
            }
            _ => state.came_back = Some((generation, rank)),
        }
        Some(generation)
    }

    /// A rank has chosen to come back to this generation, the newest.
    pub(crate) fn chose(&self, generation: u64, told: &str) {
        let state = self.state();
        if generation < state.acked && !state.is_excused {
            let acked = state.acked;
            let what =
                format!("a step back: generation {acked} was promised, {generation} came back");
            match told.is_empty() || self.world.is_calm() {
                true => self.world.wrong(format!("{what} ({told})")),
                // A failing call is no proof of damage; restart takes it for one.
                false => self.world.known(format!("{what} ({told})")),
            }
        }
    }

    /// A rank was told that there is nothing.
    pub(crate) fn found_nothing(&self) {
        let state = self.state();
        if state.acked > 0 && !state.is_excused {
            let acked = state.acked;
            self.world.wrong(format!("a fresh start, though generation {acked} was promised"));
        }
    }
}
