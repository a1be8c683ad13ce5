//! A store in memory, for tests and examples. Nothing outlives the last handle.
//!
//! Readers share the bytes of the object they opened, so replacing or removing it never
//! disturbs them. Clones are handles on the same store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::contract::{Lock, LockGuard, ObjectMeta, ObjectReader, ObjectWriter, Store};
use crate::error::{Error, Object, Result};
use crate::holder;
use crate::name::{check_name, check_prefix};

const STORE: &str = "memory:";

/// Objects in a map.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Arc<[u8]>>,
    locks: BTreeMap<String, Holders>,
}

/// Who holds the locks of a place.
#[derive(Debug, Default)]
struct Holders {
    shared: usize,
    exclusive: bool,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// No operation leaves the map half-changed, so a panic elsewhere cannot have broken it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(name: &str) -> Error {
        Error::Missing(Object::new(name, STORE))
    }
}

impl Store for MemoryStore {
    fn describe(&self) -> String {
        STORE.to_owned()
    }

    fn create(&self, name: &str, _size_hint: Option<u64>) -> Result<Box<dyn ObjectWriter>> {
        check_name(name, STORE)?;
        let (store, name) = (self.clone(), name.to_owned());
        Ok(Box::new(MemoryWriter { store, name, bytes: Vec::new() }))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_name(name, STORE)?;
        self.state().objects.insert(name.to_owned(), bytes.into());
        Ok(())
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_name(name, STORE)?;
        let mut state = self.state();
        if state.objects.contains_key(name) {
            return Err(Error::Exists(Object::new(name, STORE)));
        }
        state.objects.insert(name.to_owned(), bytes.into());
        Ok(())
    }

    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>> {
        check_name(name, STORE)?;
        let bytes = self.state().objects.get(name).cloned();
        bytes.map(|bytes| Box::new(MemoryReader(bytes)) as _).ok_or_else(|| Self::missing(name))
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        check_prefix(prefix, STORE)?;
        let below = |name: &str| {
            prefix.is_empty() || name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
        };
        let state = self.state();
        let found = state.objects.iter().filter(|(name, _)| below(name));
        Ok(found
            .map(|(name, bytes)| ObjectMeta { name: name.clone(), bytes: bytes.len() as u64 })
            .collect())
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name, STORE)?;
        self.state().objects.remove(name).map(drop).ok_or_else(|| Self::missing(name))
    }

    fn discard_unsealed(&self) -> Result<u64> {
        Ok(0)
    }

    fn lock(&self, lock: Lock) -> Result<LockGuard> {
        let mut state = self.state();
        let holders = state.locks.entry(lock.place()).or_default();
        if holders.exclusive || (!lock.is_shared() && holders.shared > 0) {
            let holder = holder::this_process();
            return Err(Error::Locked { lock, store: STORE.to_owned(), holder });
        }
        match lock.is_shared() {
            true => holders.shared += 1,
            false => holders.exclusive = true,
        }
        Ok(LockGuard::new(lock, Held { store: self.clone(), lock }))
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

struct Held {
    store: MemoryStore,
    lock: Lock,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.store.state();
        let Some(holders) = state.locks.get_mut(&self.lock.place()) else { return };
        match self.lock.is_shared() {
            true => holders.shared -= 1,
            false => holders.exclusive = false,
        }
        if holders.shared == 0 && !holders.exclusive {
            state.locks.remove(&self.lock.place());
        }
    }
}

struct MemoryWriter {
    store: MemoryStore,
    name: String,
    bytes: Vec<u8>,
}

impl ObjectWriter for MemoryWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn written(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn seal(self: Box<Self>) -> Result<u64> {
        let bytes = self.written();
        self.store.state().objects.insert(self.name, self.bytes.into());
        Ok(bytes)
    }

    fn seal_new(self: Box<Self>) -> Result<u64> {
        self.store.put_new(&self.name, &self.bytes)?;
        Ok(self.written())
    }
}

/// An object whose bytes are all here.
pub(crate) struct MemoryReader(pub(crate) Arc<[u8]>);

impl ObjectReader for MemoryReader {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let count = buf.len().min(self.0.len() - start);
        buf[..count].copy_from_slice(&self.0[start..start + count]);
        Ok(count)
    }
}
