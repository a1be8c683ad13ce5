//! How far each checkpoint has come, shared between the program's threads and the committer.
//!
//! Invariants:
//! - A checkpoint's level only rises; a failed one stays failed.
//! - Every failure is told once: by `poll` or `wait`, or else by the next checkpoint or the end of
//!   the job, so that a program that never waits hears of a full disk.
//! - Only the last [`REMEMBERED`] checkpoints of this process are remembered; the store knows
//!   the others.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};

use standfast_format::{Level, Version};

use crate::error::{Cause, Error, Result};

const REMEMBERED: usize = 64;

/// How far a checkpoint has come.
#[derive(Clone, Debug)]
pub enum Progress {
    /// On its way beyond this level.
    Reached(Level),
    /// It will go no further.
    Done(Level),
    /// It failed; the previous checkpoints are as they were.
    Failed(Error),
}

struct Entry {
    version: Version,
    progress: Progress,
    /// A call has returned its failure.
    told: bool,
}

#[derive(Default)]
pub(crate) struct Board {
    entries: Mutex<VecDeque<Entry>>,
    changed: Condvar,
    /// Why the ranks cannot talk to each other any more.
    lost: OnceLock<Error>,
}

impl Board {
    /// Records the progress of a checkpoint.
    pub(crate) fn set(&self, version: Version, progress: Progress) {
        let mut entries = self.lock();
        let fresh = Entry { version, progress, told: false };
        match entries.iter_mut().find(|entry| entry.version == version) {
            Some(entry) => *entry = fresh,
            None => {
                entries.push_back(fresh);
                if entries.len() > REMEMBERED {
                    entries.pop_front();
                }
            }
        }
        drop(entries);
        self.changed.notify_all();
    }

    /// The progress of a checkpoint of this process.
    pub(crate) fn get(&self, version: Version) -> Option<Progress> {
        let mut entries = self.lock();
        let entry = entries.iter_mut().find(|entry| entry.version == version)?;
        entry.told = true;
        Some(entry.progress.clone())
    }

    /// Whether a checkpoint is one of this process.
    pub(crate) fn knows(&self, version: Version) -> bool {
        self.lock().iter().any(|entry| entry.version == version)
    }

    /// Whether a checkpoint is still being written.
    pub(crate) fn is_under_way(&self, version: Version) -> bool {
        let reached = |entry: &Entry| matches!(entry.progress, Progress::Reached(_));
        self.lock().iter().any(|entry| entry.version == version && reached(entry))
    }

    /// The first failure that no call has returned yet; from now on it is told.
    pub(crate) fn untold(&self) -> Option<Error> {
        self.lock().iter_mut().find_map(|entry| match &entry.progress {
            Progress::Failed(error) if !std::mem::replace(&mut entry.told, true) => {
                Some(Error::earlier(entry.version, error))
            }
            _ => None,
        })
    }

    /// Waits until a checkpoint has reached a level, has failed, or will never reach it.
    pub(crate) fn wait(&self, version: Version, wanted: Level) -> Result<()> {
        let mut entries = self.lock();
        loop {
            let entry = entries.iter_mut().find(|entry| entry.version == version);
            let entry = entry.ok_or(Cause::UnknownVersion { version })?;
            match &entry.progress {
                Progress::Failed(error) => {
                    entry.told = true;
                    return Err(error.clone());
                }
                Progress::Reached(level) | Progress::Done(level) if *level >= wanted => {
                    return Ok(());
                }
                Progress::Done(reached) => {
                    return Err(Cause::Unreachable { version, reached: *reached, wanted }.into());
                }
                Progress::Reached(_) => {}
            }
            entries = self.changed.wait(entries).expect("nobody panics with the board");
        }
    }

    /// Records that ranks could not be reached, if that is what failed.
    pub(crate) fn lose(&self, error: &Error) {
        if error.is_out_of_reach() {
            // The first reason counts.
            let _ = self.lost.set(error.clone());
        }
    }

    /// Fails if ranks could not be reached: whoever went on would wait for those that wait for it.
    pub(crate) fn can_talk(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().expect("nobody panics with the board")
    }
}

#[cfg(test)]
mod tests;
