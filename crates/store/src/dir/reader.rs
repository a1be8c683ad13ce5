//! Reading one object at any offset, past the page cache where possible.
//!
//! Data: aligned requests go straight from the device into the caller's buffer; the unaligned
//! ends of a request pass through a small bounce buffer.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::open_file::{Identity, OpenFile, Slot};
use super::part::is_einval;
use super::tree::Tree;
use crate::contract::ObjectReader;
use crate::error::{Error, Result};
use crate::location::{Io, Options};
use standfast_sys::ALIGN;

/// An object's name and identity; its file is open as long as there is room.
pub(super) struct DirReader {
    tree: Arc<Tree>,
    name: String,
    identity: Identity,
    slot: Arc<Slot>,
    io: Io,
    bounce_bytes: usize,
}

impl DirReader {
    pub(super) fn open(tree: &Arc<Tree>, name: &str, options: &Options) -> Result<DirReader> {
        let file = OpenFile::open(tree, name, options.io)?;
        let reader = DirReader {
            tree: tree.clone(),
            name: name.to_owned(),
            identity: file.identity,
            slot: Arc::default(),
            io: options.io,
            bounce_bytes: options.chunk_bytes,
        };
        reader.slot.keep(file);
        Ok(reader)
    }

    /// The file, opened again if it was closed.
    fn file(&self) -> Result<Arc<OpenFile>> {
        if let Some(file) = self.slot.get() {
            return Ok(file);
        }
        let file = OpenFile::open(&self.tree, &self.name, self.io)?;
        if file.identity != self.identity {
            return Err(Error::Replaced(self.tree.object_at(&self.name)));
        }
        self.slot.keep(Arc::clone(&file));
        Ok(file)
    }

    fn shrunk(&self, found: u64) -> Error {
        let object = self.tree.object_at(&self.name);
        Error::Shrunk { object, expected: self.identity.bytes, found }
    }

    fn read_direct(&self, file: &OpenFile, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut at = 0;
        while at < buf.len() {
            let position = offset + at as u64;
            let rest = &mut buf[at..];
            let whole = rest.len() / ALIGN * ALIGN;
            at += if position.is_multiple_of(ALIGN as u64) && is_aligned(rest) && whole > 0 {
                self.read_exact(file, position, &mut rest[..whole], whole)?;
                whole
            } else {
                self.read_bounced(file, position, rest)?
            };
        }
        Ok(())
    }

    /// Reads the aligned blocks around the start of `buf` and copies what was asked for.
    fn read_bounced(&self, file: &OpenFile, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let skip = (offset % ALIGN as u64) as usize;
        let count = self.bounced_bytes(skip, buf);
        let blocks = (skip + count).next_multiple_of(ALIGN);
        let mut bounce = file.take_bounce(blocks);
        self.read_exact(file, offset - skip as u64, &mut bounce[..blocks], skip + count)?;
        buf[..count].copy_from_slice(&bounce[skip..skip + count]);
        file.keep_bounce(bounce);
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

    /// Reads until at least `needed` bytes of `buf` are there; at the end of the file the last
    /// block comes short.
    fn read_exact(
        &self,
        file: &OpenFile,
        offset: u64,
        buf: &mut [u8],
        needed: usize,
    ) -> Result<()> {
        let (mut filled, mut buffered, mut failed) = (0, false, false);
        while filled < needed {
            match file.file.read_at(&mut buf[filled..], offset + filled as u64) {
                Ok(0) => return Err(self.shrunk(offset + filled as u64)),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A file system that takes the flag but not the alignment: use the cache instead.
                Err(error) if self.io == Io::Auto && is_einval(&error) && !buffered => {
                    rustix::fs::fcntl_setfl(&file.file, OFlags::empty())
                        .map_err(self.tree.os("read", &self.name))?;
                    buffered = true;
                }
                // What the medium has lost fails again; a hiccup of the path to it does not.
                Err(error) if is_of_medium(&error) && !failed => failed = true,
                Err(error) if is_of_medium(&error) => {
                    let object = self.tree.object_at(&self.name);
                    return Err(Error::Medium { object, source: error });
                }
                Err(error) => return Err(self.tree.os("read", &self.name)(error)),
            }
        }
        Ok(())
    }
}

impl ObjectReader for DirReader {
    fn bytes(&self) -> u64 {
        self.identity.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let rest = self.identity.bytes.saturating_sub(offset);
        let count = usize::try_from(rest).unwrap_or(usize::MAX).min(buf.len());
        let buf = &mut buf[..count];
        let file = self.file()?;
        if file.direct {
            self.read_direct(&file, offset, buf)?;
        } else {
            self.read_exact(&file, offset, buf, count)?;
        }
        Ok(count)
    }
}

/// Whether the device, or a file system that keeps checksums, cannot give the bytes back.
fn is_of_medium(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::IO | Errno::UCLEAN | Errno::BADMSG))
}

fn is_aligned(buf: &[u8]) -> bool {
    (buf.as_ptr() as usize).is_multiple_of(ALIGN)
}
