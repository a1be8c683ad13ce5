//! The traits that every backend implements, and what callers may rely on.
//!
//! Data: names and bytes in, names and bytes out. Callers hold `Arc<dyn Store>` and never know
//! which backend it is; the suite in `tests/conformance` checks each one.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::dir::LockFile;
use crate::error::{Error, Object, Result};
use crate::meter::WriteMeter;

/// An object as listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectMeta {
    /// Its name, relative to the store.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// A place that keeps named, immutable objects.
///
/// # Contract
///
/// - **Names** are relative and `/`-separated; each part is made of `[A-Za-z0-9._-]` and does not
///   start with `.`; the whole has at most 200 bytes and does not start with `lock.` (kept for
///   the store itself). Anything else is `Kind::Invalid`, so no name leaves the store. A name
///   should not be both an object and the prefix of another: a directory cannot hold that.
/// - **All or nothing**: an object is visible (`open`, `list`) only whole. A crash at any point
///   leaves the old object, the new one, or none where there was none; never a part of one.
/// - **Durable on return**: after `seal`, `put`, `put_new` or `remove` returned `Ok`, the effect
///   outlives a power failure (as far as the medium promises it; memory does not).
/// - **Replace**: sealing or putting a name that exists replaces it atomically. A reader opened
///   before keeps reading the old bytes or gets an error, never a mixture.
/// - **Failure loses nothing else**: a failed operation leaves other objects as they were and
///   gives back the space it had taken.
/// - **Threads**: all methods may be called from several threads at once. They block; none may
///   be called from a signal handler, and a store must be opened again after `fork`.
/// - **Locks** are advice between cooperating processes; no operation checks them.
pub trait Store: Send + Sync + fmt::Debug {
    /// The store in words, for messages: `/scratch/sf/heat`, `s3://bucket/prefix`.
    fn describe(&self) -> String;

    /// Starts an object that becomes visible when sealed. `size_hint` is the expected length;
    /// a wrong hint costs time or space for a while, never correctness.
    fn create(&self, name: &str, size_hint: Option<u64>) -> Result<Box<dyn ObjectWriter>>;

    /// Writes a whole small object, replacing one of that name.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Writes a whole small object; `Kind::Busy` if one of that name exists.
    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Opens a sealed object; `Kind::Missing` if there is none.
    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>>;

    /// Reads a whole object; one larger than `bytes_max` is `Kind::Corrupt`, found before
    /// any memory is taken for it.
    fn get(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>> {
        let reader = self.open(name)?;
        let bytes = reader.bytes();
        let object = || Object::new(name, self.describe());
        let too_large = || Error::TooLarge { object: object(), bytes, bytes_max };
        if bytes > bytes_max {
            return Err(too_large());
        }
        let len = usize::try_from(bytes).map_err(|_| too_large())?;
        let mut buf = Vec::new();
        let no_memory = |_| Error::NoMemory { object: object(), bytes };
        buf.try_reserve_exact(len).map_err(no_memory)?;
        buf.resize(len, 0);
        let found = reader.read_full(0, &mut buf)?;
        if found < buf.len() {
            let found = found as u64;
            return Err(Error::Shrunk { object: object(), expected: bytes, found });
        }
        Ok(buf)
    }

    /// The sealed objects below a "directory" (`""` for all), recursively, sorted by name.
    /// A prefix that does not exist has no objects. Files that are not objects are skipped.
    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>>;

    /// Removes an object; `Kind::Missing` if there is none.
    fn remove(&self, name: &str) -> Result<()>;

    /// Removes what crashed writers left behind and returns the bytes freed. Only the holder of
    /// [`Lock::Writer`] may call it, else it could take another process's work in progress.
    fn discard_unsealed(&self) -> Result<u64>;

    /// Takes a lock without waiting; `Kind::Busy` names the holder where known.
    fn lock(&self, lock: Lock) -> Result<LockGuard>;

    /// Makes ready what the next large object needs: threads, buffers. It only saves time later.
    fn prepare(&self) {}

    /// Bytes that can still be written; `None` where nobody knows.
    fn free_bytes(&self) -> Result<Option<u64>>;
}

/// Who may do what at the same time. Locks of different [places](Lock::place) are independent of
/// each other; at one place any number may hold a shared lock, or one an exclusive lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lock {
    /// One job, or one prune: whoever adds objects. Exclusive.
    Writer,
    /// Restart, verify, export: whoever needs objects to stay. Shared.
    ReadShared,
    /// Prune while it removes: no reader may be there. Exclusive.
    ReadExclusive,
    /// One drain at a time. Exclusive.
    Drain,
    /// A rank that stores a checkpoint or restarts: a drain steps aside. Shared. Object stores grant
    /// it and [`Lock::Idle`] always: nobody drains from there, and a lock that outlives a killed
    /// rank would hold up whoever does.
    Busy,
    /// For a drain that asks whether anybody is [busy](Lock::Busy). Exclusive.
    Idle,
    /// The objects of one checkpoint are needed: prune leaves it alone. Shared.
    Keep(u64),
    /// For prune that asks whether anybody [keeps](Lock::Keep) a checkpoint. Exclusive.
    Drop(u64),
}

