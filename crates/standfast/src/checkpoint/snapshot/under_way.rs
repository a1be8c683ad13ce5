//! A snapshot on its way: handed to the committer's thread with the capturer, which comes back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};
use standfast_comm::Collective;
use standfast_format::AttemptId;

use super::super::capture::Capturer;
use super::super::committer::Work;
use super::super::draft::{Draft, Order};
use crate::error::{Error, Result};

/// A snapshot that a thread takes in: where the capturer comes back from.
pub(crate) struct UnderWay {
    capturer: Receiver<Capturer>,
    taken: Arc<Taking>,
}

/// Whether memory is still being read.
#[derive(Default)]
struct Taking {
    over: Mutex<bool>,
    changed: Condvar,
}

impl UnderWay {
    /// Makes work for the committer of what is left to take in, and the capturer that does it.
    pub(crate) fn start(
        order: Order,
        capturer: Capturer,
        take_in: impl FnOnce(&mut Capturer, Option<&Collective>) -> Result<Draft> + Send + 'static,
    ) -> (Work, Self) {
        let (back, receiver) = bounded(1);
        let taken = Arc::new(Taking::default());
        let (version, attempt) = (order.version, order.attempt);
        let alone = capturer.agent_commits();
        let end = End { taken: Arc::clone(&taken) };
        let work =
            move |team: Option<&Collective>| run(take_in, capturer, attempt, team, &back, end);
        (Work::Snapshot(version, Box::new(work), alone), Self { capturer: receiver, taken })
    }

    /// Waits until no memory is read any more.
    pub(crate) fn wait_taken(&self) {
        let over = self.taken.over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.taken.changed.wait_while(over, |over| !*over);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The capturer, after the committer has settled.
    pub(crate) fn capturer(self) -> Capturer {
        self.capturer.recv().expect("the committer has run the work")
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
    take_in: impl FnOnce(&mut Capturer, Option<&Collective>) -> Result<Draft>,
    mut capturer: Capturer,
    attempt: AttemptId,
    team: Option<&Collective>,
    back: &Sender<Capturer>,
    end: End,
) -> Result<Draft> {
    let taking = AssertUnwindSafe(|| take_in(&mut capturer, team));
    let draft = catch_unwind(taking).unwrap_or(Err(Error::Broken { what: "taking a snapshot in" }));
    drop(end);
    if draft.is_err() {
        // Other ranks may be waiting for what the agent makes of it.
        capturer.give_up(attempt);
    }
    // Somebody waits for it, unless the job is being dropped.
    let _ = back.send(capturer);
    draft
}
