//! Locks between processes: flock on small files, one for each place.
//!
//! Why flock: the kernel releases it when the holder dies, however it dies, so there is no stale
//! lock to clean up. The text in the file only serves the message. The files are not removed,
//! because somebody could be about to lock the one that was just unlinked; checkpoints, of which
//! there is no end, share one file, and each locks a byte of its own in it.
//!
//! Why only their owner can open them: flock asks for no right to write, so who can only read a store
//! could otherwise hold up its writers for ever.
//!
//! Why it is given up by a call and not only by closing the file: a child that the program has forked
//! meanwhile has the same open file, and closing it here would leave the lock to the child.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::tree::Tree;
use crate::contract::{Lock, LockGuard};
use crate::error::{Error, Result};
use crate::holder;

/// The file that the locks of all checkpoints share.
const CHECKPOINTS: &str = "lock.checkpoints";
const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);

pub(super) fn take(tree: &Tree, lock: Lock) -> Result<LockGuard> {
    let (file_name, byte) = match lock {
        Lock::Keep(version) | Lock::Drop(version) => (CHECKPOINTS.to_owned(), Some(version)),
        _ => (lock.place(), None),
    };
    let Some((file, writable)) = open(tree, &file_name, lock)? else {
        return Ok(LockGuard::new(lock, ()));
    };
    let taken = match byte {
        None => take_file(&file, lock.is_shared()),
        Some(byte) => take_byte(&file, byte, lock.is_shared()),
    };
    match taken {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK | Errno::ACCESS) => return Err(locked(tree, lock, &file)),
        Err(Errno::NOSYS | Errno::OPNOTSUPP) => {
            let why = "the file system has no flock (Lustre: mount it with -o flock)";
            return Err(tree.os("lock", &file_name)(io::Error::new(
                io::ErrorKind::Unsupported,
                why,
            )));
        }
        Err(errno) => return Err(tree.os("lock", &file_name)(errno)),
    }
    if writable && has_text(lock) {
        // Only for messages: a lock without its text is still held.
        let text = format!("{}\n", holder::this_process());
        let _ = file.set_len(0).and_then(|()| file.write_all_at(text.as_bytes(), 0));
    }
    let (pid, handed_on) = (std::process::id(), AtomicBool::new(false));
    Ok(LockGuard::new(lock, LockFile { file, byte, pid, handed_on }))
}

/// Takes over a writer lock that another process holds: the descriptor that it has handed on must be
/// that of this store's lock, and hold it. Released with the last copy of the descriptor.
pub(super) fn adopt(tree: &Tree, handed: OwnedFd) -> Result<OwnedFd> {
    let (lock, name) = (Lock::Writer, Lock::Writer.place());
    let own = rustix::fs::statat(&**tree.root(), &*name, AtFlags::SYMLINK_NOFOLLOW);
    let own = own.map_err(tree.os("look at", &name))?;
    let other = rustix::fs::fstat(&handed).map_err(tree.os("look at", &name))?;
    if (own.st_dev, own.st_ino) != (other.st_dev, other.st_ino) {
        let why = "the descriptor that was handed over is not that of this store's lock";
        let source = io::Error::new(io::ErrorKind::InvalidInput, why);
        return Err(tree.os("take over", &name)(source));
    }
    let file = File::from(handed);
    // For whoever holds it through this descriptor that changes nothing; for others it fails.
    match take_file(&file, false) {
        Ok(()) => Ok(file.into()),
        Err(Errno::WOULDBLOCK | Errno::ACCESS) => Err(locked(tree, lock, &file)),
        Err(errno) => Err(tree.os("take over", &name)(errno)),
    }
}

/// A lock that was taken.
pub(crate) struct LockFile {
    file: File,
    byte: Option<u64>,
    /// Who took it: a forked child that drops its copy must not give up what its parent holds.
    pid: u32,
    /// Whether another process holds it too.
    handed_on: AtomicBool,
}

