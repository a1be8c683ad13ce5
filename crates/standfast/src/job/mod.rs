//! A job: the library's face. Protect memory, checkpoint it, come back to it.
//!
//! A job of several ranks opens its stores together, one for all or one for each node
//! ([`crate::stores`]); every rank writes its own segments and image.
//!
//! Invariants:
//! - One job at a time writes to a store: the writer lock is held from opening to closing.
//! - Opening a store removes what a crashed predecessor left half-made, and nothing else.

mod agent_lost;
mod builder;
mod core;
mod open;
mod start;
mod take;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use standfast_capture::Requests;
use standfast_format::{Kind, Level, Manifest, Rank, StoreHeader, Version};
use standfast_restart::Inventory;
use standfast_store::{LockGuard, Store};

pub use self::builder::JobBuilder;
pub(crate) use self::core::{Core, lock};
use self::start::Starts;
use crate::config::Loaded;
use crate::error::{Cause, Result};
use crate::interval::Pace;
use crate::progress::{Board, Progress};
use crate::report::Report;
use crate::ring;
use crate::run_request::{RequestWatch, Told};
use crate::stores::Stores;

/// A running program's connection to its checkpoints.
///
/// All methods may be called from any thread; checkpoints and restarts are made one at a time.
pub struct Job {
    board: Arc<Board>,
    pub(crate) core: Arc<Mutex<Core>>,
    loaded: Loaded,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) header: StoreHeader,
    opened: Instant,
    pace: Mutex<Pace>,
    starts: Mutex<Starts>,
    pub(crate) asked: Asked,
    pub(crate) stores: Stores,
    pub(crate) multiplier: ring::Multiplier,
    /// Held by the leaders of stores for all.
    lock: Option<LockGuard>,
}

/// Who may ask for something beside the program's own calls.
pub(crate) struct Asked {
    pub(crate) signal: Option<Requests>,
    pub(crate) run: Option<RequestWatch>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("store", &self.store.describe()).finish_non_exhaustive()
    }
}

impl Job {
    /// The configuration in effect.
    #[doc(hidden)]
    pub fn config(&self) -> &Loaded {
        &self.loaded
    }

    /// Protects memory under a name. `elem` is the size of its elements (8 for doubles) or 0 if
    /// unknown; it only helps compression.
    ///
    /// # Safety
    /// Until [`Job::unprotect`] the memory must stay mapped, readable and writable. While
    /// [`Job::checkpoint`], [`Job::restart`] or [`Job::read_region`] runs, no other thread may write
    /// to it, and while a restart fills it, no other thread may read it either.
    pub unsafe fn protect(&self, name: &str, start: *mut u8, bytes: usize, elem: u8) -> Result<()> {
        let mut core = self.core();
        // SAFETY: the caller vouches for the memory.
        unsafe { core.regions.protect(name, start, bytes, elem) }?;
        core.warm();
        Ok(())
    }

    /// Ends the protection of a region.
    pub fn unprotect(&self, name: &str) -> Result<()> {
        self.core().unprotect(name)
    }

    /// From now on no checkpoint holds these bytes, wherever they lie in protected memory: they are
    /// zeros there. A restart leaves them as they are. Checkpoints that exist keep what they have.
    pub fn exclude(&self, start: *const u8, bytes: usize) {
        self.core().regions.exclude(start as usize, bytes);
    }

    /// Takes back what was excluded: the next checkpoint holds these bytes.
    pub fn include(&self, start: *const u8, bytes: usize) {
        self.core().regions.include(start as usize, bytes);
    }

    /// Takes a checkpoint of every protected region and returns its version as soon as the
    /// program may go on. `None` takes the version after the largest so far. A version that
    /// exists is replaced when the new one is durable.
    ///
    /// The call waits while the previous checkpoint is still being written, and while the pool
    /// is full. [`Job::wait`] tells when the checkpoint is durable. If an earlier checkpoint
    /// failed and nobody has asked for its fate, the call takes none and tells that failure;
    /// the next call takes one again.
    pub fn checkpoint(&self, version: Option<Version>) -> Result<Version> {
        self.take(&mut self.core(), version)
    }

