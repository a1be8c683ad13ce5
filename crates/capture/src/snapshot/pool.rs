//! The pool: memory for copies, allocated once and touched before the first snapshot needs it.

use std::sync::Arc;

use standfast_sys::AlignedBuf;

/// Fixed memory that is written at places nobody else uses.
#[derive(Clone)]
pub(super) struct Pool(Arc<Arena>);

struct Arena {
    base: *mut u8,
    bytes: usize,
    /// Keeps the memory; only ever touched through `base`.
    _memory: AlignedBuf,
}

// SAFETY: `base` points into `_memory`; who writes and reads which place is kept apart by the
// users of the pool: the plan of copies before a snapshot, the table of granules after.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Pool {
    pub(super) fn new(bytes: usize) -> Self {
        let mut memory = AlignedBuf::with_len(bytes.next_multiple_of(super::GRANULE));
        // Touched now: a program that is stopped should not wait for the system to find memory.
        memory.fill(0);
        let (base, bytes) = (memory.as_mut_ptr(), memory.len());
        Self(Arc::new(Arena { base, bytes, _memory: memory }))
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Address of a place.
    pub(super) fn at(&self, place: usize) -> *mut u8 {
        assert!(place <= self.0.bytes, "the place is in the pool");
        // SAFETY: inside of the arena, or its end.
        unsafe { self.0.base.add(place) }
    }

    /// Reads what was copied to a place.
    pub(super) fn read(&self, place: usize, out: &mut [u8]) {
        assert!(place + out.len() <= self.0.bytes, "the place is in the pool");
        // SAFETY: inside of the arena; whoever copied there is done, and nobody else writes there.
        unsafe { std::ptr::copy_nonoverlapping(self.at(place), out.as_mut_ptr(), out.len()) };
    }
}
