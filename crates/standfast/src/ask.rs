//! A file by which a supervisor on this node, `standfast run`, asks for a checkpoint.
//!
//! ```text
//! 0   how many times was asked           written by the supervisor
//! 8   process that looks at it           written by the job when it opens
//! 16  the request that was answered      written by the job, after the version
//! 24  version that answered it
//! ```
//! All are u64, little-endian. Why a file and no signal: between supervisor and ranks are launchers
//! and shells, which pass on signals at best; and a signal ends a program that has not opened its job
//! yet. Why it is read at every point: one small read of a cached page takes less than a microsecond.
//!
//! Invariants:
//! - Whatever the file holds, the worst that comes of it is a checkpoint that nobody asked for.
//! - Ranks of nodes that have no such file do without: those that see it ask all.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const ASKED: u64 = 0;
const LOOKS: u64 = 8;
const ANSWERED: u64 = 16;
const VERSION: u64 = 24;

/// The job's end of the file.
pub(crate) struct Asked {
    file: File,
    answered: AtomicU64,
}

impl Asked {
    /// Opens the file and tells that somebody looks at it; `None` where there is none.
    pub(crate) fn open(path: &str) -> Option<Self> {
        let file = File::options().read(true).write(true).open(path).ok()?;
        write(&file, LOOKS, u64::from(std::process::id())).ok()?;
        let answered = AtomicU64::new(read(&file, ANSWERED).ok()?);
        Some(Self { file, answered })
    }

    /// Whether there was a request since the last answer.
    pub(crate) fn is_pending(&self) -> bool {
        self.asked() != self.answered.load(Ordering::Acquire)
    }

    /// A checkpoint was taken, and the program has not gone on since: it answers every request that
    /// has come until now.
    pub(crate) fn answer(&self, version: u64) {
        let asked = self.asked();
        if self.answered.swap(asked, Ordering::AcqRel) != asked {
            // The version first. Who cannot be told waits as long as it wants, and no longer.
            let _ = write(&self.file, VERSION, version)
                .and_then(|()| write(&self.file, ANSWERED, asked));
        }
    }

    fn asked(&self) -> u64 {
        // A file that cannot be read any more asks for nothing.
        read(&self.file, ASKED).unwrap_or_else(|_| self.answered.load(Ordering::Acquire))
    }
}

/// The supervisor's end of the file.
pub struct Ask {
    file: File,
}

impl Ask {
    /// Makes the file anew.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(VERSION + 8)?;
        Ok(Self { file })
    }

    /// Forgets who looked at it, and what was asked: another program will.
    pub fn reset(&self) -> io::Result<()> {
        [ASKED, LOOKS, ANSWERED, VERSION].iter().try_for_each(|at| write(&self.file, *at, 0))
    }

    /// Whether a job has opened it.
    pub fn is_heard(&self) -> bool {
        read(&self.file, LOOKS).is_ok_and(|pid| pid != 0)
    }

    /// Asks for a checkpoint at the job's next point.
    pub fn ask(&self) -> io::Result<()> {
        let asked = read(&self.file, ASKED)?;
        write(&self.file, ASKED, asked.wrapping_add(1))
    }

    /// The version that answers the last request, once it was taken: durable somewhat later.
    pub fn answer(&self) -> Option<u64> {
        let (asked, answered) = (read(&self.file, ASKED).ok()?, read(&self.file, ANSWERED).ok()?);
        if asked == 0 || answered != asked {
            return None;
        }
        read(&self.file, VERSION).ok()
    }
}

fn read(file: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at)?;
    Ok(u64::from_le_bytes(bytes))
}

fn write(file: &File, at: u64, value: u64) -> io::Result<()> {
    file.write_all_at(&value.to_le_bytes(), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered_once_and_by_their_version() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ask");
        let ask = Ask::create(&path).unwrap();
        assert!(!ask.is_heard() && ask.answer().is_none());
        let asked = Asked::open(path.to_str().unwrap()).unwrap();
        assert!(ask.is_heard() && !asked.is_pending());
        asked.answer(6);
        assert!(ask.answer().is_none(), "nobody had asked");

        ask.ask().unwrap();
        assert!(asked.is_pending() && ask.answer().is_none());
        asked.answer(7);
        assert!(!asked.is_pending());
        assert_eq!(ask.answer(), Some(7));

        ask.reset().unwrap();
        let next = Asked::open(path.to_str().unwrap()).unwrap();
        assert!(!next.is_pending() && ask.answer().is_none());
    }

    #[test]
    fn files_that_are_absent_or_cut_ask_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ask");
        let text = path.to_str().unwrap();
        assert!(Asked::open(text).is_none());
        Ask::create(&path).unwrap().ask().unwrap();
        let asked = Asked::open(text).unwrap();
        assert!(asked.is_pending());
        std::fs::write(&path, b"cut").unwrap();
        assert!(!asked.is_pending());
        asked.answer(1);
        assert!(Asked::open(text).is_none(), "too short to be one");
    }
}
