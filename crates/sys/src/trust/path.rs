//! From a path to an open file or directory, part by part.
//!
//! Why not the kernel's own walk: it follows links that anybody has made, where `protected_symlinks` is
//! off or the directory is not sticky.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Trust;

/// As many links as the kernel follows.
const LINKS_MAX: usize = 40;
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Trust {
    /// Opens what a path leads to, without blocking, and checks it.
    pub fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let file = self.walk(path, flags, |_, _| Err(Errno::NOENT.into()))?;
        self.check(&rustix::fs::fstat(&file)?)?;
        Ok(file)
    }

    /// Opens a directory for reading; it and those above it are made durably where they are missing.
    pub fn open_directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let directory = self.walk(path, DIRECTORY, |parent, part| {
            match rustix::fs::mkdirat(parent, part, self.directory_mode()) {
                Ok(()) => {
                    let made = rustix::fs::openat(
                        parent,
                        part,
                        DIRECTORY | OFlags::NOFOLLOW,
                        Mode::empty(),
                    )?;
                    self.give(made, self.directory_mode())?;
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            let parent = rustix::fs::openat(parent, ".", DIRECTORY, Mode::empty())?;
            Ok(rustix::fs::fsync(parent)?)
        })?;
        self.check(&rustix::fs::fstat(&directory)?)?;
        Ok(directory)
    }

    /// Opens what a path leads to. `make` gets a parent and the part that it lacks.
    fn walk(
        &self,
        path: &Path,
        flags: OFlags,
        make: impl Fn(&OwnedFd, &OsString) -> io::Result<()>,
    ) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mut here = rustix::fs::openat(CWD, ".", LOOK, Mode::empty())?;
        let mut parts = Vec::new();
        push(path, &mut parts);
        let mut links = 0;
        while let Some(part) = parts.pop() {
            let next = match rustix::fs::openat(&here, &part, LOOK, Mode::empty()) {
                Err(Errno::NOENT) => {
                    make(&here, &part)?;
                    rustix::fs::openat(&here, &part, LOOK, Mode::empty())?
                }
                next => next?,
            };
            let stat = rustix::fs::fstat(&next)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP.into());
                }
                self.check_owner(&stat)?;
                let target = rustix::fs::readlinkat(&next, "", Vec::new())?;
                push(Path::new(OsStr::from_bytes(target.as_bytes())), &mut parts);
            } else if parts.is_empty() {
                return Ok(rustix::fs::openat(&here, &part, flags, Mode::empty())?);
            } else {
                here = next;
            }
        }
        Ok(rustix::fs::openat(&here, ".", flags, Mode::empty())?)
    }
}

/// Puts the parts of a path on the stack of those that come next.
fn push(path: &Path, parts: &mut Vec<OsString>) {
    let components = path.components().rev().filter(|one| *one != Component::CurDir);
    parts.extend(components.map(|one| one.as_os_str().to_owned()));
}
