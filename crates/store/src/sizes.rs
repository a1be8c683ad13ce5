//! How long an object's writes are: whole chunks while the medium has work, shorter ones while it
//! waits.
//!
//! Why shorter ones: a medium that waits for a chunk to be full loses that time. Whoever compresses
//! takes several milliseconds to fill one, at the start of every checkpoint, again at its end, and
//! whenever compressing is the slower of both. Why not ever shorter: they grow with the object, so
//! that its writes stay few and the last of them takes a small share of all.
//!
//! Invariants:
//! - Every size is a multiple of [`ALIGN`] where the whole chunk is, and at most the whole chunk.

use crate::aligned::ALIGN;

/// The first write is so much shorter than a whole chunk.
const FIRST_PART: usize = 8;
/// A write that does not fill its chunk has so much of what was written before it.
const PART: u64 = 32;

/// The sizes of one object's writes.
#[derive(Clone, Copy, Debug)]
pub struct WriteSizes {
    whole: usize,
}

impl WriteSizes {
    /// For chunks of so many bytes.
    pub fn new(whole: usize) -> Self {
        Self { whole }
    }

    /// How long the next write is to be, after so many bytes, on a medium that has nothing to do
    /// or still has.
    pub fn next(&self, written: u64, is_idle: bool) -> usize {
        if !is_idle {
            return self.whole;
        }
        let first = (self.whole / FIRST_PART).next_multiple_of(ALIGN);
        let part = usize::try_from(written / PART).unwrap_or(usize::MAX);
        (part - part % ALIGN).max(first).min(self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_to_an_idle_medium_grow_with_the_object() {
        let sizes = WriteSizes::new(2 << 20);
        let (mut written, mut seen) = (0, Vec::new());
        while written < 80 << 20 {
            let next = sizes.next(written, true);
            seen.push(next);
            written += next as u64;
        }
        assert_eq!(seen[0], 256 << 10);
        assert!(seen.is_sorted() && seen.len() < 120, "{}", seen.len());
        assert_eq!(seen.last(), Some(&(2 << 20)));
    }

    #[test]
    fn every_size_is_aligned_and_at_most_a_chunk() {
        for whole in [ALIGN, 3 * ALIGN, 9 * ALIGN, 64 << 20] {
            let sizes = WriteSizes::new(whole);
            for written in [0, 1, 5000, 300_000, 1 << 30, u64::MAX] {
                assert_eq!(sizes.next(written, false), whole);
                let next = sizes.next(written, true);
                assert!(next <= whole && next >= ALIGN && next.is_multiple_of(ALIGN), "{whole}");
            }
            assert_eq!(sizes.next(u64::MAX, true), whole);
        }
    }
}
