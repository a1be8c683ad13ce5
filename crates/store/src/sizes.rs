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
mod tests {
    use super::*;

    #[test]
    fn writes_grow_to_whole_chunks_and_stay_aligned() {
        let mut sizes = WriteSizes::new(2 << 20);
        let mut seen = Vec::new();
        for _ in 0..7 {
            seen.push(sizes.now() >> 10);
            sizes.grow();
        }
        assert_eq!(seen, [64, 128, 256, 512, 1024, 2048, 2048]);
        for whole in [ALIGN, 3 * ALIGN, 9 * ALIGN, 64 << 20] {
            let mut sizes = WriteSizes::new(whole);
            for _ in 0..10 {
                assert!(sizes.now() <= whole && sizes.now().is_multiple_of(ALIGN), "{whole}");
                for written in [0, 5000, 300_000, 1 << 30, u64::MAX] {
                    let short = sizes.after(written, SLOW[0], || 0);
                    assert!(short <= sizes.now() && short.is_multiple_of(ALIGN), "{whole}");
                    assert_eq!(sizes.after(written, SLOW[1], || 1), short);
                    assert_eq!(sizes.after(written, SLOW[0], || 1), sizes.now());
                    assert_eq!(sizes.after(written, SLOW[1], || 2), sizes.now());
                    assert_eq!(sizes.after(written, Duration::ZERO, || 0), sizes.now());
                }
                sizes.grow();
            }
            assert_eq!(sizes.now(), whole);
            assert_eq!(sizes.after(u64::MAX, SLOW[1], || 1), whole);
            assert!(sizes.after(0, SLOW[1], || 1) <= whole.div_ceil(4).max(ALIGN));
        }
    }
}
