//! A unit: the memory of one block, lent by a pool.
//!
//! Data: a pool lends units -> a batch fills them with pages -> encoder and store read them ->
//! dropped, they go back to their pool.
//!
//! Why one type: the pool of this process, a rank's leases of the agent's pool and the agent's end of
//! them differ only in what happens when a unit comes back.
//!
//! Invariant: a unit's bytes belong to its owner alone.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// A pool, as far as units need it.
pub trait Lender: Send + Sync {
    /// A unit is no longer needed.
    fn take_back(&self, number: u32);
}

/// Memory for one block. Its first contents are left-overs.
pub struct Unit {
    start: NonNull<u8>,
    bytes: usize,
    number: u32,
    /// `None` once it was handed on.
    lender: Option<Arc<dyn Lender>>,
}

// SAFETY: the memory belongs to this owner alone, wherever that runs.
unsafe impl Send for Unit {}
// SAFETY: a shared unit is only read.
unsafe impl Sync for Unit {}

impl Unit {
    /// The unit of this number.
    ///
    /// # Safety
    /// `bytes` bytes from `start` on are initialised and mapped as long as the lender lives, and
    /// nobody else uses them until the unit is given back or handed on.
    pub unsafe fn new(
        start: NonNull<u8>,
        bytes: usize,
        number: u32,
        lender: Arc<dyn Lender>,
    ) -> Self {
        Self { start, bytes, number, lender: Some(lender) }
    }

    /// Its number, for whoever takes care of it from now on: it is not given back here.
    pub fn hand_on(mut self) -> u32 {
        self.lender = None;
        self.number
    }
}

impl Deref for Unit {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: who made the unit vouches for the memory.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Unit {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl AsRef<[u8]> for Unit {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        if let Some(lender) = self.lender.take() {
            lender.take_back(self.number);
        }
    }
}
