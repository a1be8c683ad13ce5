//! Several stores of one job as one, for those who only look: each node's holds a part.
//!
//! Invariants:
//! - Nothing is ever written or removed.
//! - An object that several stores have is read from the first of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use standfast_format::Kind;

use crate::contract::{Lock, LockGuard, ObjectMeta, ObjectReader, ObjectWriter, Store};
use crate::error::{Error, Object, Result};

/// Some stores, looked at together.
#[derive(Debug)]
pub struct UnionStore {
    parts: Vec<Arc<dyn Store>>,
}

impl UnionStore {
    /// Looks at these stores, of which there is at least one.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(parts: Vec<Arc<dyn Store>>) -> Self {
        assert!(!parts.is_empty(), "there is a store to look at");
        Self { parts }
    }

    fn refuse<T>(&self, op: &'static str, object: &str) -> Result<T> {
        Err(Error::Backend {
            op,
            object: object.to_owned(),
            store: self.describe(),
            kind: Kind::Unsupported,
            source: "several stores together are only read; name one of them".into(),
        })
    }
}

impl Store for UnionStore {
    fn describe(&self) -> String {
        let all: Vec<String> = self.parts.iter().map(|part| part.describe()).collect();
        all.join(" and ")
    }

    fn create(&self, name: &str, _: Option<u64>) -> Result<Box<dyn ObjectWriter>> {
        self.refuse("create", name)
    }

    fn put(&self, name: &str, _: &[u8]) -> Result<()> {
        self.refuse("write", name)
    }

    fn put_new(&self, name: &str, _: &[u8]) -> Result<()> {
        self.refuse("write", name)
    }

    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>> {
        let mut missing = None;
        for part in &self.parts {
            match part.open(name) {
                Err(error) if error.kind() == Kind::Missing => missing = Some(error),
                opened => return opened,
            }
        }
        Err(missing.unwrap_or_else(|| Error::Missing(Object::new(name, self.describe()))))
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let mut all = BTreeMap::new();
        for part in &self.parts {
            for object in part.list(prefix)? {
                all.entry(object.name).or_insert(object.bytes);
            }
        }
        Ok(all.into_iter().map(|(name, bytes)| ObjectMeta { name, bytes }).collect())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.refuse("remove", name)
    }

    fn discard_unsealed(&self) -> Result<u64> {
        self.refuse("clean", ".")
    }

    fn lock(&self, lock: Lock) -> Result<LockGuard> {
        if !lock.is_shared() {
            return self.refuse("lock", ".");
        }
        let held: Vec<LockGuard> =
            self.parts.iter().map(|part| part.lock(lock)).collect::<Result<_>>()?;
        Ok(LockGuard::new(lock, held))
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
