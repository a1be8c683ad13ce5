//! A file by which a supervisor on this node, `standfast run`, asks for a checkpoint.
//!
//! ```text
//! 0   how many times was asked           written by the supervisor
//! 8   process that looks at it           written by the job when it opens
//! 16  the request that was answered      written by the job, after the version
//! 24  version that answered it
//! 32  where to start: 0 as the settings   written by the supervisor
//!     say, 1 never, 2 force, 3 from the
//!     version that follows
//! 40  that version
//! 48  how it ended: 0 nothing was told,   written by the job when it closes
//!     1 to be gone on with, 2 finished
//! ```
//! All are u64, little-endian. Why a file and no signal: between supervisor and ranks are launchers
//! and shells, which pass on signals at best; and a signal ends a program that has not opened its job
//! yet. Why it is read at every point: one small read of a cached page takes less than a microsecond.
//!
//! Invariants:
//! - Whatever the file holds, the worst that comes of it is a checkpoint that nobody asked for, or
//!   another one to start from.
//! - Ranks of nodes that have no such file do without: those that see it ask all.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;
use standfast_sys::trust::Trust;

use crate::config::RestartFrom;

const ASKED: u64 = 0;
const LOOKS: u64 = 8;
const ANSWERED: u64 = 16;
const VERSION: u64 = 24;
const RESTART: u64 = 32;
const RESTART_VERSION: u64 = 40;
const TOLD: u64 = 48;
const BYTES: u64 = 56;

/// What a job tells its supervisor when it closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The next start goes on with it.
    Left,
    /// It has finished.
    Finished,
}

/// The job's end of the file.
pub(crate) struct RequestWatch {
    file: File,
    answered: AtomicU64,
    restart: Option<RestartFrom>,
}

impl RequestWatch {
    /// Opens the file and tells that somebody looks at it; `None` where there is none, or none that this
    /// user alone can write to.
    pub(crate) fn open(path: &str) -> Option<Self> {
        let file = File::from(Trust::default().open(Path::new(path), OFlags::RDWR).ok()?);
        write(&file, LOOKS, u64::from(std::process::id())).ok()?;
        let answered = AtomicU64::new(read(&file, ANSWERED).ok()?);
        let restart = match (read(&file, RESTART).ok()?, read(&file, RESTART_VERSION).ok()?) {
            (1, _) => Some(RestartFrom::Never),
            (2, _) => Some(RestartFrom::Force),
            (3, version @ 1..) => Some(RestartFrom::Version(version)),
            _ => None,
        };
        Some(Self { file, answered, restart })
    }

    /// Where the program is to start, whatever its settings say.
    pub(crate) fn restart(&self) -> Option<RestartFrom> {
        self.restart
    }

    /// Tells how the job was closed.
    pub(crate) fn tell(&self, what: Told) {
        let code = match what {
            Told::Left => 1,
            Told::Finished => 2,
        };
        // A supervisor that cannot be told goes by the exit code.
        let _ = write(&self.file, TOLD, code);
    }

    /// The program has started there: the next one of this run goes on.
    pub(crate) fn started(&self) {
        let _ = write(&self.file, RESTART, 0);
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
pub struct RunRequest {
    file: File,
}

impl RunRequest {
    /// Makes the file anew.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path)?;
        file.set_len(BYTES)?;
        Ok(Self { file })
    }

    /// Forgets who looked at it, and what was asked: another program will, and starts there.
    pub fn reset(&self, from: RestartFrom) -> io::Result<()> {
        let (code, version) = match from {
            RestartFrom::Auto => (0, 0),
            RestartFrom::Never => (1, 0),
            RestartFrom::Force => (2, 0),
            RestartFrom::Version(version) => (3, version),
        };
        let fields = [(RESTART, code), (RESTART_VERSION, version), (TOLD, 0)];
        let zeros = [ASKED, LOOKS, ANSWERED, VERSION].map(|at| (at, 0));
        let all = fields.into_iter().chain(zeros);
        all.into_iter().try_for_each(|(at, value)| write(&self.file, at, value))
    }

    /// Whether a program has started where it was told to.
    pub fn has_started(&self) -> bool {
        read(&self.file, RESTART).is_ok_and(|code| code == 0)
    }

    /// How the job was closed, if it was.
    pub fn told(&self) -> Option<Told> {
        match read(&self.file, TOLD) {
            Ok(1) => Some(Told::Left),
            Ok(2) => Some(Told::Finished),
            _ => None,
        }
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
mod tests;
