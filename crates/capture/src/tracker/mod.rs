//! Dirty tracking: which pages were written since the last checkpoint.
//!
//! Data: the addresses of the regions -> [`Tracker::collect`] -> per region a bit for each page
//! that may have changed, or "all of them". What is not tracked is found by hashing, so a tracker
//! may always answer *all*; it must never leave a written page out.
//!
//! Why tracking is dropped where much is written: the first write to a tracked page costs a
//! fault (about 1.7 us), hashing an unchanged page costs a fourth of that. Beyond one page in
//! four, looking is cheaper than being told ([`Watch`] decides per region).
//!
//! | tracker | needs | first write of a page | asks of the program |
//! |---|---|---|---|
//! | [`Uffd`] | Linux 6.7 | about 1.1 us, in the kernel | nothing |
//! | [`Mprotect`] | nothing | 4 to 8 us, a signal | no system calls into tracked memory |
//! | [`Hashing`] | nothing | nothing; every page is hashed | nothing |
//!
//! Invariants:
//! - All regions are collected in one call: two of them may share a page of the system, and
//!   asking for one must not clear what the other has to learn.
//! - A failed checkpoint makes everything dirty: the caller then ignores the bits.

mod hashing;
mod mprotect;
mod segv;
mod uffd;
mod watch;

pub use hashing::Hashing;
pub use mprotect::Mprotect;
pub use uffd::Uffd;
pub use watch::Watch;

/// A region's place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Address of its first byte.
    pub start: usize,
    /// Its length.
    pub bytes: usize,
}

impl Span {
    pub(crate) fn end(self) -> usize {
        self.start + self.bytes
    }
}

/// Which pages of a region may have changed: all, or those whose bit is set, 64 pages a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dirty {
    /// Nobody knows: look at every page.
    All,
    /// Only these.
    Pages(Vec<u64>),
}

impl Dirty {
    /// Pages of a region of which nothing was written.
    pub(crate) fn none(span: Span, page_bytes: usize) -> Self {
        Dirty::Pages(vec![0; span.bytes.div_ceil(page_bytes).div_ceil(64)])
    }

    /// Marks what a write to these addresses may have changed.
    pub(crate) fn mark(&mut self, span: Span, page_bytes: usize, written: std::ops::Range<usize>) {
        let Dirty::Pages(bits) = self else { return };
        let from = written.start.max(span.start);
        let to = written.end.min(span.end());
        if from >= to {
            return;
        }
        let first = (from - span.start) / page_bytes;
        let last = (to - 1 - span.start) / page_bytes;
        for page in first..=last {
            bits[page / 64] |= 1 << (page % 64);
        }
    }

    /// Takes in what else may have changed.
    pub fn join(&mut self, other: Dirty) {
        match (&mut *self, other) {
            (Dirty::Pages(own), Dirty::Pages(other)) if own.len() == other.len() => {
                own.iter_mut().zip(other).for_each(|(own, other)| *own |= other);
            }
            _ => *self = Dirty::All,
        }
    }

    /// Number of marked pages; `None` for all.
    pub fn count(&self) -> Option<usize> {
        match self {
            Dirty::All => None,
            Dirty::Pages(bits) => Some(bits.iter().map(|word| word.count_ones() as usize).sum()),
        }
    }
}

/// Tells which pages were written.
///
/// # Contract
/// - `collect` returns every page written since the last `collect` or `arm` of its memory, by any
///   thread of this process and by system calls, and starts anew. Memory that was never armed, or
///   that was unmapped, mapped anew or moved since, is [`Dirty::All`]. More pages than were
///   written may be returned.
/// - A forked child writes to its own copies, and disturbs nobody.
/// - Not seen are writes by devices into pinned memory and writes through another mapping of
///   shared memory; a tracker must refuse such memory (answer *all*) where it can tell.
pub trait Tracker: Send + Sync {
    /// Its word in configuration and reports.
    fn name(&self) -> &'static str;

    /// Whether system calls may write to watched memory; where they may not they fail with
    /// `EFAULT`, and nothing is missed.
    fn admits_system_calls(&self) -> bool {
        true
    }

    /// Starts watching; false if this memory cannot be watched.
    fn arm(&self, span: Span) -> bool;

    /// Stops watching.
    fn disarm(&self, span: Span);

    /// What was written, for all regions at once.
    fn collect(&self, spans: &[Span], page_bytes: usize) -> Vec<Dirty>;
}

#[cfg(test)]
mod tests;
