//! How long an object's writes are: short ones first, then whole chunks.
//!
//! Why short ones first: until the first write is under way the medium has nothing to do. Whoever
//! compresses takes several milliseconds to fill a chunk, and that time would be added to every
//! checkpoint. Four writes later they are as long as the medium likes them.
//!
//! Invariants:
//! - Every size is a multiple of [`ALIGN`] where the whole chunk is, and at most the whole chunk.

use crate::aligned::ALIGN;

/// The first write is so much shorter than a whole chunk.
const FIRST_PART: usize = 8;

/// The sizes of one object's writes.
#[derive(Clone, Copy, Debug)]
pub struct WriteSizes {
    now: usize,
    whole: usize,
}

impl WriteSizes {
    /// For chunks of so many bytes.
    pub fn new(whole: usize) -> Self {
        Self { now: (whole / FIRST_PART).next_multiple_of(ALIGN).min(whole), whole }
    }

    /// How long the next write is to be.
    pub fn now(&self) -> usize {
        self.now
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
        for _ in 0..6 {
            seen.push(sizes.now() >> 10);
            sizes.grow();
        }
        assert_eq!(seen, [256, 512, 1024, 2048, 2048, 2048]);
        for whole in [ALIGN, 3 * ALIGN, 9 * ALIGN, 64 << 20] {
            let mut sizes = WriteSizes::new(whole);
            for _ in 0..10 {
                assert!(sizes.now() <= whole && sizes.now().is_multiple_of(ALIGN), "{whole}");
                sizes.grow();
            }
            assert_eq!(sizes.now(), whole);
        }
    }
}
