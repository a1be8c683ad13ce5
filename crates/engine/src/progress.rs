//! How far each checkpoint has come, shared between the program's threads and the committer.
//!
//! Invariants:
//! - A checkpoint's level only rises; a failed one stays failed.
//! - Only the last [`REMEMBERED`] checkpoints of this process are remembered; the store knows
//!   the others.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

use standfast_format::{Level, Version};

use crate::error::{Error, Result};

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

#[derive(Default)]
pub(crate) struct Board {
    entries: Mutex<VecDeque<(Version, Progress)>>,
    changed: Condvar,
}

impl Board {
    /// Records the progress of a checkpoint.
    pub(crate) fn set(&self, version: Version, progress: Progress) {
        let mut entries = self.lock();
        match entries.iter_mut().find(|(of, _)| *of == version) {
            Some((_, place)) => *place = progress,
            None => {
                entries.push_back((version, progress));
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
        self.lock().iter().find(|(of, _)| *of == version).map(|(_, progress)| progress.clone())
    }

    /// Waits until a checkpoint has reached a level, has failed, or will never reach it.
    pub(crate) fn wait(&self, version: Version, wanted: Level) -> Result<()> {
        let mut entries = self.lock();
        loop {
            let progress = entries.iter().find(|(of, _)| *of == version).map(|(_, p)| p);
            match progress {
                None => return Err(Error::UnknownVersion { version }),
                Some(Progress::Failed(error)) => return Err(error.clone()),
                Some(Progress::Reached(level) | Progress::Done(level)) if *level >= wanted => {
                    return Ok(());
                }
                Some(Progress::Done(reached)) => {
                    return Err(Error::Unreachable { version, reached: *reached, wanted });
                }
                Some(Progress::Reached(_)) => {}
            }
            entries = self.changed.wait(entries).expect("nobody panics with the board");
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Version, Progress)>> {
        self.entries.lock().expect("nobody panics with the board")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn waiting_ends_with_the_level_the_failure_or_the_end() {
        let board = Arc::new(Board::default());
        board.set(Version(1), Progress::Reached(Level::Memory));
        board.wait(Version(1), Level::Memory).unwrap();
        let waiter = std::thread::spawn({
            let board = Arc::clone(&board);
            move || board.wait(Version(1), Level::Local)
        });
        board.set(Version(1), Progress::Done(Level::Local));
        waiter.join().unwrap().unwrap();
        let beyond = board.wait(Version(1), Level::Global).unwrap_err();
        assert!(matches!(beyond, Error::Unreachable { .. }));
        board.set(Version(2), Progress::Failed(Error::VersionZero));
        assert!(matches!(board.wait(Version(2), Level::Local), Err(Error::VersionZero)));
        assert!(matches!(board.wait(Version(3), Level::Local), Err(Error::UnknownVersion { .. })));
    }

    #[test]
    fn memory_of_old_checkpoints_is_bounded() {
        let board = Board::default();
        for version in 1..=1000 {
            board.set(Version(version), Progress::Done(Level::Local));
        }
        assert_eq!(board.lock().len(), REMEMBERED);
        assert!(board.get(Version(1000)).is_some());
    }
}
