//! The committer: a thread that brings attempts to their end while the program goes on.
//!
//! Data: what a call has taken, and the inventory -> the thread, which takes pages in, seals, and
//! publishes where it may talk to other ranks -> [`Committer::step`], where the rest is done.
//!
//! Invariants:
//! - One attempt at a time; every one that was handed over comes back, and so does the inventory.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use standfast_checkpoint::Inventory;
use standfast_comm::Collective;
use standfast_store::Store;
use standfast_sys::keep_signals_away;
use standfast_take::{Attempt, Closed, Published, Taken};

use super::commit::CommitSettings;
use crate::error::{Error, Result};
use crate::space::Limit;
use crate::stores::Stores;

/// The committer: its thread, and what it needs to finish in a caller's.
pub(crate) struct Committer {
    settings: CommitSettings,
    work: Option<Sender<(Taken, Inventory)>>,
    closed: Receiver<(Closed<Error>, Inventory)>,
    thread: Option<JoinHandle<()>>,
    /// Where no thread can be started, and in a simulation, calls do its work.
    here: Option<Here>,
}

/// Whoever calls commits: the ranks, if it may talk to them then, and where answers go.
type Here = (Option<Collective>, Sender<(Closed<Error>, Inventory)>);

impl CommitSettings {
    /// What the committer does with what was taken: all of it, if it may talk to the ranks.
    fn answer(
        &self,
        taken: Taken,
        team: Option<&Collective>,
        mut inventory: Inventory,
    ) -> (Closed<Error>, Inventory) {
        let _busy = standfast_checkpoint::busy::hold(&*self.publisher.store);
        let closed = self.close(taken, team, &mut inventory);
        (closed, inventory)
    }
}

impl Committer {
    /// `team`: the ranks, if a thread beside the program may talk to them.
    pub(crate) fn start(settings: CommitSettings, team: Option<Collective>) -> Self {
        let (work, queue) = bounded::<(Taken, Inventory)>(1);
        let (done, closed) = bounded(1);
        #[cfg(feature = "simulation")]
        if crate::identity::simulation::is_installed() {
            let here = Some((team, done));
            return Self { settings, work: None, closed, thread: None, here };
        }
        // The thread takes it, or the caller where there is none.
        let here = Arc::new(Mutex::new(Some((team, done))));
        let take =
            |here: &Mutex<Option<Here>>| here.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (own, for_thread) = (settings.clone(), Arc::clone(&here));
        let run = move || {
            keep_signals_away();
            let Some((team, done)) = take(&for_thread) else { return };
            for (taken, inventory) in queue {
                if done.send(own.answer(taken, team.as_ref(), inventory)).is_err() {
                    return;
                }
            }
        };
        match std::thread::Builder::new().name("sf-commit".into()).spawn(run) {
            Ok(thread) => {
                Self { settings, work: Some(work), closed, thread: Some(thread), here: None }
            }
            Err(_) => Self { settings, work: None, closed, thread: None, here: take(&here) },
        }
    }

    /// The stores of the job.
    pub(crate) fn stores(&self) -> &Stores {
        &self.settings.stores
    }

    /// Size of a page.
    pub(crate) fn page_bytes(&self) -> u32 {
        self.settings.publisher.page_bytes
    }

    /// What the local store may take.
    pub(crate) fn limit(&self) -> Limit {
        self.settings.limit
    }

    /// The store of this rank.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.settings.publisher.store
    }

    /// Hands over what was taken. The inventory travels along and comes back with the outcome.
    pub(crate) fn submit(&self, taken: Taken, inventory: Inventory) -> Result<()> {
        if let Some((team, done)) = &self.here {
            let answer = self.settings.answer(taken, team.as_ref(), inventory);
            return done.send(answer).map_err(|_| Error::broken("the committer"));
        }
        let sent = self.work.as_ref().is_some_and(|work| work.send((taken, inventory)).is_ok());
        if sent { Ok(()) } else { Err(Error::broken("the committer")) }
    }

    /// Whether the thread has done what it can for the attempt that was handed over.
    pub(crate) fn is_ready(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Waits until the thread has done what it can for the attempt that was handed over, and does the
    /// next step here; then the attempt is with the thread again, or at its end. Collective where the
    /// thread may not talk to other ranks. `None` if a panic has ended the thread.
    pub(crate) fn step(&self, team: &Collective) -> Option<Stepped> {
        let (closed, mut inventory) = self.closed.recv().ok()?;
        let published = match closed {
            Closed::Frozen(frozen) => {
                let captured = Taken::Captured(frozen.ingest(Some(team)));
                return self.submit(captured, inventory).ok().map(|()| None);
            }
            Closed::Sealed(sealed) => self.settings.publish(*sealed, team, &mut inventory),
            Closed::Published(published) => *published,
        };
        Some(Some((published, inventory)))
    }
}

/// An attempt at its end, with the inventory; `None`: it goes on.
type Stepped = Option<(Attempt<Published<Error>>, Inventory)>;

impl Drop for Committer {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A committer that panicked has reported it on stderr.
            let _ = thread.join();
        }
    }
}
