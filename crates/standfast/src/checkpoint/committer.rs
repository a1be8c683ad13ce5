//! The committer: a thread that commits drafts while the program goes on.
//!
//! Data: [`Work`] and the inventory -> the thread, which makes the draft and does what it may of
//! [`commit`](super::commit) -> [`Committer::settle`], where the rest is done.
//!
//! Invariants:
//! - One draft at a time; every draft that was handed over is answered, and its inventory comes back.

use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use standfast_checkpoint::Inventory;
use standfast_comm::Collective;
use standfast_format::Version;
use standfast_sys::keep_signals_away;

use super::commit::{CommitSettings, Outcome, Sealed};
use super::draft::Draft;
use crate::error::{Error, Result};
use crate::stores::Stores;

/// What the thread hands back.
pub(super) enum Step {
    /// The other ranks must be asked, which the thread may not.
    Sealed(Box<Sealed>),
    /// The other ranks must be told that there is no draft of this version.
    Failed(Version, Error),
    Settled(Box<Outcome>),
}

/// What the thread is handed.
pub(crate) enum Work {
    Draft(Box<Draft>),
    /// A snapshot of this version, from which the draft is still to be made; whether the agent
    /// commits it then, so that no other rank waits for this one.
    Snapshot(Version, TakeIn, bool),
}

/// Makes a draft of a snapshot, together with the other ranks where a thread may talk to them.
pub(crate) type TakeIn = Box<dyn FnOnce(Option<&Collective>) -> Result<Draft> + Send>;

impl Work {
    /// The draft, or which version has none, why, and whether the agent commits it.
    pub(super) fn draft(
        self,
        team: Option<&Collective>,
    ) -> std::result::Result<Draft, (Version, Error, bool)> {
        match self {
            Work::Draft(draft) => Ok(*draft),
            Work::Snapshot(version, take_in, alone) => {
                take_in(team).map_err(|error| (version, error, alone))
            }
        }
    }
}

/// The committer: its thread, and what it needs to finish in a caller's.
pub(crate) struct Committer {
    settings: CommitSettings,
    drafts: Option<Sender<(Work, Inventory)>>,
    steps: Receiver<(Step, Inventory)>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// `team`: the ranks, if a thread beside the program may talk to them.
    pub(crate) fn start(settings: CommitSettings, team: Option<Collective>) -> Self {
        let (drafts, queue) = bounded::<(Work, Inventory)>(1);
        let (done, steps) = bounded(1);
        let own = settings.clone();
        let run = move || {
            keep_signals_away();
            for (work, mut inventory) in queue {
                let _busy = standfast_checkpoint::busy::hold(&*own.publisher.store);
                let step = own.step(work, team.as_ref(), &mut inventory);
                let step = match &team {
                    Some(team) => Step::Settled(Box::new(own.finish(team, step, &mut inventory))),
                    None => step,
                };
                if done.send((step, inventory)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("sf-commit".into())
            .spawn(run)
            .expect("a thread can be started");
        Self { settings, drafts: Some(drafts), steps, thread: Some(thread) }
    }

    /// The stores of the job.
    pub(crate) fn stores(&self) -> &Stores {
        &self.settings.stores
    }

    /// Hands work over. The inventory travels along and comes back with the outcome.
    pub(crate) fn submit(&self, work: Work, inventory: Inventory) -> Result<()> {
        let drafts = self.drafts.as_ref();
        let sent = drafts.is_some_and(|drafts| drafts.send((work, inventory)).is_ok());
        if sent { Ok(()) } else { Err(Error::Broken { what: "the committer" }) }
    }

    /// Whether the thread has done what it can for the draft that was handed over.
    pub(crate) fn is_ready(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Waits for the outcome of the draft that was handed over. Collective where the thread may
    /// not talk to other ranks. `None` if a panic has ended the thread.
    pub(crate) fn settle(&self, team: &Collective) -> Option<(Outcome, Inventory)> {
        let (step, mut inventory) = self.steps.recv().ok()?;
        Some((self.settings.finish(team, step, &mut inventory), inventory))
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.drafts = None;
        if let Some(thread) = self.thread.take() {
            // A committer that panicked has reported it on stderr.
            let _ = thread.join();
        }
    }
}