    /// How far a checkpoint has come.
    pub fn poll(&self, version: Version) -> Result<Progress> {
        if let Some(progress) = self.board.get(version) {
            return Ok(progress);
        }
        self.stored_level(version).map(Progress::Done)
    }

    /// Waits until a checkpoint has reached a level; fails if it failed.
    pub fn wait(&self, version: Version, level: Level) -> Result<()> {
        if self.board.knows(version) {
            let mut core = self.core();
            // Nobody else could bring it further.
            if level > Level::Memory && core.finishes_in_calls() {
                core.settle();
            }
            drop(core);
            return self.board.wait(version, level);
        }
        let reached = self.stored_level(version)?;
        if reached < level {
            return Err(Cause::Unreachable { version, reached, wanted: level }.into());
        }
        Ok(())
    }

    /// The report of a checkpoint that this process has made durable.
    pub fn report(&self, version: Version) -> Result<Report> {
        let mut core = self.core();
        core.settle();
        let found = core.reports.iter().rev().find(|report| report.version == version);
        found.cloned().ok_or_else(|| Cause::UnknownVersion { version }.into())
    }

    /// The reports of all committed checkpoints, newest first.
    pub fn checkpoints(&self) -> Vec<Report> {
        let page_bytes = self.core().committer.page_bytes();
        self.list().iter().map(|manifest| Report::of(manifest, page_bytes)).collect()
    }

    /// The committed checkpoints, newest first.
    #[doc(hidden)]
    pub fn list(&self) -> Vec<Manifest> {
        let mut core = self.core();
        core.settle();
        core.inventory().map(|inventory| inventory.checkpoints.clone()).unwrap_or_default()
    }

    /// How changed pages are found: `uffd`, `mprotect` or `hash`.
    pub fn tracker(&self) -> &'static str {
        self.core().settled_memory().map_or("hash", |memory| memory.tracker())
    }

    /// Memory that bookkeeping holds, in bytes: the catalog of stored pages and the hashes by
    /// position. The pool comes on top.
    pub fn bookkeeping_bytes(&self) -> usize {
        self.core().settled_memory().map_or(0, |memory| memory.bytes())
    }

    /// The program has come to its end: waits for what is under way, marks the job as finished and
    /// closes the store. The next program of this name begins anew. Fails with a failure that no call
    /// has told yet; then, and after a checkpoint or restart that failed, nothing is marked.
    pub fn finish(self) -> Result<()> {
        self.settle()?;
        self.can_talk()?;
        self.mark_finished(&self.core())?;
        self.tell_run(Told::Finished);
        Ok(())
    }

    /// Leaves the job as it is, for the next program of this name to go on with: waits for what is
    /// under way and closes the store; fails with a failure that no call has told yet.
    pub fn close(self) -> Result<()> {
        self.tell_run(Told::Left);
        self.settle()
    }

    /// Waits for what is under way; fails with a failure that no call has told yet.
    pub fn settle(&self) -> Result<()> {
        self.core().settle();
        self.board.untold().map_or(Ok(()), Err)
    }

    fn tell_run(&self, what: Told) {
        if let Some(run) = &self.asked.run {
            run.tell(what);
        }
    }

    /// This rank and how many there are.
    pub fn rank(&self) -> (Rank, usize) {
        let core = self.core();
        (core.team.rank(), core.team.size())
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    /// Fails if other ranks could not be reached while a checkpoint was committed: calls of all
    /// ranks make no sense any more.
    pub(crate) fn can_talk(&self) -> Result<()> {
        self.board.can_talk()
    }

    /// Whether a checkpoint of this process is still being written.
    pub(crate) fn is_under_way(&self, version: Version) -> bool {
        self.board.is_under_way(version)
    }

    pub(crate) fn pace(&self) -> MutexGuard<'_, Pace> {
        // Its few fields are whole at any time.
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn since_open(&self) -> Duration {
        self.opened.elapsed()
    }

    fn stored_level(&self, version: Version) -> Result<Level> {
        let inventory = Inventory::read(&*self.store)?;
        match inventory.checkpoint(version) {
            Ok(manifest) => Ok(ring::level(&*self.store, manifest)),
            Err(error) if error.kind() == Kind::Missing => {
                Err(Cause::UnknownVersion { version }.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}
