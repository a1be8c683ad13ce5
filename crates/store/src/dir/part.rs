//! A file that is not yet an object, and the one place where it becomes one.
//!
//! Data: created as `<name>~<pid>-<n>.part`, filled by the writer, published by
//! fsync -> rename -> fsync of the directory. Dropped unpublished, it is removed.
//!
//! Invariant: after a failed fsync nothing is retried: the kernel may have dropped the pages and
//! would report success the second time. The part is given up.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::tree::{Tree, VANISHED_MAX};
use crate::contract::OwnedBytes;
use crate::error::{Error, Result};
use crate::failpoint;
use crate::location::Io;

const SUFFIX: &str = ".part";
const MARK: char = '~';

/// Whether a file name is that of a part.
pub(super) fn is_part(file_name: &str) -> bool {
    file_name.contains(MARK) && file_name.ends_with(SUFFIX)
}

/// What publishing does when an object of that name is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfExists {
    Replace,
    Refuse,
}

/// The open file; I/O threads share it.
#[derive(Debug)]
pub(super) struct PartFile {
    file: File,
    /// Whether writes may go through the page cache where direct ones are refused.
    may_fall_back: bool,
    /// Whether writes go past the page cache.
    direct: AtomicBool,
}

impl PartFile {
    /// Writes all of `bytes` at `offset`. In direct mode everything must be aligned.
    pub(super) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let result = self.file.write_all_at(bytes, offset);
        match &result {
            // A file system that takes the flag but not the alignment: use the cache instead.
            Err(error) if self.may_fall_back && is_einval(error) => {
                self.set_flags(OFlags::empty())?;
                self.file.write_all_at(bytes, offset)
            }
            _ => result,
        }
    }

    /// Writes several buffers end to end at `offset`, in one call if the system takes it so.
    pub(super) fn write_all_gathered(&self, bytes: &[OwnedBytes], offset: u64) -> io::Result<()> {
        let slices: Vec<IoSlice<'_>> =
            bytes.iter().map(|bytes| IoSlice::new((**bytes).as_ref())).collect();
        let total: usize = slices.iter().map(|slice| slice.len()).sum();
        match rustix::io::pwritev(&self.file, &slices, offset) {
            Ok(written) if written == total => Ok(()),
            // Cut short, interrupted or refused: one by one, which retries and falls back.
            _ => self.write_each_at(bytes, offset),
        }
    }

    fn write_each_at(&self, bytes: &[OwnedBytes], mut offset: u64) -> io::Result<()> {
        for bytes in bytes {
            let bytes = (**bytes).as_ref();
            self.write_all_at(bytes, offset)?;
            offset += bytes.len() as u64;
        }
        Ok(())
    }

    /// Starts a stretch that was written on its way to the medium, where it went to the page
    /// cache: else the medium would begin late, and the fsync at the end would take all the time.
    /// That fsync is still needed.
    pub(super) fn write_back(&self, offset: u64, bytes: u64) -> io::Result<()> {
        if self.direct.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (Ok(offset), Ok(bytes)) = (i64::try_from(offset), i64::try_from(bytes)) else {
            return Ok(());
        };
        let flags = libc::SYNC_FILE_RANGE_WRITE;
        // SAFETY: the descriptor is open as long as `self`; no memory is passed.
        let outcome = unsafe { libc::sync_file_range(self.file.as_raw_fd(), offset, bytes, flags) };
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            _ if outcome == 0 => Ok(()),
            // File systems that do not have it: the fsync at the end does everything.
            Some(libc::ESPIPE | libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => Ok(()),
            _ => Err(error),
        }
    }

    pub(super) fn as_file(&self) -> &File {
        &self.file
    }

    fn set_flags(&self, flags: OFlags) -> io::Result<()> {
        rustix::fs::fcntl_setfl(&self.file, flags)?;
        self.direct.store(flags.contains(OFlags::DIRECT), Ordering::Relaxed);
        Ok(())
    }
}

/// How file systems refuse an alignment or a flag.
pub(super) fn is_einval(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::INVAL.raw_os_error())
}

/// An unpublished file.
#[derive(Debug)]
pub(super) struct Part {
    tree: Arc<Tree>,
    name: String,
    dir: Arc<OwnedFd>,
    part_name: String,
    file: Arc<PartFile>,
    removed: bool,
}

