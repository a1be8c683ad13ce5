//! Copying at once: the wanted pages go to the pool while the program is stopped, by several
//! threads and past the caches, which the program needs for its own data.
//!
//! Why past the caches: every tenth page of a gibibyte took 10 to 12 ms like this and 15 to 17 by
//! plain copies; asking for the next page ahead made it slower.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Wanted;
use super::pool::Pool;
use crate::tracker::Dirty;

/// Less is copied by the calling thread alone: sooner done than another is started.
const ALONE_BYTES_MAX: usize = 1 << 20;
/// Threads take pieces of so many bytes in turn.
const PIECE_BYTES: usize = 1 << 20;
/// Each thread takes about so many shares of the moves: it may be held up by the program's others.
const SHARES: usize = 16;
/// What lies at most before a copy, so that it begins where its source does in a page.
pub(super) const SLACK: usize = 4096;

/// What to copy where; nothing is copied before [`Plan::run`].
pub(super) struct Plan<'a> {
    pool: &'a Pool,
    end: usize,
    /// From address, so many bytes, to a place in the pool.
    moves: Vec<(usize, usize, usize)>,
}

/// The copied pages of a region, in ascending order, one after the other in the pool.
pub(super) struct Copies {
    /// `None`: all of them.
    pages: Option<Vec<u32>>,
    start: usize,
    /// Bytes of all copies together.
    bytes: usize,
    page_bytes: usize,
}

impl<'a> Plan<'a> {
    pub(super) fn new(pool: &'a Pool) -> Self {
        Self { pool, end: 0, moves: Vec::new() }
    }

    /// Where the pool is free from.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Plans the copy of some bytes; `None` if they do not fit.
    pub(super) fn bytes(&mut self, range: &Range<usize>) -> Option<usize> {
        let start = self.reserve(range.start, range.len())?;
        for at in (0..range.len()).step_by(PIECE_BYTES) {
            let bytes = PIECE_BYTES.min(range.len() - at);
            self.moves.push((range.start + at, bytes, start + at));
        }
        Some(start)
    }

    /// Plans the copy of the wanted pages; `None` if they do not fit.
    pub(super) fn pages(&mut self, wanted: &Wanted, page_bytes: usize) -> Option<Copies> {
        let span = wanted.span;
        let Dirty::Pages(bits) = &wanted.pages else {
            let start = self.bytes(&(span.start..span.end()))?;
            return Some(Copies { pages: None, start, bytes: span.bytes, page_bytes });
        };
        let pages: Vec<u32> = marked(bits).collect();
        let start = self.reserve(span.start, pages.len() * page_bytes)?;
        let mut end = start;
        for page in &pages {
            let offset = *page as usize * page_bytes;
            let bytes = page_bytes.min(span.bytes - offset);
            self.moves.push((span.start + offset, bytes, end));
            end += bytes;
        }
        Some(Copies { pages: Some(pages), start, bytes: end - start, page_bytes })
    }

    /// Aligned, for the widest stores, and as far into a page as the source: a load that follows a
    /// store to the same place of another page waits for it.
    fn reserve(&mut self, from: usize, bytes: usize) -> Option<usize> {
        let place = from % SLACK / 64 * 64;
        let start = self.end + (place + SLACK - self.end % SLACK) % SLACK;
        let end = start.checked_add(bytes)?;
        (end <= self.pool.bytes()).then(|| self.end = end)?;
        Some(start)
    }

    /// Copies.
    ///
    /// # Safety
    /// What is to be copied is mapped, and nobody writes to it meanwhile.
    pub(super) unsafe fn run(&self, threads: usize) {
        let threads = if self.end < ALONE_BYTES_MAX { 1 } else { threads.max(1) };
        let next = AtomicUsize::new(0);
        // Some moves at once: single pages are small.
        let share = self.moves.len().div_ceil(threads * SHARES).max(1);
        let work = || {
            while let Some(from) = Some(next.fetch_add(share, Ordering::Relaxed))
                .filter(|from| *from < self.moves.len())
            {
                for (from, bytes, to) in self.moves[from..].iter().take(share) {
                    // SAFETY: the caller vouches for the source; each place in the pool was
                    // reserved for one move.
                    unsafe { copy(*from as *const u8, self.pool.at(*to), *bytes) };
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                standfast_sys::help(scope, work);
            }
            work();
        });
    }
}

impl Copies {
    /// Where the copy of a page lies in the pool.
    ///
    /// # Panics
    /// If the page was not wanted.
    pub(super) fn place(&self, page: usize) -> usize {
        let number = match &self.pages {
            None => page,
            Some(pages) => pages.binary_search(&(page as u32)).expect("only wanted pages are read"),
        };
        self.start + number * self.page_bytes
    }

    /// All copies, end to end.
    pub(super) fn all<'p>(&self, pool: &'p Pool) -> &'p [u8] {
        // SAFETY: they were copied before anybody has them, and the place is theirs.
        unsafe { pool.slice(self.start, self.bytes) }
    }

    /// Whether every page was copied.
    pub(super) fn is_whole(&self) -> bool {
        self.pages.is_none()
    }
}

fn marked(bits: &[u64]) -> impl Iterator<Item = u32> {
    bits.iter().enumerate().flat_map(|(at, word)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(at as u32 * 64 + bit)
        })
    })
}

/// # Safety
/// Both ranges are mapped and do not overlap; nobody writes to the source meanwhile.
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if bytes.is_multiple_of(128) && to.addr().is_multiple_of(32) && has_avx() {
        // SAFETY: the feature was found; the caller vouches for the rest.
        return unsafe { stream(from, to, bytes) };
    }
    // SAFETY: the caller vouches for it.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

#[cfg(target_arch = "x86_64")]
fn has_avx() -> bool {
    std::arch::is_x86_feature_detected!("avx")
}

/// # Safety
/// As `copy`; the length is a multiple of 128 and the target is aligned to 32 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    for at in (0..bytes).step_by(128) {
        // SAFETY: inside of both ranges; the target is aligned.
        unsafe {
            let (from, to) = (from.add(at).cast::<__m256i>(), to.add(at).cast::<__m256i>());
            let words = [0, 1, 2, 3].map(|word| _mm256_loadu_si256(from.add(word)));
            for (word, value) in words.into_iter().enumerate() {
                _mm256_stream_si256(to.add(word), value);
            }
        }
    }
    _mm_sfence();
}
