//! Whose files are read, and who may read ours.
//!
//! Data: what `fstat` tells of an open file -> [`Trust::check`] -> nothing, or why it is refused.
//! [`Trust::open`] walks a path, and follows only links of users who are trusted.
//!
//! Why on descriptors: between a look at a path and its opening somebody could put another file there.
//!
//! Invariants:
//! - Files of this user and of root are read, and of nobody else who is not named.
//! - A file that somebody else may write to is refused, whoever owns it.

mod path;
mod people;

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Gid, Mode, Stat};
use serde::{Deserialize, Serialize};

pub use people::{gid_of, is_in_group, uid_of};

const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Who is trusted besides this user and root. The default is nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// Members of this group may read what is written, and their files are read.
    pub group: Option<u32>,
    /// Files of these users are read.
    pub users: Vec<u32>,
}

/// Why something is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// It belongs to this user.
    Owner(u32),
    /// Others may write to it: its mode and group.
    Writable(u32, u32),
}

impl Trust {
    /// Checks a file, or a directory whose entries are read.
    pub fn check(&self, stat: &Stat) -> Result<(), Distrust> {
        self.check_owner(stat)?;
        match self.is_writable_by_others(stat) {
            true => Err(Distrust::Writable(stat.st_mode, stat.st_gid)),
            false => Ok(()),
        }
    }

    /// Checks a directory in which nobody else may replace what belongs to its owner.
    pub fn check_container(&self, stat: &Stat) -> Result<(), Distrust> {
        match stat.st_mode & STICKY {
            0 => self.check(stat),
            _ => self.check_owner(stat),
        }
    }

    fn check_owner(&self, stat: &Stat) -> Result<(), Distrust> {
        let owner = stat.st_uid;
        let is_own = owner == rustix::process::geteuid().as_raw() || owner == 0;
        let is_member = || self.group.is_some_and(|group| people::is_member(owner, group));
        match is_own || self.users.contains(&owner) || is_member() {
            true => Ok(()),
            false => Err(Distrust::Owner(owner)),
        }
    }

    fn is_writable_by_others(&self, stat: &Stat) -> bool {
        let of_group = || {
            let (owner, group) = (stat.st_uid, stat.st_gid);
            self.group != Some(group) && !people::is_private_group(owner, group)
        };
        stat.st_mode & OTHERS_WRITE != 0 || (stat.st_mode & GROUP_WRITE != 0 && of_group())
    }

    /// Mode of the files that are written.
    pub fn file_mode(&self) -> Mode {
        Mode::from_raw_mode(if self.group.is_some() { 0o640 } else { 0o600 })
    }

    /// Mode of the directories that are made.
    pub fn directory_mode(&self) -> Mode {
        Mode::from_raw_mode(if self.group.is_some() { 0o750 } else { 0o700 })
    }

    /// Gives a file or directory of this user its group and mode, whatever the umask made of it.
    pub fn give(&self, file: impl AsFd, mode: Mode) -> io::Result<()> {
        if let Some(group) = self.group {
            rustix::fs::fchown(&file, None, Some(Gid::from_raw(group)))?;
        }
        Ok(rustix::fs::fchmod(&file, mode)?)
    }
}

impl std::error::Error for Distrust {}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Distrust::Owner(uid) => {
                let (user, name) = (people::user(uid), people::user_word(uid));
                write!(
                    f,
                    "it belongs to {user}, who is not trusted; set share = \"private, from {name}\" to trust them, or use another place"
                )
            }
            Distrust::Writable(mode, gid) => {
                let (mode, group) = (mode & 0o7777, people::group(gid));
                write!(
                    f,
                    "others may write to it (mode {mode:04o}, {group}); if nobody has tampered with it, chmod go-w it"
                )
            }
        }
    }
}

impl From<Distrust> for io::Error {
    fn from(why: Distrust) -> Self {
        io::Error::new(io::ErrorKind::PermissionDenied, why)
    }
}

#[cfg(test)]
mod tests;
