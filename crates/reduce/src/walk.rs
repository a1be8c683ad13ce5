//! The walk: one thread looks at the pages of a region in order, in memory or as they are read.
//!
//! Data: as the [scan](crate::scan), for a single thread, for pages that a snapshot hands out one by
//! one, and for pages that were hashed where they lie.

use crate::catalog::PageRef;
use crate::page_table::PageTable;
use crate::scan::{Changed, Consume, PIECE_PAGES, Scanner, Target};
use crate::source::{PageAt, PageSource};
use crate::zero::is_zero;

/// How much of the next page is asked for ahead.
#[cfg(target_arch = "x86_64")]
const FETCH_BYTES: usize = 4096;

/// Where a walk finds the pages of a region.
pub(crate) enum Content<'a> {
    /// In memory.
    Here(&'a [u8]),
    /// In memory, those that may be dirty end to end: what is left of them.
    Packed(&'a [u8]),
    /// Read one by one, into this room.
    Read(Vec<u8>),
}

impl Scanner {
    /// Looks at every page of a region of so many bytes that is unknown or may be dirty.
    pub(crate) fn walk<S, C>(
        &self,
        source: &S,
        (region, mut content, bytes): (usize, Content<'_>, usize),
        target: &mut Target<'_>,
        consumer: &mut C,
    ) -> Result<(), C::Error>
    where
        S: PageSource + ?Sized,
        C: Consume,
    {
        let (page_bytes, trusts) = (self.page_bytes(), target.trusts());
        let pages = bytes.div_ceil(page_bytes);
        let known = target.positions.begin(pages, self.hash_bytes());
        for page in 0..pages {
            let look = |dirty: &[u64]| dirty[page / PIECE_PAGES] >> (page % PIECE_PAGES) & 1 == 1;
            let unseen = page >= known && !matches!(content, Content::Packed(_));
            if !unseen && !target.dirty.is_none_or(look) {
                continue;
            }
            let (from, to) = (page * page_bytes, bytes.min((page + 1) * page_bytes));
            let (content, next): (&[u8], &[u8]) = match &mut content {
                Content::Here(memory) => (&memory[from..to], &memory[to..]),
                Content::Packed(rest) => {
                    let (content, next) = rest.split_at(to - from);
                    *rest = next;
                    (content, next)
                }
                Content::Read(room) => {
                    let content = &mut room[..to - from];
                    source.read(PageAt { region: region as u32, page: page as u32 }, content);
                    (content, &[])
                }
            };
            let (hash, place) = target.positions.entry(page, self.hash_bytes());
            let zero = is_zero(content);
            if page >= known && !zero {
                fetch_ahead(next);
                *place = consumer.unseen(region, page, content, hash)?;
                continue;
            }
            let mut fresh = [0u8; standfast_format::HASH_BYTES_MAX];
            let fresh = &mut fresh[..hash.len()];
            self.hash_or_zero(content, zero, fresh);
            if page >= known || trusts || hash != fresh {
                hash.copy_from_slice(fresh);
                *place = consumer.changed(Changed { region, page, bytes: content, hash, zero })?;
            }
        }
        source.looked(region);
        target.positions.end();
        Ok(())
    }

    /// Takes what the source has found changed in a region of so many bytes.
    pub(crate) fn take_hashed<S, C>(
        &self,
        source: &S,
        (region, bytes): (usize, usize),
        target: &mut Target<'_>,
        consumer: &mut C,
    ) -> Result<(), C::Error>
    where
        S: PageSource + ?Sized,
        C: Consume<Error = S::Error>,
    {
        let (hash_bytes, positions) = (self.hash_bytes(), &mut *target.positions);
        let found = source.hashed(region)?;
        positions.begin(bytes.div_ceil(self.page_bytes()), hash_bytes);
        for page in found.zeroed {
            let (hash, place) = positions.entry(page as usize, hash_bytes);
            hash.copy_from_slice(self.zero_hash());
            *place = PageRef::ZERO;
        }
        for (page, fresh) in found.pages.iter().zip(found.hashes.chunks_exact(hash_bytes)) {
            let at = PageAt { region: region as u32, page: *page as u32 };
            let (hash, place) = positions.entry(*page as usize, hash_bytes);
            hash.copy_from_slice(fresh);
            *place = consumer.hashed(at, fresh)?;
        }
        source.looked(region);
        positions.end();
        Ok(())
    }

    /// Whether a page hashes to what is known of it.
    pub fn is_as_known(&self, positions: &PageTable, page: usize, bytes: &[u8]) -> bool {
        let mut fresh = [0u8; standfast_format::HASH_BYTES_MAX];
        let fresh = &mut fresh[..self.hash_bytes()];
        self.hash_or_zero(bytes, is_zero(bytes), fresh);
        let known = positions.hashes().chunks_exact(self.hash_bytes()).nth(page);
        !positions.is_unknown() && known.is_some_and(|known| known == fresh)
    }
}

/// Asks for the page after this one while this one is being copied and hashed: the processor's
/// own look-ahead stops where a page ends.
fn fetch_ahead(next: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in next[..next.len().min(FETCH_BYTES)].chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: the instruction is part of every x86-64 and reads nothing by itself.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = next;
}
