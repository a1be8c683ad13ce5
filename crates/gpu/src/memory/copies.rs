//! The processor stands in: it hashes copies of the region, and stages pages in host memory.

use std::ops::Range;

use standfast_capture::{ChangedPages, Scanned};
use standfast_reduce::{PageHasher, is_zero};

use super::backend::{Backend, Place};
use crate::error::Result;

/// Bytes that cross at a time.
const PIECE_BYTES: usize = 4 << 20;

/// What the processor found in a region.
#[derive(Default)]
pub(super) struct Copied {
    changed: ChangedPages,
    hash_bytes: usize,
    zeroed: Vec<u64>,
}

impl Copied {
    /// Hashes all pages from copies.
    pub(super) fn scan<B: Backend>(
        backend: &B,
        hasher: &PageHasher,
        place: Place,
        before: Option<&[u8]>,
    ) -> Result<Self> {
        let Place { at, bytes, page_bytes } = place;
        let hash_bytes = hasher.bytes();
        let mut found = Copied { hash_bytes, ..Copied::default() };
        let mut piece = vec![0; PIECE_BYTES.max(page_bytes)];
        let mut hash = vec![0; hash_bytes];
        for start in (0..bytes).step_by(piece.len()) {
            let filled = piece.len().min(bytes - start);
            backend.read(at + start as u64, &mut piece[..filled])?;
            let whole = filled.next_multiple_of(page_bytes);
            piece[filled..whole].fill(0);
            for (within, page) in piece[..whole].chunks_exact(page_bytes).enumerate() {
                hasher.hash(page, &mut hash);
                let number = start / page_bytes + within;
                let same =
                    before.is_some_and(|old| old[number * hash_bytes..][..hash_bytes] == hash);
                match (same, is_zero(page)) {
                    (true, _) => {}
                    (false, true) => found.zeroed.push(number as u64),
                    (false, false) => {
                        found.changed.pages.push(number as u64);
                        found.changed.hashes.extend_from_slice(&hash);
                    }
                }
            }
        }
        Ok(found)
    }

    pub(super) fn found(&self) -> Scanned {
        let (changed, zeroed) = (self.changed.pages.len() as u64, self.zeroed.len() as u64);
        Scanned { changed, zeroed }
    }

    pub(super) fn changed(&self, first: u64, count: u64) -> ChangedPages {
        let (first, end) = (first as usize, (first + count) as usize);
        ChangedPages {
            pages: self.changed.pages[first..end].to_vec(),
            hashes: self.changed.hashes[first * self.hash_bytes..end * self.hash_bytes].to_vec(),
        }
    }

    pub(super) fn zeroed(&self) -> &[u64] {
        &self.zeroed
    }
}

/// Pages in host memory.
#[derive(Default)]
pub(super) struct Staging {
    bytes: Vec<u8>,
    pages: usize,
}

impl Staging {
    /// Pages that still fit.
    pub(super) fn room(&self, bytes_max: usize, page_bytes: usize) -> usize {
        (bytes_max / page_bytes).max(1).saturating_sub(self.pages)
    }

    /// Takes pages of a region, neighbours in one copy; returns their slots.
    pub(super) fn take<B: Backend>(
        &mut self,
        backend: &B,
        place: Place,
        pages: &[u64],
    ) -> Result<Range<u32>> {
        let Place { at, bytes, page_bytes } = place;
        let first = self.pages;
        self.bytes.resize((first + pages.len()) * page_bytes, 0);
        let mut to = &mut self.bytes[first * page_bytes..];
        for run in pages.chunk_by(|a, b| a + 1 == *b) {
            let start = run[0] as usize * page_bytes;
            let (own, rest) = to.split_at_mut(run.len() * page_bytes);
            let there = own.len().min(bytes - start);
            backend.read(at + start as u64, &mut own[..there])?;
            own[there..].fill(0);
            to = rest;
        }
        self.pages = first + pages.len();
        Ok(first as u32..self.pages as u32)
    }

    pub(super) fn page(&self, slot: u32, page_bytes: usize) -> &[u8] {
        &self.bytes[slot as usize * page_bytes..][..page_bytes]
    }

    /// Gives the memory back: it is needed in distress only.
    pub(super) fn clear(&mut self) {
        *self = Staging::default();
    }
}
