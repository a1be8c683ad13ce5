//! A store whose objects are encrypted: a wrapper around any other.
//!
//! Data: plain bytes from the callers -> chunks of AES-256-GCM and a tail
//! ([`standfast_format::encrypted`]) -> the store below; reads come back the same way.
//!
//! Every object has a key of its own, derived from the store's key, a random salt and the object's
//! name. A chunk's number is its nonce, and the tail proves the length. So bytes that were changed, cut
//! off, or moved to another place, object or name do not decrypt. What cannot be noticed here: an older
//! object of the same name, and objects that are gone. Manifests name what belongs to them by digest.
//!
//! Names, lengths and locks are as the store below shows them.
//!
//! Invariants:
//! - No plain byte of an object reaches the store below.
//! - No byte reaches a reader before its chunk's tag was checked.
//! - A salt is never used for two objects, so no key meets a nonce twice.

mod key;
mod reader;
mod source;
mod writer;

use std::sync::Arc;

use standfast_format::encrypted::{self, EncryptedTail};
use standfast_sys::identity;

use crate::contract::{Lock, LockGuard, ObjectMeta, ObjectReader, ObjectWriter, Store};
use crate::error::{Error, Result};
use crate::name::check_name;
pub use key::Key;
use key::ObjectKey;
pub use source::KeySource;
use writer::EncryptedWriter;

/// A store below, and the key of its objects.
#[derive(Debug)]
pub struct EncryptedStore {
    below: Arc<dyn Store>,
    key: Key,
    windows: Arc<reader::Windows>,
}

impl EncryptedStore {
    /// Encrypts what goes into a store and decrypts what comes out of it.
    pub fn new(below: Arc<dyn Store>, key: Key) -> Self {
        Self { below, key, windows: Arc::default() }
    }

    /// Encrypts a store if there is a key, which is read now.
    pub fn wrap(below: Arc<dyn Store>, key: Option<&KeySource>) -> Result<Arc<dyn Store>> {
        Ok(match key {
            Some(key) => Arc::new(Self::new(below, key.key()?.clone())),
            None => below,
        })
    }

    /// The key of a new object, and its tail, still without a tag.
    fn new_object(&self, name: &str) -> Result<(ObjectKey, EncryptedTail)> {
        check_name(name, &self.describe())?;
        let salt = identity::bytes().map_err(|source| Error::Os {
            op: "make a salt for",
            object: name.to_owned(),
            store: self.describe(),
            source,
        })?;
        let tail =
            EncryptedTail { fingerprint: self.key.fingerprint(), salt, tag: Default::default() };
        Ok((self.key.of_object(&salt, name), tail))
    }

    /// A whole small object.
    fn encrypt(&self, name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
        let (key, tail) = self.new_object(name)?;
        let mut all = Vec::with_capacity(encrypted::encrypted_bytes(bytes.len() as u64) as usize);
        for (number, chunk) in bytes.chunks(encrypted::CHUNK_PLAIN_BYTES).enumerate() {
            let start = all.len();
            all.extend_from_slice(chunk);
            let tag = key.encrypt(number as u64, &mut all[start..]);
            all.extend_from_slice(&tag);
        }
        all.extend_from_slice(&key.close(tail, bytes.len() as u64).encode());
        Ok(all)
    }
}

impl Store for EncryptedStore {
    fn describe(&self) -> String {
        self.below.describe()
    }

    fn create(&self, name: &str, size_hint: Option<u64>) -> Result<Box<dyn ObjectWriter>> {
        let (key, tail) = self.new_object(name)?;
        let below = self.below.create(name, size_hint.map(encrypted::encrypted_bytes))?;
        Ok(Box::new(EncryptedWriter::new(below, key, tail)))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.below.put(name, &self.encrypt(name, bytes)?)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.below.put_new(name, &self.encrypt(name, bytes)?)
    }

    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>> {
        let below = self.below.open(name)?;
        reader::open(below, &self.key, &self.windows, name, self.below.describe())
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let mut objects = self.below.list(prefix)?;
        for object in &mut objects {
            // One of a length that no encrypted object has is found damaged when it is opened.
            object.bytes = encrypted::plain_bytes(object.bytes).unwrap_or(0);
        }
        Ok(objects)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.below.remove(name)
    }

    fn discard_unsealed(&self) -> Result<u64> {
        self.below.discard_unsealed()
    }

    fn lock(&self, lock: Lock) -> Result<LockGuard> {
        self.below.lock(lock)
    }

    fn prepare(&self) {
        self.below.prepare();
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.below.free_bytes()
    }
}

#[cfg(test)]
mod tests;
