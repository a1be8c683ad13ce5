//! The directory itself: from an object's name to an open parent directory.
//!
//! Why component by component: each directory on the way is opened with `O_NOFOLLOW` relative to
//! the one before, so that a link planted anywhere below the root leads nowhere, on every kernel.
//!
//! Invariants:
//! - A directory that an object is written to has been made durable in its own parent before, whoever
//!   created it. One that was removed and created again is another directory.
//! - Every directory belongs to somebody who is trusted and is written by nobody else. That holds for the
//!   two above the store as far as nobody else can replace what is in them.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, StatxFlags};
use rustix::io::Errno;
use standfast_sys::trust::{Distrust, Trust};

use crate::error::{Error, Object, Result};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A directory above the store, which nobody needs to read.
const ABOVE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// How many directories are remembered as durable; forgetting one only costs an fsync.
const DURABLE_MAX: usize = 4096;
/// A directory that somebody else removes in the same instant, so often, is a broken one.
pub(super) const VANISHED_MAX: usize = 16;

/// The store's directory, held open.
#[derive(Debug)]
pub(super) struct Tree {
    root: Arc<OwnedFd>,
    path: String,
    trust: Trust,
    durable: Mutex<HashMap<String, Identity>>,
}

/// Which directory of a path it is: one that was removed may be there again. Those of the first row are
/// never removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    FirstRow,
    Made { inode: u64, second: i64, nanosecond: u32 },
}

impl Identity {
    /// `None` where the file system does not tell when it was made.
    fn of(dir: &OwnedFd, path: &str) -> Option<Self> {
        if !path.contains('/') {
            return Some(Self::FirstRow);
        }
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let stat = rustix::fs::statx(dir, "", AtFlags::EMPTY_PATH, wanted).ok()?;
        let told = StatxFlags::from_bits_retain(stat.stx_mask).contains(wanted);
        let (second, nanosecond) = (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
        told.then_some(Self::Made { inode: stat.stx_ino, second, nanosecond })
    }
}

impl Tree {
    /// Opens the directory at `path`, creating it and its parents durably.
    pub(super) fn open(path: &Path, trust: &Trust) -> Result<Tree> {
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
        // The root itself may be a link of this user: that is the user's choice of place.
        let root =
            trust.open_directory(path).map_err(|error| match error.downcast::<Distrust>() {
                Ok(why) => Error::Untrusted { path: path.to_owned(), why },
                Err(source) => os(source),
            })?;
        let root = Arc::new(root);
        let tree = Tree { root, path: described, trust: trust.clone(), durable: Mutex::default() };
        tree.check_above()?;
        Ok(tree)
    }

    /// Checks that nobody else can put another directory in the place of the store, or of the one that
    /// holds all stores.
    fn check_above(&self) -> Result<()> {
        let mut path = PathBuf::from(&self.path);
        let mut dir = self.root.clone();
        for _ in 0..2 {
            let above = rustix::fs::openat(&*dir, "..", ABOVE, Mode::empty())
                .map_err(self.os("open the directory of", "."))?;
            dir = Arc::new(above);
            path = match path.parent() {
                Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
                Some(parent) if path != Path::new(".") => parent.to_owned(),
                _ => path.join(".."),
            };
            let stat = rustix::fs::fstat(&*dir).map_err(self.os("look up", ".."))?;
            let checked = self.trust.check_container(&stat);
            checked.map_err(|why| Error::Untrusted { path: path.clone(), why })?;
        }
        Ok(())
    }