impl Lock {
    /// Where locks meet: only those of one place can be in each other's way.
    pub fn place(self) -> String {
        match self {
            Lock::Writer => "lock.writer".into(),
            Lock::ReadShared | Lock::ReadExclusive => "lock.reader".into(),
            Lock::Drain => "lock.drain".into(),
            Lock::Busy | Lock::Idle => "lock.busy".into(),
            Lock::Keep(version) | Lock::Drop(version) => format!("lock.keep.{version}"),
        }
    }

    /// Whether several can hold it at once.
    pub fn is_shared(self) -> bool {
        matches!(self, Lock::ReadShared | Lock::Busy | Lock::Keep(_))
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lock::Writer => f.write_str("the writer lock"),
            Lock::ReadShared | Lock::ReadExclusive => f.write_str("the reader lock"),
            Lock::Drain => f.write_str("the drain lock"),
            Lock::Busy | Lock::Idle => f.write_str("the lock of busy ranks"),
            Lock::Keep(version) | Lock::Drop(version) => {
                write!(f, "the lock of checkpoint {version}")
            }
        }
    }
}

/// A lock held; dropping it releases the lock.
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockGuard {
    lock: Lock,
    held: Box<dyn Any + Send + Sync>,
}

impl LockGuard {
    /// Wraps whatever releases the lock when dropped. For backends.
    pub fn new(lock: Lock, held: impl Any + Send + Sync) -> Self {
        LockGuard { lock, held: Box::new(held) }
    }

    /// The lock that is held.
    pub fn lock(&self) -> Lock {
        self.lock
    }

    /// The file behind it, where there is one, for another process that is to hold the lock too.
    /// From then on it is released when the last copy of the descriptor is closed, and no longer with
    /// this guard.
    pub fn file(&self) -> Option<&std::fs::File> {
        self.held.downcast_ref::<LockFile>().map(LockFile::hand_on)
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard").field("lock", &self.lock).finish_non_exhaustive()
    }
}

/// Bytes that a writer takes over; dropping them gives their buffer back to its owner.
pub type OwnedBytes = Box<dyn AsRef<[u8]> + Send + Sync>;

/// How many owned bytes a writer may hold back before it writes them: whoever lends buffers from
/// a bounded pool needs more than that, or it would wait for itself.
pub const HELD_BYTES_MAX: usize = 2 << 20;

/// An object in the making.
///
/// # Contract
///
/// - Dropping it without [`seal`](ObjectWriter::seal) discards what was written.
/// - After any error every further call fails, and the space taken is given back.
/// - `append` may return before the bytes reach the medium; a later call reports their failure.
pub trait ObjectWriter: Send {
    /// Adds bytes at the end. Blocks while too much is on its way to the medium.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Adds bytes that the writer may keep until they are written, instead of copying them.
    /// Address, length and place in the object in multiples of 4096 spare the copy.
    fn append_owned(&mut self, bytes: OwnedBytes) -> Result<()> {
        self.append((*bytes).as_ref())
    }

    /// Hands to the medium what was appended, as far as the medium takes it in such a piece, and
    /// returns when it is there. That is not yet durable; sealing is.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Bytes appended so far.
    fn written(&self) -> u64;

    /// Waits until what is on its way has reached the medium. Bytes that wait for company may
    /// stay where they are.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// Counts the writes of this object, also while it is sealed; `None` where nobody counts.
    fn meter(&self) -> Option<Arc<WriteMeter>> {
        None
    }

    /// Makes the object durable, then visible; returns its length.
    fn seal(self: Box<Self>) -> Result<u64>;

    /// The same for a name that must be new; `Kind::Busy` if an object has it, which stays as it is.
    /// Only directories and memory promise that; elsewhere it is replaced, as by sealing.
    fn seal_new(self: Box<Self>) -> Result<u64> {
        self.seal()
    }
}

/// A sealed object, open for reading.
pub trait ObjectReader: Send + Sync {
    /// Its length.
    fn bytes(&self) -> u64;

    /// Fills `buf` from `offset` on, or up to the object's end; returns the bytes filled.
    /// Any alignment works; offset, length and address in multiples of 4096 are fastest, and
    /// requests of 4 MiB or more keep a device busy that small ones leave waiting.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// The same, asking again where an answer stops before the object's end: only what stays short
    /// has lost its end.
    fn read_full(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.read_at(offset + filled as u64, &mut buf[filled..])? {
                0 => break,
                more => filled += more,
            }
        }
        Ok(filled)
    }
}
