//! Counting the writes of big data, for whoever wants to know how large they are.
//!
//! Data: every write of an I/O thread -> two counters of this process. Small whole objects
//! (images, manifests) are not counted: each of them is one write by its nature.

use std::sync::atomic::{AtomicU64, Ordering};

static WRITES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Writes of segment data by this process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// How many.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The writes so far.
pub fn written() -> Written {
    Written { writes: WRITES.load(Ordering::Relaxed), bytes: BYTES.load(Ordering::Relaxed) }
}

pub(crate) fn wrote(bytes: u64) {
    WRITES.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes, Ordering::Relaxed);
}