    pub(super) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// What an open file or directory is, if it is to be trusted.
    pub(super) fn checked(&self, file: &impl AsFd, name: &str) -> Result<Stat> {
        let stat = rustix::fs::fstat(file).map_err(self.os("look up", name))?;
        let path = || Path::new(&self.path).join(name);
        let checked = self.trust.check(&stat);
        checked.map_err(|why| Error::Untrusted { path: path(), why })?;
        Ok(stat)
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

    /// For errors.
    pub(super) fn object_at(&self, name: &str) -> Object {
        Object::new(name, &*self.path)
    }

    pub(super) fn missing(&self, name: &str) -> Error {
        Error::Missing(self.object_at(name))
    }

    fn foreign(&self, name: &str, what: &'static str) -> Error {
        Error::Foreign { object: self.object_at(name), what }
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
                Ok(next) => {
                    self.checked(&next, path)?;
                    dir = Arc::new(next);
                }
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
        if !self.is_known("", Some(Identity::FirstRow)) {
            self.close_to_others(&dir, "")?;
            self.know("", Some(Identity::FirstRow));
        }
        for (end, _) in name.match_indices('/') {
            let path = &name[..end];
            let part = path.rsplit('/').next().unwrap_or(path);
            dir = self.subdirectory(&dir, path, part)?;
        }
        Ok((dir, name.rsplit('/').next().unwrap_or(name)))
    }

    fn subdirectory(&self, dir: &Arc<OwnedFd>, path: &str, part: &str) -> Result<Arc<OwnedFd>> {
        let make_and_open = || {
            match rustix::fs::mkdirat(&**dir, part, self.trust.directory_mode()) {
                // Some read-only file systems report that first, some the existing directory.
                Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS) => {}
                Err(errno) => return Err(self.os("create the directory of", path)(errno)),
            }
            Ok(rustix::fs::openat(&**dir, part, DIRECTORY, Mode::empty()))
        };
        let mut opened = make_and_open()?;
        for _ in 1..VANISHED_MAX {
            match opened {
                Err(Errno::NOENT) => opened = make_and_open()?,
                _ => break,
            }
        }
        let next = match opened {
            Ok(next) => Arc::new(next),
            Err(errno) => {
                self.refuse_link(dir, part, path)?;
                let denied = if errno == Errno::NOENT { Errno::ROFS } else { errno };
                return Err(self.os("create the directory of", path)(denied));
            }
        };
        self.make_durable(dir, &next, path)?;
        Ok(next)
    }

    /// Another process or thread may have created `path` and not yet have synced it: so does
    /// everybody who writes there, once.
    fn make_durable(&self, parent: &OwnedFd, dir: &OwnedFd, path: &str) -> Result<()> {
        let identity = Identity::of(dir, path);
        if self.is_known(path, identity) {
            return Ok(());
        }
        self.close_to_others(dir, path)?;
        rustix::fs::fsync(parent).map_err(self.os("sync the directory of", path))?;
        self.know(path, identity);
        Ok(())
    }

    fn is_known(&self, path: &str, identity: Option<Identity>) -> bool {
        let durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        identity.is_some() && durable.get(path).copied() == identity
    }

    fn know(&self, path: &str, identity: Option<Identity>) {
        let Some(identity) = identity else { return };
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if durable.len() >= DURABLE_MAX {
            durable.clear();
        }
        durable.insert(path.to_owned(), identity);
    }

    /// Removes a directory below the first row, if nothing is in it: a store of many checkpoints would
    /// have one for each that was ever taken. That it comes back after a power loss does no harm.
    pub(super) fn remove_if_empty(&self, path: &str) {
        let Some((above, base)) = path.rsplit_once('/') else { return };
        if let Ok(Some(above)) = self.directory(above) {
            // Whoever writes to it just now has a file in it, or makes it again.
            let _ = rustix::fs::unlinkat(&*above, base, AtFlags::REMOVEDIR);
        }
    }

    /// Gives a directory of this user the mode and group of the setting: an earlier version left that to
    /// the umask, and the setting may have changed.
    fn close_to_others(&self, dir: &OwnedFd, path: &str) -> Result<()> {
        let stat = self.checked(dir, path)?;
        let mode = self.trust.directory_mode();
        let fits = Mode::from_raw_mode(stat.st_mode & 0o777) == mode
            && self.trust.group.is_none_or(|group| group == stat.st_gid);
        if fits || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        match self.trust.give(dir, mode) {
            // It stays as it is there; so does everything else.
            Err(error) if error.raw_os_error() == Some(Errno::ROFS.raw_os_error()) => Ok(()),
            given => given.map_err(self.os("set the mode of", path)),
        }
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
