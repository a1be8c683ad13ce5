//! Blocks' buffers: used again, for new memory costs more than the arithmetic, and counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The buffers of one rank's star, shared by its threads. There are no more of them than were
/// ever held at once.
#[derive(Default)]
pub(super) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
    /// Bytes of all of them, and the most there were.
    now: AtomicU64,
    most: AtomicU64,
}

impl Buffers {
    /// An empty buffer with room for so many bytes.
    pub(super) fn take(&self, bytes: usize) -> Vec<u8> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut buffer = free.unwrap_or_default();
        let before = buffer.capacity();
        buffer.clear();
        buffer.reserve_exact(bytes);
        self.recount(before, buffer.capacity());
        buffer
    }

    /// Takes a buffer back.
    pub(super) fn give(&self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 {
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        }
    }

    /// A buffer has become another one, with room for so many bytes.
    pub(super) fn recount(&self, before: usize, after: usize) {
        let added = (after as u64).wrapping_sub(before as u64);
        let now = self.now.fetch_add(added, Ordering::Relaxed).wrapping_add(added);
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    pub(super) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
