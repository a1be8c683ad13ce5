//! A store behind a link of a given rate: the same global storage on every machine.
//!
//! What is written and what is read share the link. Locks, listings and small answers are free.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use standfast_store::{Lock, LockGuard, ObjectMeta, ObjectReader, ObjectWriter, Result, Store};

/// Bytes that pass at once: a link hands out its time in such pieces.
const PIECE: usize = 64 << 10;
/// A link that was idle does not save its time up for longer than this.
const CREDIT: Duration = Duration::from_millis(5);

/// A link and when it is free again.
#[derive(Debug)]
struct Link {
    bytes_per_s: f64,
    free: Mutex<Instant>,
}

impl Link {
    /// Waits as long as these bytes take, behind those that came before.
    fn pass(&self, bytes: usize) {
        let until = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let from = (*free).max(now.checked_sub(CREDIT).unwrap_or(now));
            *free = from + Duration::from_secs_f64(bytes as f64 / self.bytes_per_s);
            *free
        };
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

/// A store that is reached through a link.
#[derive(Debug)]
pub(crate) struct Slow {
    inner: Arc<dyn Store>,
    link: Arc<Link>,
}

impl Slow {
    /// Puts a store behind a link of so many bytes a second.
    pub(crate) fn new(inner: Arc<dyn Store>, bytes_per_s: f64) -> Self {
        let link = Arc::new(Link { bytes_per_s, free: Mutex::new(Instant::now()) });
        Self { inner, link }
    }
}

impl Store for Slow {
    fn describe(&self) -> String {
        format!("{} at {:.0} MB/s", self.inner.describe(), self.link.bytes_per_s / 1e6)
    }

    fn create(&self, name: &str, size_hint: Option<u64>) -> Result<Box<dyn ObjectWriter>> {
        let inner = self.inner.create(name, size_hint)?;
        Ok(Box::new(Writer { inner, link: Arc::clone(&self.link) }))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.link.pass(bytes.len());
        self.inner.put(name, bytes)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.link.pass(bytes.len());
        self.inner.put_new(name, bytes)
    }

    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>> {
        let inner = self.inner.open(name)?;
        Ok(Box::new(Reader { inner, link: Arc::clone(&self.link) }))
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn discard_unsealed(&self) -> Result<u64> {
        self.inner.discard_unsealed()
    }

    fn lock(&self, lock: Lock) -> Result<LockGuard> {
        self.inner.lock(lock)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.inner.free_bytes()
    }
}

struct Writer {
    inner: Box<dyn ObjectWriter>,
    link: Arc<Link>,
}

impl ObjectWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(PIECE) {
            self.link.pass(piece.len());
            self.inner.append(piece)?;
        }
        Ok(())
    }

    fn written(&self) -> u64 {
        self.inner.written()
    }

    fn settle(&mut self) -> Result<()> {
        self.inner.settle()
    }

    fn seal(self: Box<Self>) -> Result<u64> {
        self.inner.seal()
    }
}

struct Reader {
    inner: Box<dyn ObjectReader>,
    link: Arc<Link>,
}

impl ObjectReader for Reader {
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let filled = self.inner.read_at(offset, buf)?;
        self.link.pass(filled);
        Ok(filled)
    }
}
