//! Reading one object at any offset, past the page cache where possible.
//!
//! Data: aligned requests go straight from the device into the caller's buffer; the unaligned
//! ends of a request pass through a small bounce buffer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::part::is_einval;
use super::tree::Tree;
use crate::contract::ObjectReader;
use crate::error::{Error, Result};
use crate::location::{Io, Options};
use standfast_sys::{ALIGN, AlignedBuf};

pub(super) struct DirReader {
    tree: Arc<Tree>,
    name: String,
    file: File,
    bytes: u64,
    direct: bool,
    may_fall_back: bool,
    bounce_bytes: usize,
    bounce: Mutex<Option<AlignedBuf>>,
}

impl DirReader {
    pub(super) fn open(tree: &Arc<Tree>, name: &str, options: &Options) -> Result<DirReader> {
        let (dir, base) = tree.parent(name)?;
        // Not blocking: a pipe planted under an object's name must not stop us.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&*dir, base, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Err(tree.missing(name)),
            Err(Errno::LOOP | Errno::NXIO) => return Err(foreign(tree, name)),
            Err(errno) => return Err(tree.os("open", name)(errno)),
        };
        let stat = rustix::fs::fstat(&file).map_err(tree.os("look up", name))?;
        let stat = tree.object(name, stat)?;
        let direct = go_direct(&file, options.io).map_err(tree.os("open", name))?;
        Ok(DirReader {
            tree: tree.clone(),
            name: name.to_owned(),
            file,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            direct,
            may_fall_back: options.io == Io::Auto,
            bounce_bytes: options.chunk_bytes,
            bounce: Mutex::new(None),
        })
    }

    fn shrunk(&self, found: u64) -> Error {
        let (object, store) = (self.name.clone(), self.tree.describe().to_owned());
        Error::Shrunk { object, store, expected: self.bytes, found }
    }

    fn read_direct(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut at = 0;
        while at < buf.len() {
            let position = offset + at as u64;
            let rest = &mut buf[at..];
            let whole = rest.len() / ALIGN * ALIGN;
            at += if position.is_multiple_of(ALIGN as u64) && is_aligned(rest) && whole > 0 {
                self.read_exact(position, &mut rest[..whole], whole)?;
                whole
            } else {
                self.read_bounced(position, rest)?
            };
        }
        Ok(())
    }

    /// Reads the aligned blocks around the start of `buf` and copies what was asked for.
    fn read_bounced(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let skip = (offset % ALIGN as u64) as usize;
        let count = self.bounced_bytes(skip, buf);
        let blocks = (skip + count).next_multiple_of(ALIGN);
        let mut bounce = self.take_bounce(blocks);
        self.read_exact(offset - skip as u64, &mut bounce[..blocks], skip + count)?;
        buf[..count].copy_from_slice(&bounce[skip..skip + count]);
        self.keep_bounce(bounce);
        Ok(count)
    }

    /// If the buffer's address becomes aligned with the next block, only the head bounces;
    /// otherwise as much as a chunk holds.
    fn bounced_bytes(&self, skip: usize, buf: &[u8]) -> usize {
        let head = ALIGN - skip;
        let rest_is_aligned = buf.len() > head && is_aligned(&buf[head..]);
        let limit = if rest_is_aligned { head } else { self.bounce_bytes - skip };
        buf.len().min(limit)
    }

    fn take_bounce(&self, bytes: usize) -> AlignedBuf {
        let kept = self.bounce.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|buf| buf.len() >= bytes).unwrap_or_else(|| AlignedBuf::with_len(bytes))
    }

    fn keep_bounce(&self, buf: AlignedBuf) {
        *self.bounce.lock().unwrap_or_else(PoisonError::into_inner) = Some(buf);
    }

    /// Reads until at least `needed` bytes of `buf` are there; at the end of the file the last
    /// block comes short.
    fn read_exact(&self, offset: u64, buf: &mut [u8], needed: usize) -> Result<()> {
        let (mut filled, mut buffered) = (0, false);
        while filled < needed {
            match self.file.read_at(&mut buf[filled..], offset + filled as u64) {
                Ok(0) => return Err(self.shrunk(offset + filled as u64)),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A file system that takes the flag but not the alignment: use the cache instead.
                Err(error) if self.may_fall_back && is_einval(&error) && !buffered => {
                    rustix::fs::fcntl_setfl(&self.file, OFlags::empty())
                        .map_err(self.tree.os("read", &self.name))?;
                    buffered = true;
                }
                Err(error) => return Err(self.tree.os("read", &self.name)(error)),
            }
        }
        Ok(())
    }
}

impl ObjectReader for DirReader {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let rest = self.bytes.saturating_sub(offset);
        let count = usize::try_from(rest).unwrap_or(usize::MAX).min(buf.len());
        let buf = &mut buf[..count];
        if self.direct {
            self.read_direct(offset, buf)?;
        } else {
            self.read_exact(offset, buf, count)?;
        }
        Ok(count)
    }
}

/// What a name that cannot be opened is; gone meanwhile if it is a plain file now.
fn foreign(tree: &Tree, name: &str) -> Error {
    tree.stat(name).err().unwrap_or_else(|| tree.missing(name))
}

fn is_aligned(buf: &[u8]) -> bool {
    (buf.as_ptr() as usize).is_multiple_of(ALIGN)
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
