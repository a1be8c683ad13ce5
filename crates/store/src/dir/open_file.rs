//! Files of readers: few are open at a time, however many readers there are.
//!
//! A restart has a reader for each segment, and a store of many checkpoints has thousands. Each reader
//! keeps its file open as long as no more than [`OPEN_MAX`] are; then one that was not read from lately
//! is closed, and opened again when it is needed.
//!
//! Invariant: what is opened again is the same file, unchanged. Sealed objects never change, but they
//! are removed and replaced as a whole.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use standfast_sys::AlignedBuf;

use super::tree::Tree;
use crate::error::{Error, Result};
use crate::location::Io;

/// Files that all readers of this process keep open together. Some more are open while they are read.
const OPEN_MAX: usize = 64;

/// Readers whose files are open, or were when they were dropped.
static OPEN: Mutex<VecDeque<Weak<Slot>>> = Mutex::new(VecDeque::new());

/// An object's file, open for reading.
pub(super) struct OpenFile {
    pub(super) file: File,
    pub(super) identity: Identity,
    /// Whether reads go past the page cache.
    pub(super) direct: bool,
    bounce: Mutex<Option<AlignedBuf>>,
}

/// What tells one file from another that has its name or its number later.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) bytes: u64,
    device: u64,
    inode: u64,
    modified: (i64, u64),
}

/// A reader's file, as long as it is open.
#[derive(Default)]
pub(super) struct Slot {
    file: Mutex<Option<Arc<OpenFile>>>,
    /// Whether it was read from since it was last thought of closing it.
    is_used: AtomicBool,
}

impl Slot {
    pub(super) fn get(&self) -> Option<Arc<OpenFile>> {
        self.is_used.store(true, Relaxed);
        lock(&self.file).clone()
    }

    /// Keeps a file open, and closes another one where too many are.
    pub(super) fn keep(self: &Arc<Self>, file: Arc<OpenFile>) {
        // Where two threads open it at once the later one stays.
        if lock(&self.file).replace(file).is_none() {
            enter(Arc::downgrade(self));
        }
    }

    fn close(&self) {
        lock(&self.file).take();
    }
}

fn enter(slot: Weak<Slot>) {
    let mut open = lock(&OPEN);
    open.push_back(slot);
    if open.len() > OPEN_MAX {
        open.retain(|slot| slot.strong_count() > 0);
    }
    while open.len() > OPEN_MAX {
        let Some(slot) = open.pop_front() else { break };
        match slot.upgrade() {
            Some(used) if used.is_used.swap(false, Relaxed) => open.push_back(slot),
            Some(idle) => idle.close(),
            None => {}
        }
    }
}

impl OpenFile {
    pub(super) fn open(tree: &Tree, name: &str, io: Io) -> Result<Arc<Self>> {
        let (dir, base) = tree.parent(name)?;
        // Not blocking: a pipe planted under an object's name must not stop us.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&*dir, base, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Err(tree.missing(name)),
            Err(Errno::LOOP | Errno::NXIO) => return Err(foreign(tree, name)),
            Err(errno) => return Err(tree.os("open", name)(errno)),
        };
        let identity = Identity::of(&tree.object(name, tree.checked(&file, name)?)?);
        let direct = go_direct(&file, io).map_err(tree.os("open", name))?;
        Ok(Arc::new(Self { file, identity, direct, bounce: Mutex::new(None) }))
    }

    pub(super) fn take_bounce(&self, bytes: usize) -> AlignedBuf {
        let kept = lock(&self.bounce).take();
        kept.filter(|buf| buf.len() >= bytes).unwrap_or_else(|| AlignedBuf::with_len(bytes))
    }

    pub(super) fn keep_bounce(&self, buf: AlignedBuf) {
        *lock(&self.bounce) = Some(buf);
    }
}

impl Identity {
    fn of(stat: &Stat) -> Self {
        Self {
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            device: stat.st_dev,
            inode: stat.st_ino,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }
}

/// What a name that cannot be opened is; gone meanwhile if it is a plain file now.
fn foreign(tree: &Tree, name: &str) -> Error {
    tree.stat(name).err().unwrap_or_else(|| tree.missing(name))
}

/// Whether reads are direct now.
fn go_direct(file: &File, io: Io) -> io::Result<bool> {
    if io == Io::Buffered {
        return Ok(false);
    }
    match (rustix::fs::fcntl_setfl(file, OFlags::DIRECT), io) {
        (Ok(()), _) => Ok(true),
        (Err(_), Io::Auto) => Ok(false),
        (Err(errno), _) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, format!("direct I/O: {errno}")))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
