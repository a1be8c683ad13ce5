//! What a job was last seen at, and a place where one of its processes can be held.
//!
//! ```text
//! watch, proxy: a process is about to do something -> stage -> is it what a fault aims at?
//!     no: it goes on        yes: it waits here until the fault has struck, or longer
//! ```
//! So a fault can strike in a stage that lasts for a moment only. All other threads and processes go
//! on meanwhile, as they do beside one that a busy machine does not let run.
//!
//! Invariants:
//! - At most one is held, and none longer than [`HOLD_MAX`]: whoever strikes may need its answer.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::stage::{self, Act, Stage};

const HOLD_MAX: Duration = Duration::from_millis(500);

/// A job's gate.
pub(super) struct Gate {
    state: Mutex<State>,
    opened: Condvar,
}

struct State {
    seen: Stage,
    is_recovering: bool,
    /// A stage, and how many more of its acts until somebody is held.
    aim: Option<(Stage, usize)>,
    is_holding: bool,
    /// How often it was opened.
    turn: u64,
}

impl Gate {
    pub(super) fn new() -> Self {
        let state = State {
            seen: Stage::Recovery,
            is_recovering: true,
            aim: None,
            is_holding: false,
            turn: 0,
        };
        Self { state: Mutex::new(state), opened: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job's processes are started.
    pub(super) fn starts(&self) {
        let mut state = self.state();
        (state.seen, state.is_recovering) = (Stage::Recovery, true);
    }

    /// All ranks have come back.
    pub(super) fn begins(&self) {
        let mut state = self.state();
        (state.seen, state.is_recovering) = (Stage::Computation, false);
    }

    /// A rank has said what it is at.
    pub(super) fn told(&self, stage: Stage) {
        let mut state = self.state();
        if !state.is_recovering {
            state.seen = stage;
        }
    }

    /// What the job was last seen at.
    pub(super) fn seen(&self) -> Stage {
        self.state().seen
    }

    /// From now on holds whoever is about to do so many acts of a stage later, and nobody else.
    pub(super) fn aim(&self, stage: Stage, acts: usize) {
        self.open();
        self.state().aim = Some((stage, acts.max(1)));
    }

    pub(super) fn is_holding(&self) -> bool {
        self.state().is_holding
    }

    /// Lets whoever is held go on, and aims at nothing more; whether somebody was held until now.
    pub(super) fn open(&self) -> bool {
        let mut state = self.state();
        state.aim = None;
        state.turn += 1;
        let held = std::mem::replace(&mut state.is_holding, false);
        self.opened.notify_all();
        held
    }

    /// A process is about to do something with a file; whether it is to be held.
    pub(super) fn meets(&self, act: Act, path: &str) -> bool {
        stage::is_of_job(path) && self.takes(stage::of_file(act, path))
    }

    /// A process asks something of global storage, and waits here if it is to be held.
    pub(super) fn pass_request(&self, act: Act, path: &str) {
        if stage::is_of_job(path) && self.takes(stage::of_request(act, path)) {
            self.hold();
        }
    }

    fn takes(&self, stage: Option<Stage>) -> bool {
        let mut state = self.state();
        let stage = if state.is_recovering { Some(Stage::Recovery) } else { stage };
        let Some(stage) = stage else { return false };
        state.seen = stage;
        match &mut state.aim {
            Some((aim, left)) if *aim == stage => *left -= 1,
            _ => return false,
        }
        let is_due = state.aim.is_some_and(|(_, left)| left == 0);
        if is_due {
            (state.aim, state.is_holding) = (None, true);
        }
        is_due
    }

    /// Waits until the gate is opened.
    pub(super) fn hold(&self) {
        let state = self.state();
        let turn = state.turn;
        let is_held = |state: &mut State| state.is_holding && state.turn == turn;
        let waited = self.opened.wait_timeout_while(state, HOLD_MAX, is_held);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.turn == turn {
            state.is_holding = false;
        }
    }
}

#[cfg(test)]
mod tests;
