//! The directory itself: from an object's name to an open parent directory.
//!
//! Why component by component: each directory on the way is opened with `O_NOFOLLOW` relative to
//! the one before, so that a link planted anywhere below the root leads nowhere, on every kernel.
//!
//! Invariant: a directory that an object is written to has been made durable in its own parent
//! before, whoever created it.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::{Error, Result};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

/// How many directories are remembered as durable; forgetting one only costs an fsync.
const DURABLE_MAX: usize = 4096;

/// The store's directory, held open.
#[derive(Debug)]
pub(super) struct Tree {
    root: Arc<OwnedFd>,
    path: String,
    durable: Mutex<HashSet<String>>,
}

impl Tree {
    /// Opens the directory at `path`, creating it and its parents durably.
    pub(super) fn open(path: &Path) -> Result<Tree> {
        let described = path.to_string_lossy().into_owned();
        if described.is_empty() {
            return Err(Error::Location { store: described, why: "the path is empty".to_owned() });
        }
        let os = |source| Error::Os {
            op: "open",
            object: ".".to_owned(),
            store: described.clone(),
            source,
        };
        create_directories(path).map_err(os)?;
        // The root itself may be a link: that is the user's choice of place.
        let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
        let root = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| os(e.into()))?;
        Ok(Tree { root: Arc::new(root), path: described, durable: Mutex::default() })
    }

    pub(super) fn describe(&self) -> &str {
        &self.path
    }

    pub(super) fn root(&self) -> &Arc<OwnedFd> {
        &self.root
    }

    /// For `map_err`: names the operation, the object and the store.
    pub(super) fn os<E: Into<io::Error>>(
        &self,
        op: &'static str,
        name: &str,
    ) -> impl Fn(E) -> Error {
        move |source| Error::Os {
            op,
            object: name.to_owned(),
            store: self.path.clone(),
            source: source.into(),
        }
    }

    pub(super) fn missing(&self, name: &str) -> Error {
        Error::Missing { object: name.to_owned(), store: self.path.clone() }
    }

    fn foreign(&self, name: &str, what: &'static str) -> Error {
        Error::Foreign { object: name.to_owned(), store: self.path.clone(), what }
    }

    /// The open directory that holds `name`, and the last part of the name.
    pub(super) fn parent<'n>(&self, name: &'n str) -> Result<(Arc<OwnedFd>, &'n str)> {
        let (path, base) = name.rsplit_once('/').unwrap_or(("", name));
        let dir = self.directory(path)?.ok_or_else(|| self.missing(name))?;
        Ok((dir, base))
    }

    /// The open directory at `path` below the root; `None` if there is none.
    pub(super) fn directory(&self, path: &str) -> Result<Option<Arc<OwnedFd>>> {
        let mut dir = self.root.clone();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            match rustix::fs::openat(&*dir, part, DIRECTORY, Mode::empty()) {
                Ok(next) => dir = Arc::new(next),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    self.refuse_link(&dir, part, path)?;
                    return Ok(None);
                }
                Err(errno) => return Err(self.os("open", path)(errno)),
            }
        }
        Ok(Some(dir))
    }

    fn refuse_link(&self, dir: &OwnedFd, part: &str, path: &str) -> Result<()> {
        let stat = rustix::fs::statat(dir, part, AtFlags::SYMLINK_NOFOLLOW);
        match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Symlink) => Err(self.foreign(path, "a symbolic link")),
            _ => Ok(()),
        }
    }

    /// As [`parent`](Tree::parent), creating the directories on the way.
    pub(super) fn parent_for_writing<'n>(&self, name: &'n str) -> Result<(Arc<OwnedFd>, &'n str)> {
        let mut dir = self.root.clone();
        for (end, _) in name.match_indices('/') {
            let path = &name[..end];
            let part = path.rsplit('/').next().unwrap_or(path);
            dir = self.subdirectory(&dir, path, part)?;
        }
        Ok((dir, name.rsplit('/').next().unwrap_or(name)))
    }

    fn subdirectory(&self, dir: &Arc<OwnedFd>, path: &str, part: &str) -> Result<Arc<OwnedFd>> {
        match rustix::fs::mkdirat(&**dir, part, DIRECTORY_MODE) {
            // Some read-only file systems report that first, some the existing directory.
            Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS) => {}
            Err(errno) => return Err(self.os("create the directory of", path)(errno)),
        }
        let next = match rustix::fs::openat(&**dir, part, DIRECTORY, Mode::empty()) {
            Ok(next) => Arc::new(next),
            Err(errno) => {
                self.refuse_link(dir, part, path)?;
                let denied = if errno == Errno::NOENT { Errno::ROFS } else { errno };
                return Err(self.os("create the directory of", path)(denied));
            }
        };
        self.make_durable(dir, path)?;
        Ok(next)
    }

    /// Another process or thread may have created `path` and not yet have synced it: so does
    /// everybody who writes there, once.
    fn make_durable(&self, parent: &OwnedFd, path: &str) -> Result<()> {
        let known = |set: &HashSet<String>| set.contains(path);
        if known(&self.durable.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        rustix::fs::fsync(parent).map_err(self.os("sync the directory of", path))?;
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if durable.len() >= DURABLE_MAX {
            durable.clear();
        }
        durable.insert(path.to_owned());
        Ok(())
    }

    /// What is there under an object's name; anything but a plain file is not an object.
    pub(super) fn stat(&self, name: &str) -> Result<Stat> {
        let (dir, base) = self.parent(name)?;
        match rustix::fs::statat(&*dir, base, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => self.object(name, stat),
            Err(Errno::NOENT) => Err(self.missing(name)),
            Err(errno) => Err(self.os("look up", name)(errno)),
        }
    }

    pub(super) fn object(&self, name: &str, stat: Stat) -> Result<Stat> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(stat),
            FileType::Directory => Err(self.missing(name)),
            FileType::Symlink => Err(self.foreign(name, "a symbolic link")),
            _ => Err(self.foreign(name, "a special file")),
        }
    }

    /// What the file system still gives to this user.
    pub(super) fn free_bytes(&self) -> Result<u64> {
        let stat = rustix::fs::fstatvfs(&*self.root).map_err(self.os("ask for free space", "."))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// `mkdir -p`, with an fsync of every directory that got a new entry.
fn create_directories(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_directories(parent)?;
    }
    match rustix::fs::mkdirat(CWD, path, DIRECTORY_MODE) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
    let parent = rustix::fs::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    Ok(rustix::fs::fsync(parent)?)
}
