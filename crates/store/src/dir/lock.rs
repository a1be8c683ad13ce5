//! Locks between processes: flock on two small files.
//!
//! Why flock: the kernel releases it when the holder dies, however it dies, so there is no stale
//! lock to clean up. The text in the file only serves the message; the files are never removed,
//! because somebody could be about to lock the one that was just unlinked.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::tree::Tree;
use crate::contract::{Lock, LockGuard};
use crate::error::{Error, Result};
use crate::holder;

pub(super) fn take(tree: &Tree, lock: Lock) -> Result<LockGuard> {
    let (file_name, operation) = match lock {
        Lock::Writer => ("lock.writer", FlockOperation::NonBlockingLockExclusive),
        Lock::ReadShared => ("lock.reader", FlockOperation::NonBlockingLockShared),
        Lock::ReadExclusive => ("lock.reader", FlockOperation::NonBlockingLockExclusive),
    };
    let Some((file, writable)) = open(tree, file_name, lock)? else {
        return Ok(LockGuard::new(lock, ()));
    };
    match rustix::fs::flock(&file, operation) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(locked(tree, lock, &file)),
        Err(Errno::NOSYS | Errno::OPNOTSUPP) => {
            let why = "the file system has no flock (Lustre: mount it with -o flock)";
            return Err(tree.os("lock", file_name)(io::Error::new(
                io::ErrorKind::Unsupported,
                why,
            )));
        }
        Err(errno) => return Err(tree.os("lock", file_name)(errno)),
    }
    if writable {
        // Only for messages: a lock without its text is still held.
        let text = format!("{}\n", holder::this_process());
        let _ = file.set_len(0).and_then(|()| file.write_all_at(text.as_bytes(), 0));
    }
    Ok(LockGuard::new(lock, file))
}

/// The lock file and whether it can be written; `None` where a reader has to go without one:
/// in a directory that it cannot write, nobody like it can prune either.
fn open(tree: &Tree, file_name: &str, lock: Lock) -> Result<Option<(File, bool)>> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let read_write = flags | OFlags::RDWR | OFlags::CREATE;
    match rustix::fs::openat(&**tree.root(), file_name, read_write, Mode::from_raw_mode(0o666)) {
        Ok(fd) => return Ok(Some((File::from(fd), true))),
        Err(Errno::ROFS | Errno::ACCESS | Errno::PERM) if lock == Lock::ReadShared => {}
        Err(errno) => return Err(tree.os("lock", file_name)(errno)),
    }
    match rustix::fs::openat(&**tree.root(), file_name, flags | OFlags::RDONLY, Mode::empty()) {
        Ok(fd) => Ok(Some((File::from(fd), false))),
        Err(Errno::NOENT | Errno::ROFS | Errno::ACCESS | Errno::PERM) => Ok(None),
        Err(errno) => Err(tree.os("lock", file_name)(errno)),
    }
}

fn locked(tree: &Tree, lock: Lock, file: &File) -> Error {
    let mut text = [0; holder::HOLDER_BYTES_MAX];
    let bytes = file.read_at(&mut text, 0).unwrap_or(0);
    let holder = holder::read_back(&text[..bytes]).unwrap_or_else(|| "another process".to_owned());
    Error::Locked { lock, store: tree.describe().to_owned(), holder }
}
