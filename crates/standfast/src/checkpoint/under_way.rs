//! A frozen state on its way: handed to the committer's thread with what capturing remembers, which
//! comes back, whatever happens.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};
use standfast_comm::Collective;

use super::attempt::{Attempt, Frozen};
use super::committer::Work;
use super::draft::Draft;
use super::remembered::Remembered;
use crate::error::{Error, Result};

/// A frozen state that a thread takes in: where what is remembered comes back from.
pub(crate) struct UnderWay {
    memory: Receiver<Box<Remembered>>,
    taken: Arc<Taking>,
}

/// Whether memory is still being read.
#[derive(Default)]
struct Taking {
    over: Mutex<bool>,
    changed: Condvar,
}

impl UnderWay {
    /// Makes work for the committer of what is left to take in.
    pub(crate) fn start(frozen: Attempt<Frozen>, memory: Box<Remembered>) -> (Work, Self) {
        let (back, receiver) = bounded(1);
        let taken = Arc::new(Taking::default());
        let version = frozen.order().version;
        let alone = memory.agent_commits();
        let end = End { taken: Arc::clone(&taken) };
        let work = move |team: Option<&Collective>| run(frozen, memory, team, &back, end);
        (Work::Snapshot(version, Box::new(work), alone), Self { memory: receiver, taken })
    }

    /// Waits until no memory is read any more.
    pub(crate) fn wait_taken(&self) {
        let over = self.taken.over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.taken.changed.wait_while(over, |over| !*over);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// What capturing remembers, after the committer has settled; `None` if its thread is gone.
    pub(crate) fn memory(self) -> Option<Box<Remembered>> {
        self.memory.recv().ok()
    }
}

/// Tells that no memory is read any more, however that came.
struct End {
    taken: Arc<Taking>,
}

impl Drop for End {
    fn drop(&mut self) {
        *self.taken.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.taken.changed.notify_all();
    }
}

fn run(
    frozen: Attempt<Frozen>,
    mut memory: Box<Remembered>,
    team: Option<&Collective>,
    back: &Sender<Box<Remembered>>,
    end: End,
) -> Result<Draft> {
    let attempt = frozen.order().attempt;
    let taking = AssertUnwindSafe(|| frozen.take_in(&mut memory, team));
    let draft = catch_unwind(taking).unwrap_or(Err(Error::Broken { what: "taking a snapshot in" }));
    drop(end);
    if draft.is_err() {
        // Other ranks may be waiting for what the agent makes of it.
        memory.give_up(attempt);
    }
    // Somebody waits for it, unless the job is being dropped.
    let _ = back.send(memory);
    draft
}
