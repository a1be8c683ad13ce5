//! Where the agent of this user on this node is: a directory that nobody else can enter.
//!
//! ```text
//! DIR/agent.sock   where it listens
//! DIR/agent.lock   flock'd by the one that runs
//! DIR/agent.log    what it did, a JSON object per line; agent.log.1 is the one before
//! DIR/drains.json  what it has not drained yet
//! ```
//! DIR is `$XDG_RUNTIME_DIR/standfast`, or `/tmp/standfast-UID` where that is not set.
//!
//! Invariant: the directory is a real one, belongs to this user and is closed to all others, so
//! whoever can connect is this user (or root); the peer's uid is checked besides.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use standfast_sys::trust::Trust;

use crate::error::{Error, Result};

const SOCKET: &str = "agent.sock";
/// Longest path of a socket that the kernel takes.
const SOCKET_BYTES_MAX: usize = 107;
/// A log longer than this is put aside when an agent starts.
const LOG_BYTES_MAX: u64 = 4 << 20;

/// A directory with an agent, or for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    dir: PathBuf,
}

impl Place {
    /// The named directory, or the usual one; made if it is not there.
    pub fn open(dir: Option<&Path>) -> Result<Self> {
        let dir = match dir {
            Some(dir) => {
                std::path::absolute(dir).map_err(Error::os("find the agent's directory"))?
            }
            None => usual(),
        };
        let wrong = |why: String| Error::Place { dir: dir.clone(), why };
        let made = DirBuilder::new().mode(0o700).create(&dir);
        if let Err(error) = made
            && error.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(wrong(error.to_string()));
        }
        check(&dir).map_err(wrong)?;
        let place = Self { dir };
        if place.socket().as_os_str().len() > SOCKET_BYTES_MAX {
            let why = format!("its path is longer than {SOCKET_BYTES_MAX} bytes");
            return Err(Error::Place { dir: place.dir, why });
        }
        Ok(place)
    }

    /// The named directory, or the usual one, if an agent may be there.
    pub fn existing(dir: Option<&Path>) -> Option<Self> {
        let there = dir.map_or_else(usual, Path::to_owned);
        there.join(SOCKET).exists().then(|| Self::open(dir).ok()).flatten()
    }

    /// The usual directory: of this user on this host.
    pub fn usual_dir() -> PathBuf {
        usual()
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join(SOCKET)
    }

    /// The log.
    pub fn log(&self) -> PathBuf {
        self.dir.join("agent.log")
    }

    /// The list of what is not drained yet.
    pub(crate) fn drains(&self) -> PathBuf {
        self.dir.join("drains.json")
    }

    pub(crate) fn open_lock(&self) -> Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.open(self.dir.join("agent.lock")).map_err(Error::os("open the agent's lock"))
    }

    /// The log, for writing at its end.
    pub(crate) fn open_log(&self) -> Result<File> {
        let path = self.log();
        if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > LOG_BYTES_MAX) {
            let old = self.dir.join("agent.log.1");
            std::fs::rename(&path, old).map_err(Error::os("put the agent's log aside"))?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        options.open(path).map_err(Error::os("open the agent's log"))
    }
}

/// Checks that the directory is this user's alone, and that nobody else can put another in its place.
fn check(dir: &Path) -> std::result::Result<(), String> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let os = |errno: rustix::io::Errno| errno.to_string();
    let own = rustix::fs::open(dir, flags, Mode::empty()).map_err(os)?;
    let stat = rustix::fs::fstat(&own).map_err(os)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err("it is no directory".into());
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user".into());
    }
    if stat.st_mode & 0o077 != 0 {
        return Err("others can enter it; chmod 700 it".into());
    }
    let above = rustix::fs::openat(&own, "..", flags, Mode::empty()).map_err(os)?;
    let above = rustix::fs::fstat(&above).map_err(os)?;
    let checked = Trust::default().check_container(&above);
    checked.map_err(|why| format!("of the directory that it is in: {why}"))
}

fn usual() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir).join("standfast"),
        None => {
            let uid = rustix::process::geteuid().as_raw();
            PathBuf::from(format!("/tmp/standfast-{uid}"))
        }
    }
}

#[cfg(test)]
mod tests;
