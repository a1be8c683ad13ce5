//! The pool: a fixed number of equal buffers that captured pages are copied into.
//!
//! Data: the capturing thread takes a buffer, fills it, hands it to an encoder; dropping the
//! buffer gives it back. When all are taken, [`Pool::take`] waits: that is the back-pressure which
//! keeps memory within the configuration while a slow disk drains a large checkpoint.
//!
//! Why one arena: it is mapped once with huge pages, and reused for the life of the job; touching
//! fresh memory costs more than copying into it. Why the buffer given back last is taken first:
//! it is still in the caches, and a fast disk never lets the rest of the pool be touched.
//!
//! Invariants:
//! - A buffer number is either in the free stack or owned by exactly one [`PoolBuf`].

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use standfast_store::AlignedBuf;

/// A taker who found the pool empty waits until one buffer of so many is free: woken for every
/// single one, it would change places with the writers at every block.
const REFILL_SHARE: usize = 16;

struct Arena {
    base: *mut u8,
    buffers: usize,
    buffer_bytes: usize,
    /// So many buffers must be free before a taker who found none goes on.
    refill: usize,
    free: Mutex<Vec<usize>>,
    freed: Condvar,
    /// Keeps the memory; only ever touched through `base`.
    _memory: AlignedBuf,
}

impl Arena {
    fn free(&self) -> MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: `base` points into `_memory`, which lives as long; buffers never overlap and each is
// handed to one owner at a time, so access from several threads is disjoint.
unsafe impl Send for Arena {}
// SAFETY: as above; the free stack is behind a lock.
unsafe impl Sync for Arena {}

/// A fixed set of buffers.
#[derive(Clone)]
pub struct Pool {
    arena: Arc<Arena>,
}

impl Pool {
    /// So many buffers of so many bytes each.
    pub fn new(buffers: usize, buffer_bytes: usize) -> Self {
        assert!(buffers > 0 && buffer_bytes > 0, "a pool holds something");
        let mut memory = AlignedBuf::with_len(buffers * buffer_bytes);
        let base = memory.as_mut_ptr();
        let free = Mutex::new((0..buffers).rev().collect());
        let refill = (buffers / REFILL_SHARE).max(1);
        let freed = Condvar::new();
        let arena = Arena { base, buffers, buffer_bytes, refill, free, freed, _memory: memory };
        Self { arena: Arc::new(arena) }
    }

    /// A free buffer; waits until there is one. Its contents are left-overs.
    pub fn take(&self) -> PoolBuf {
        let mut free = self.arena.free();
        if free.is_empty() {
            let few = |free: &mut Vec<usize>| free.len() < self.arena.refill;
            let waited = self.arena.freed.wait_while(free, few);
            free = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let number = free.pop().expect("somebody waited for it");
        PoolBuf { arena: Arc::clone(&self.arena), number }
    }

    /// How many buffers nobody has.
    pub fn empty(&self) -> usize {
        self.arena.free().len()
    }

    /// How many buffers there are.
    pub fn buffers(&self) -> usize {
        self.arena.buffers
    }

    /// Bytes of one buffer.
    pub fn buffer_bytes(&self) -> usize {
        self.arena.buffer_bytes
    }
}

impl AsRef<[u8]> for PoolBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// One buffer of a pool.
pub struct PoolBuf {
    arena: Arc<Arena>,
    number: usize,
}

impl PoolBuf {
    fn start(&self) -> *mut u8 {
        // SAFETY: the number is below the number of buffers, so this stays inside the arena.
        unsafe { self.arena.base.add(self.number * self.arena.buffer_bytes) }
    }
}

impl Deref for PoolBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: this owner alone has the buffer; the memory was zeroed when it was mapped.
        unsafe { std::slice::from_raw_parts(self.start(), self.arena.buffer_bytes) }
    }
}

impl DerefMut for PoolBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.arena.buffer_bytes) }
    }
}

impl Drop for PoolBuf {
    fn drop(&mut self) {
        let mut free = self.arena.free();
        free.push(self.number);
        let enough = free.len() >= self.arena.refill;
        drop(free);
        if enough {
            self.arena.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn buffers_are_apart_and_come_back() {
        let pool = Pool::new(3, 4096);
        let mut all: Vec<PoolBuf> = (0..3).map(|_| pool.take()).collect();
        for (at, buffer) in all.iter_mut().enumerate() {
            buffer.fill(at as u8 + 1);
        }
        for (at, buffer) in all.iter().enumerate() {
            assert!(buffer.iter().all(|byte| *byte == at as u8 + 1));
        }
        assert!(pool.arena.free().is_empty());
        drop(all);
        assert_eq!(pool.arena.free().len(), 3);
    }

    #[test]
    fn an_empty_pool_makes_its_taker_wait() {
        let pool = Pool::new(1, 4096);
        let held = pool.take();
        let (done, seen) = std::sync::mpsc::channel();
        let other = pool.clone();
        let thread = std::thread::spawn(move || {
            drop(other.take());
            done.send(()).unwrap();
        });
        assert!(seen.recv_timeout(Duration::from_millis(50)).is_err(), "it must wait");
        drop(held);
        seen.recv_timeout(Duration::from_secs(20)).expect("it goes on when one is free");
        thread.join().unwrap();
    }
}