impl Part {
    pub(super) fn create(tree: &Arc<Tree>, name: &str, io: Io) -> Result<Part> {
        failpoint::pass("store.create").map_err(tree.os("create", name))?;
        let mut made = create_in_directory(tree, name)?;
        for _ in 1..VANISHED_MAX {
            match made {
                // Somebody found the directory empty, and removed it, in this instant.
                (_, Err(Errno::NOENT)) => made = create_in_directory(tree, name)?,
                _ => break,
            }
        }
        let (dir, created) = made;
        let (part_name, file) = created.map_err(tree.os("create", name))?;
        // Held as long as the writer lives, so that nobody discards it as a leftover.
        // Where flock does not exist, the store's writer lock alone has to do.
        let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        let (may_fall_back, direct) = (io == Io::Auto, AtomicBool::new(false));
        let file = PartFile { file, may_fall_back, direct };
        let (tree, name) = (tree.clone(), name.to_owned());
        let part = Part { tree, name, dir, part_name, file: Arc::new(file), removed: false };
        part.go_direct(io)?;
        Ok(part)
    }

    /// The flag is set after creation: `open` with it would leave an empty file where refused.
    fn go_direct(&self, io: Io) -> Result<()> {
        if io == Io::Buffered {
            return Ok(());
        }
        match self.file.set_flags(OFlags::DIRECT) {
            Err(error) if io == Io::Direct => Err(self.unsupported(error)),
            _ => Ok(()),
        }
    }

    fn unsupported(&self, source: io::Error) -> Error {
        let source = io::Error::new(io::ErrorKind::Unsupported, format!("direct I/O: {source}"));
        self.os("create")(source)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(super) fn file(&self) -> &Arc<PartFile> {
        &self.file
    }

    pub(super) fn os<E: Into<io::Error>>(&self, op: &'static str) -> impl Fn(E) -> Error {
        self.tree.os(op, &self.name)
    }

    /// Makes the file durable, gives it its name, and makes the name durable.
    pub(super) fn publish(mut self, if_exists: IfExists) -> Result<()> {
        let sync = || {
            failpoint::pass("store.seal.before_fsync")?;
            // Until now it was for its writer alone: nobody else could keep it from being discarded.
            self.tree.trust().give(self.file.as_file(), self.tree.trust().file_mode())?;
            rustix::fs::fsync(self.file.as_file())?;
            failpoint::pass("store.seal.before_rename")
        };
        sync().map_err(self.os("sync"))?;
        self.rename(if_exists)?;
        self.removed = true;
        let sync_directory = || {
            failpoint::pass("store.seal.before_dirsync")?;
            rustix::fs::fsync(&*self.dir)?;
            failpoint::pass("store.seal.after")
        };
        sync_directory().map_err(self.os("sync the directory of"))
    }

    fn rename(&self, if_exists: IfExists) -> Result<()> {
        let base = self.name.rsplit('/').next().unwrap_or(&self.name);
        let (dir, part) = (&*self.dir, &*self.part_name);
        let renamed = match if_exists {
            IfExists::Replace => rustix::fs::renameat(dir, part, dir, base),
            IfExists::Refuse => {
                match rustix::fs::renameat_with(dir, part, dir, base, RenameFlags::NOREPLACE) {
                    // Network file systems lack the flag; a hard link refuses just as well.
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                        rustix::fs::linkat(dir, part, dir, base, AtFlags::empty()).inspect(|()| {
                            let _ = rustix::fs::unlinkat(dir, part, AtFlags::empty());
                        })
                    }
                    other => other,
                }
            }
        };
        match renamed {
            Err(Errno::EXIST) if if_exists == IfExists::Refuse => {
                Err(Error::Exists(self.tree.object_at(&self.name)))
            }
            other => other.map_err(self.os("publish")),
        }
    }

    /// Gives the space back at once.
    pub(super) fn discard(&mut self) {
        if !std::mem::replace(&mut self.removed, true) {
            // Best effort: what stays is a leftover that `discard_unsealed` removes.
            let _ = rustix::fs::unlinkat(&*self.dir, &*self.part_name, AtFlags::empty());
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Creates a file that nobody else has. Names clash only between hosts that share the directory
/// and happen to use equal process numbers.
fn create_unique(dir: &OwnedFd, base: &str) -> Created {
    const ATTEMPTS: usize = 1000;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{base}{MARK}{}-{number}{SUFFIX}", std::process::id());
        match rustix::fs::openat(dir, &*name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => return Ok((name, File::from(fd))),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

type Created = rustix::io::Result<(String, File)>;

fn create_in_directory(tree: &Tree, name: &str) -> Result<(Arc<OwnedFd>, Created)> {
    let (dir, base) = tree.parent_for_writing(name)?;
    let created = create_unique(&dir, base);
    Ok((dir, created))
}
