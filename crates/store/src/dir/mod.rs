//! Objects as files of a directory: the backend of node-local disks and parallel file systems.
//!
//! Data: appended bytes -> aligned chunks -> I/O threads -> `<name>~<unique>.part`
//! -> fsync -> rename to `<name>` -> fsync of the directory. Reads go the direct way back.
//!
//! Tree, for the objects `a` and `segments/1`:
//! ```text
//! DIR/a
//! DIR/segments/1
//! DIR/segments/2~4711-0.part     a writer at work, or one that crashed
//! DIR/lock.writer, lock.reader   flock'd; their text names the last holder
//! ```
//!
//! Why direct I/O: the pages of a checkpoint are written once and read after a crash; caching
//! them costs a copy, evicts the program's own pages and makes fsync the slow step.
//!
//! Invariants:
//! - Only a file that was fsynced whole ever gets an object's name.
//! - `~` is in no object's name, so a part file is never taken for an object.
//! - Every path component is opened without following links: nothing outside is ever touched.
//! - What is read belongs to somebody who is trusted, and nobody else can write to it
//!   ([`standfast_sys::trust`]); what is written nobody else can read, unless the store is shared.

mod io_threads;
mod lock;
mod open_file;
mod part;
mod reader;
mod tree;
mod walk;
mod writer;

pub(crate) use lock::LockFile;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType};

use crate::contract::{Lock, LockGuard, ObjectMeta, ObjectReader, ObjectWriter, Store};
use crate::error::{Error, Result};
use crate::failpoint;
use crate::location::{Io, Options};
use crate::name::{check_name, check_prefix};
use io_threads::IoThreads;
use part::{IfExists, Part};
use reader::DirReader;
use tree::Tree;
use writer::DirWriter;

/// A store in a directory of a file system.
#[derive(Debug)]
pub struct DirStore {
    tree: Arc<Tree>,
    options: Options,
    /// Started by the first writer: commands that only read need no threads.
    io_threads: Mutex<Option<Arc<IoThreads>>>,
}

impl DirStore {
    /// Opens the store at `path`, creating the directory (durably) if it is not there.
    ///
    /// A directory that cannot be written opens too: reading works, writing is `Kind::Denied`.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let path = path.as_ref();
        options.check(&path.to_string_lossy())?;
        let tree = Arc::new(Tree::open(path, &options.trust)?);
        Ok(DirStore { tree, options: options.clone(), io_threads: Mutex::new(None) })
    }

    /// Takes over the writer lock of this store that another process holds and has handed on; fails
    /// with `Kind::Invalid` for any other descriptor, with `Kind::Busy` where somebody else holds it.
    pub fn adopt_writer_lock(&self, handed: OwnedFd) -> Result<OwnedFd> {
        lock::adopt(&self.tree, handed)
    }

    fn io_threads(&self, name: &str) -> Result<Arc<IoThreads>> {
        let mut slot = self.io_threads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(threads) = &*slot {
            return Ok(threads.clone());
        }
        let threads = IoThreads::start(self.options.io_threads, self.options.chunk_bytes)
            .map_err(self.tree.os("start I/O threads for", name))?;
        Ok(slot.insert(Arc::new(threads)).clone())
    }

    fn put_if(&self, name: &str, bytes: &[u8], if_exists: IfExists) -> Result<()> {
        check_name(name, self.tree.describe())?;
        if if_exists == IfExists::Refuse {
            // Only saves work; the rename decides.
            self.refuse_existing(name)?;
        }
        let part = Part::create(&self.tree, name, Io::Buffered)?;
        let write = || {
            failpoint::pass("store.chunk.write")?;
            part.file().write_all_at(bytes, 0)
        };
        write().map_err(self.tree.os("write", name))?;
        part.publish(if_exists)
    }

    fn refuse_existing(&self, name: &str) -> Result<()> {
        match self.tree.stat(name) {
            Ok(_) => Err(Error::Exists(self.tree.object_at(name))),
            Err(error) if error.kind() == standfast_format::Kind::Missing => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Store for DirStore {
    fn describe(&self) -> String {
        self.tree.describe().to_owned()
    }

    fn create(&self, name: &str, size_hint: Option<u64>) -> Result<Box<dyn ObjectWriter>> {
        check_name(name, self.tree.describe())?;
        let threads = self.io_threads(name)?;
        let part = Part::create(&self.tree, name, self.options.io)?;
        Ok(Box::new(DirWriter::new(part, threads, size_hint)))
    }

    fn prepare(&self) {
        // What fails now is told when it is needed.
        if let Ok(threads) = self.io_threads("") {
            threads.prepare();
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_if(name, bytes, IfExists::Replace)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_if(name, bytes, IfExists::Refuse)
    }

    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>> {
        check_name(name, self.tree.describe())?;
        Ok(Box::new(DirReader::open(&self.tree, name, &self.options)?))
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        check_prefix(prefix, self.tree.describe())?;
        walk::objects(&self.tree, prefix)
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name, self.tree.describe())?;
        let stat = self.tree.stat(name)?;
        let (dir, base) = self.tree.parent(name)?;
        debug_assert_eq!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile);
        let remove = || {
            failpoint::pass("store.remove.before")?;
            rustix::fs::unlinkat(&*dir, base, AtFlags::empty())?;
            rustix::fs::fsync(&*dir)?;
            failpoint::pass("store.remove.after")
        };
        remove().map_err(self.tree.os("remove", name))?;
        if let Some((path, _)) = name.rsplit_once('/') {
            self.tree.remove_if_empty(path);
        }
        Ok(())
    }

    fn discard_unsealed(&self) -> Result<u64> {
        walk::discard_parts(&self.tree)
    }

    fn lock(&self, lock: Lock) -> Result<LockGuard> {
        lock::take(&self.tree, lock)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.tree.free_bytes().map(Some)
    }
}
