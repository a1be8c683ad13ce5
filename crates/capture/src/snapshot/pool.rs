//! The pool: memory for copies, made ready beside the program before a snapshot needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use standfast_sys::AlignedBuf;

/// What is left of a slow piece after the next one. Why the slowest counts: virtual machines give some
/// memory at once and some ten times as slowly, and who copies into it finds out too late.
const FADE: f64 = 0.95;

/// Fixed memory that is written at places nobody else uses.
#[derive(Clone)]
pub(super) struct Pool(Arc<Arena>);

struct Arena {
    base: *mut u8,
    bytes: usize,
    /// Bytes from the front that have memory behind them.
    ready: AtomicUsize,
    /// Nanoseconds a byte took to be made ready, in the slowest of the last pieces, as bits; 0: unknown.
    warm_ns: AtomicU64,
    /// Keeps the memory; only ever touched through `base`.
    memory: AlignedBuf,
}

// SAFETY: `base` points into `memory`; who writes and reads which place is kept apart by the
// users of the pool: the plan of copies before a snapshot, the table of granules after.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Pool {
    /// `None` where the system has no room for it.
    pub(super) fn new(bytes: usize) -> Option<Self> {
        let mut memory = AlignedBuf::try_with_len(bytes)?;
        let (base, bytes) = (memory.as_mut_ptr(), memory.len());
        let (ready, warm_ns) = (AtomicUsize::new(0), AtomicU64::new(0));
        Some(Self(Arc::new(Arena { base, bytes, ready, warm_ns, memory })))
    }

    /// Lets memory be there, unless it is told to stop: a program that is stopped should not wait
    /// for the system to find it.
    pub(super) fn warm(&self, stop: &AtomicBool) {
        let mut since = Instant::now();
        self.0.memory.warm(self.ready_bytes()..self.0.bytes, stop, |piece| {
            let passed = std::mem::replace(&mut since, Instant::now()).elapsed();
            let ns = passed.as_nanos() as f64 / piece.len() as f64;
            let slowest = ns.max(self.warm_ns().unwrap_or(0.0) * FADE);
            self.0.warm_ns.store(slowest.to_bits(), Ordering::Relaxed);
            self.used(piece.end);
        });
    }

    /// Copies lie before this place: there is memory behind it from now on.
    pub(super) fn used(&self, end: usize) {
        self.0.ready.fetch_max(end, Ordering::Relaxed);
    }

    /// Bytes from the front that have memory behind them.
    pub(super) fn ready_bytes(&self) -> usize {
        self.0.ready.load(Ordering::Relaxed)
    }

    /// Nanoseconds that the system takes to put memory behind a byte; `None`: not measured yet.
    pub(super) fn warm_ns(&self) -> Option<f64> {
        let ns = f64::from_bits(self.0.warm_ns.load(Ordering::Relaxed));
        (ns > 0.0).then_some(ns)
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

    /// What was copied to a place.
    ///
    /// # Safety
    /// Whoever copied there is done, and nobody writes there while the slice lives.
    pub(super) unsafe fn slice(&self, place: usize, bytes: usize) -> &[u8] {
        assert!(place + bytes <= self.0.bytes, "the place is in the pool");
        // SAFETY: inside of the arena, which was zeroed; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.at(place), bytes) }
    }

    /// Reads what was copied to a place.
    pub(super) fn read(&self, place: usize, out: &mut [u8]) {
        // SAFETY: whoever copied there is done, and nobody else writes there before it is given up.
        out.copy_from_slice(unsafe { self.slice(place, out.len()) });
    }
}
