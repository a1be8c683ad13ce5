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
//! Why it can be warmed up: the buffers that a checkpoint takes first are otherwise made while the
//! program waits for it, and the disk too.
//!
//! Invariants:
//! - A buffer number is either in the free stack or owned by exactly one [`Unit`].

use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use standfast_sys::AlignedBuf;

use crate::unit::{Lender, Unit};

/// A taker who found the pool empty waits until one buffer of so many is free: woken for every
/// single one, it would change places with the writers at every block.
const REFILL_SHARE: usize = 16;

/// Buffers that nobody has.
struct Free {
    stack: Vec<u32>,
    /// Takers who found none. Nobody else needs to be woken.
    waiting: usize,
}

struct Arena {
    base: NonNull<u8>,
    buffers: usize,
    buffer_bytes: usize,
    /// So many buffers must be free before a taker who found none goes on.
    refill: usize,
    free: Mutex<Free>,
    freed: Condvar,
    /// Keeps the memory; only ever touched through `base`.
    memory: AlignedBuf,
}

impl Arena {
    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lender for Arena {
    fn take_back(&self, number: u32) {
        let mut free = self.free();
        free.stack.push(number);
        let is_awaited = free.waiting > 0 && free.stack.len() >= self.refill;
        drop(free);
        if is_awaited {
            self.freed.notify_one();
        }
    }
}

// SAFETY: `base` points into `memory`, which lives as long; buffers never overlap and each is
// handed to one owner at a time, so access from several threads is disjoint.
unsafe impl Send for Arena {}
// SAFETY: as above; the free stack is behind a lock.
unsafe impl Sync for Arena {}

/// A fixed set of buffers.
#[derive(Clone)]
pub(crate) struct Pool {
    arena: Arc<Arena>,
}

impl Pool {
    /// So many buffers of so many bytes each.
    pub(crate) fn new(buffers: usize, buffer_bytes: usize) -> Self {
        assert!(buffers > 0 && buffer_bytes > 0, "a pool holds something");
        let mut memory = AlignedBuf::with_len(buffers * buffer_bytes);
        let base = NonNull::new(memory.as_mut_ptr()).expect("memory has an address");
        let free = Mutex::new(Free { stack: (0..buffers as u32).rev().collect(), waiting: 0 });
        let refill = (buffers / REFILL_SHARE).max(1);
        let freed = Condvar::new();
        let arena = Arena { base, buffers, buffer_bytes, refill, free, freed, memory };
        Self { arena: Arc::new(arena) }
    }

    /// A free buffer, if there is one. Its contents are left-overs.
    pub(crate) fn try_take(&self) -> Option<Unit> {
        let number = self.arena.free().stack.pop()?;
        Some(self.unit(number))
    }

    /// A free buffer; waits until there is one. Its contents are left-overs.
    pub(crate) fn take(&self) -> Unit {
        let mut free = self.arena.free();
        if free.stack.is_empty() {
            free.waiting += 1;
            let few = |free: &mut Free| free.stack.len() < self.arena.refill;
            let waited = self.arena.freed.wait_while(free, few);
            free = waited.unwrap_or_else(PoisonError::into_inner);
            free.waiting -= 1;
        }
        let number = free.stack.pop().expect("somebody waited for it");
        drop(free);
        self.unit(number)
    }

    /// The buffer of this number, which was taken off the stack.
    fn unit(&self, number: u32) -> Unit {
        let Arena { base, buffer_bytes, .. } = *self.arena;
        let lender = Arc::clone(&self.arena) as Arc<dyn Lender>;
        // SAFETY: the number is below the number of buffers, so this stays inside the arena, which
        // the lender keeps and which was zeroed when it was mapped. Whoever takes a number off the
        // stack has it alone until it comes back.
        unsafe {
            let start = base.add(number as usize * buffer_bytes);
            Unit::new(start, buffer_bytes, number, lender)
        }
    }

    /// Lets memory be there for the buffers that are taken first, so many bytes of them, unless it
    /// is told to stop.
    pub(crate) fn warm(&self, bytes: usize, stop: &AtomicBool) {
        self.arena.memory.warm(0..bytes, stop, |_| ());
    }

    /// How many buffers nobody has.
    pub(crate) fn empty(&self) -> usize {
        self.arena.free().stack.len()
    }

    /// How many buffers there are.
    pub(crate) fn buffers(&self) -> usize {
        self.arena.buffers
    }
}

#[cfg(test)]
mod tests;
