//! Reading an encrypted object: the tail first, then the chunks around what is asked for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_format::Kind;
use standfast_format::encrypted::{
    CHUNK_BYTES, CHUNK_PLAIN_BYTES, EncryptedTail, TAIL_BYTES, plain_bytes,
};
use standfast_sys::AlignedBuf;

use super::key::{Key, ObjectKey};
use crate::contract::ObjectReader;
use crate::error::{Error, Object, Result};
use crate::memory::MemoryReader;

/// Bytes that are read and decrypted at a time.
const WINDOW_BYTES: usize = 64 * CHUNK_BYTES;
/// Windows that wait for their next use: fresh memory costs as much as decrypting.
const WINDOWS_MAX: usize = 4;
/// Objects up to this size are read whole when they are opened: one request instead of two.
const WHOLE_BYTES_MAX: u64 = CHUNK_BYTES as u64;

/// Buffers for all readers of a store.
#[derive(Debug, Default)]
pub(super) struct Windows(Mutex<Vec<AlignedBuf>>);

impl Windows {
    fn take(&self) -> AlignedBuf {
        self.idle().pop().unwrap_or_else(|| AlignedBuf::with_len(WINDOW_BYTES))
    }

    fn give_back(&self, window: AlignedBuf) {
        let mut idle = self.idle();
        if idle.len() < WINDOWS_MAX {
            idle.push(window);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<AlignedBuf>> {
        // Buffers have no state that a panic could have broken.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct EncryptedReader {
    below: Box<dyn ObjectReader>,
    key: ObjectKey,
    bytes: u64,
    windows: Arc<Windows>,
    object: Object,
}

/// Opens an object and checks its tail.
pub(super) fn open(
    mut below: Box<dyn ObjectReader>,
    key: &Key,
    windows: &Arc<Windows>,
    name: &str,
    store: String,
) -> Result<Box<dyn ObjectReader>> {
    let stored = below.bytes();
    if stored <= WHOLE_BYTES_MAX {
        let mut all = vec![0; stored as usize];
        let found = below.read_at(0, &mut all)?;
        all.truncate(found);
        below = Box::new(MemoryReader(all.into()));
    }
    let mut tail = [0; TAIL_BYTES];
    let found = below.read_at(stored.saturating_sub(TAIL_BYTES as u64), &mut tail)?;
    let object = Object::new(name, store);
    let tail = match EncryptedTail::decode(&tail[..found]) {
        Ok(tail) => tail,
        Err(why) if why.kind() == Kind::Unsupported => {
            let (kind, source) = (why.kind(), Box::new(why));
            let Object { name: object, store } = object;
            return Err(Error::Backend { op: "decrypt", object, store, kind, source });
        }
        Err(_) => return Err(Error::NotEncrypted(object)),
    };
    let (found, own) = (tail.fingerprint, key.fingerprint());
    if found != own {
        return Err(Error::OtherKey { object, found, own });
    }
    let key = key.of_object(&tail.salt, name);
    match plain_bytes(stored).filter(|bytes| key.proves(&tail, *bytes)) {
        Some(bytes) => {
            let windows = Arc::clone(windows);
            Ok(Box::new(EncryptedReader { below, key, bytes, windows, object }))
        }
        None => Err(Error::Altered { object, at: 0 }),
    }
}

impl EncryptedReader {
    /// Decrypts some chunks; hands each over with its place in the object.
    fn chunks(
        &self,
        first: u64,
        window: &mut [u8],
        mut take: impl FnMut(u64, &[u8]),
    ) -> Result<()> {
        let found = self.below.read_at(first * CHUNK_BYTES as u64, window)?;
        for (number, chunk) in (first..).zip(window[..found].chunks_mut(CHUNK_BYTES)) {
            let at = number * CHUNK_PLAIN_BYTES as u64;
            let plain = self.key.decrypt(number, chunk).ok_or_else(|| self.altered(at))?;
            take(at, plain);
        }
        match found < window.len() {
            true => Err(self.altered(first * CHUNK_PLAIN_BYTES as u64)),
            false => Ok(()),
        }
    }

    fn altered(&self, at: u64) -> Error {
        Error::Altered { object: self.object.clone(), at }
    }

    /// The stored bytes of some chunks.
    fn stored(&self, first: u64, count: u64) -> usize {
        let end = self.below.bytes() - TAIL_BYTES as u64;
        (count * CHUNK_BYTES as u64).min(end - first * CHUNK_BYTES as u64) as usize
    }
}

impl ObjectReader for EncryptedReader {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let end = self.bytes.min(offset.saturating_add(buf.len() as u64));
        if offset >= end {
            return Ok(0);
        }
        let mut window = self.windows.take();
        let (mut number, last) =
            (offset / CHUNK_PLAIN_BYTES as u64, (end - 1) / CHUNK_PLAIN_BYTES as u64);
        while number <= last {
            let count = (last - number + 1).min((WINDOW_BYTES / CHUNK_BYTES) as u64);
            let part = &mut window[..self.stored(number, count)];
            self.chunks(number, part, |at, plain| {
                let (from, to) = (at.max(offset), (at + plain.len() as u64).min(end));
                let wanted = &plain[(from - at) as usize..(to - at) as usize];
                buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(wanted);
            })?;
            number += count;
        }
        self.windows.give_back(window);
        Ok((end - offset) as usize)
    }
}
