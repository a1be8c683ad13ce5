//! How long an object's writes are: short ones first, then whole chunks, and shorter ones again
//! while a medium waits for somebody slow.
//!
//! Why short ones first: until the first write is under way the medium has nothing to do. Six
//! writes later they are as long as the medium likes them. Why shorter ones again: whoever compresses
//! takes several milliseconds to fill a chunk; a medium that waits for it, or soon will, loses that
//! time, above all at the end. They grow with the object, so that its writes stay few and the last of
//! them takes a small share of all. Whoever fills a chunk in no time keeps to whole ones: every write
//! costs processor time.
//!
//! Invariants:
//! - Every size is a multiple of [`ALIGN`] where the whole chunk is, and at most the whole chunk.

use std::time::Duration;

use standfast_sys::ALIGN;

/// The first write is so much shorter than a whole chunk.
const FIRST_PART: usize = 32;
/// A write for which a medium waits has so much of what was written before it.
const PART: u64 = 64;
/// A chunk that is not full after this time is filled by somebody slow: for a medium that has
/// nothing to do, and for one that has a single write to do.
const SLOW: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(2)];

/// The sizes of one object's writes.
#[derive(Clone, Copy, Debug)]
pub struct WriteSizes {
    first: usize,
    now: usize,
    whole: usize,
}

impl WriteSizes {
    /// For chunks of so many bytes.
    pub fn new(whole: usize) -> Self {
        let first = (whole / FIRST_PART).next_multiple_of(ALIGN).min(whole);
        Self { first, now: first, whole }
    }

    /// How long the next write is to be.
    pub fn now(&self) -> usize {
        self.now
    }

    /// The same after so many bytes, of which the last ones have waited so long, for a medium that
    /// has so many writes to do.
    pub fn after(
        &self,
        written: u64,
        waited: Duration,
        under_way: impl FnOnce() -> usize,
    ) -> usize {
        if waited < SLOW[0] || SLOW.get(under_way()).is_none_or(|slow| waited < *slow) {
            return self.now;
        }
        let part = usize::try_from(written / PART).unwrap_or(usize::MAX);
        (part - part % ALIGN).clamp(self.first, self.now)
    }

    /// It was handed over: the one after it is longer.
    pub fn grow(&mut self) {
        self.now = (2 * self.now).min(self.whole);
    }
}

#[cfg(test)]
mod tests;