impl LockFile {
    /// The file, for another process that is to hold the lock too.
    pub(crate) fn hand_on(&self) -> &File {
        self.handed_on.store(true, Ordering::Relaxed);
        &self.file
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if std::process::id() != self.pid || *self.handed_on.get_mut() {
            return;
        }
        // Where this fails, closing the file does it.
        let _ = match self.byte {
            None => rustix::fs::flock(&self.file, FlockOperation::Unlock),
            Some(byte) => set_byte(&self.file, byte, libc::F_UNLCK),
        };
    }
}

/// Whether anybody is told who holds it. Nobody waits for the others for long, and they are taken
/// at every checkpoint.
fn has_text(lock: Lock) -> bool {
    matches!(lock, Lock::Writer | Lock::ReadShared | Lock::ReadExclusive | Lock::Drain)
}

fn take_file(file: &File, shared: bool) -> rustix::io::Result<()> {
    let operation = match shared {
        true => FlockOperation::NonBlockingLockShared,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    rustix::fs::flock(file, operation)
}

/// Locks one byte; the file need not be that long.
fn take_byte(file: &File, byte: u64, shared: bool) -> rustix::io::Result<()> {
    set_byte(file, byte, if shared { libc::F_RDLCK } else { libc::F_WRLCK })
}

fn set_byte(file: &File, byte: u64, state: libc::c_int) -> rustix::io::Result<()> {
    // SAFETY: all fields of this plain structure may be zero.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = state as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = (byte & (i64::MAX as u64 >> 1)) as libc::off_t;
    range.l_len = 1;
    // SAFETY: the descriptor is open, and the kernel only reads the structure.
    let rc = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &range) };
    if rc == 0 { Ok(()) } else { Err(last_errno()) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// The lock file and whether it can be written; `None` where a reader has to go without one:
/// in a directory that it cannot write, nobody like it can prune either.
fn open(tree: &Tree, file_name: &str, lock: Lock) -> Result<Option<(File, bool)>> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    // Who only asks leaves no file behind, and where there is none nobody holds anything.
    let asks = matches!(lock, Lock::Idle | Lock::Drop(_));
    let create = if asks { OFlags::empty() } else { OFlags::CREATE };
    let read_write = flags | OFlags::RDWR | create;
    match rustix::fs::openat(&**tree.root(), file_name, read_write, OWNER) {
        Ok(fd) => return Ok(Some((own(tree, file_name, fd)?, true))),
        Err(Errno::NOENT) if asks => return Ok(None),
        Err(Errno::ROFS | Errno::ACCESS | Errno::PERM) if lock.is_shared() => {}
        Err(errno) => return Err(tree.os("lock", file_name)(errno)),
    }
    match rustix::fs::openat(&**tree.root(), file_name, flags | OFlags::RDONLY, Mode::empty()) {
        Ok(fd) => {
            tree.object(file_name, tree.checked(&fd, file_name)?)?;
            Ok(Some((File::from(fd), false)))
        }
        Err(Errno::NOENT | Errno::ROFS | Errno::ACCESS | Errno::PERM) => Ok(None),
        Err(errno) => Err(tree.os("lock", file_name)(errno)),
    }
}

/// A lock file that can be written. One of an earlier version has the mode that the umask left it.
fn own(tree: &Tree, file_name: &str, fd: OwnedFd) -> Result<File> {
    let stat = tree.object(file_name, tree.checked(&fd, file_name)?)?;
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
    if is_own && Mode::from_raw_mode(stat.st_mode & 0o777) != OWNER {
        rustix::fs::fchmod(&fd, OWNER).map_err(tree.os("set the mode of", file_name))?;
    }
    Ok(File::from(fd))
}

fn locked(tree: &Tree, lock: Lock, file: &File) -> Error {
    let mut text = [0; holder::HOLDER_BYTES_MAX];
    let bytes = file.read_at(&mut text, 0).unwrap_or(0);
    let holder = holder::read_back(&text[..bytes]).unwrap_or_else(|| "another process".to_owned());
    Error::Locked { lock, store: tree.describe().to_owned(), holder }
}
