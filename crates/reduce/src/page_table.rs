//! What is known of the pages of a region: the hash of each, and where it is stored.
//!
//! Data: a scan that has handed its pages over -> [`PageTable`] -> the next scan, which compares.
//!
//! Invariants:
//! - From [`PageTable::begin`] until [`PageTable::end`] nothing is known: a scan that fails between
//!   them leaves every page to be handed over again.

use crate::catalog::PageRef;

/// What a region's pages hashed to, and where they are stored.
#[derive(Debug, Default)]
pub struct PageTable {
    hashes: Vec<u8>,
    refs: Vec<PageRef>,
    known: usize,
}

impl PageTable {
    /// Where each page is, once a scan has been consumed.
    pub fn refs(&self) -> &[PageRef] {
        &self.refs
    }

    /// The hashes of all pages, end to end.
    pub fn hashes(&self) -> &[u8] {
        &self.hashes
    }

    /// What is known of a region whose pages are these: where each is, and its hash.
    pub fn of<'a>(pages: impl Iterator<Item = (PageRef, &'a [u8])>) -> Self {
        let (mut hashes, mut refs) = (Vec::new(), Vec::new());
        for (place, hash) in pages {
            hashes.extend_from_slice(hash);
            refs.push(place);
        }
        hashes.shrink_to_fit();
        refs.shrink_to_fit();
        let known = refs.len();
        Self { hashes, refs, known }
    }

    /// Says anew where pages are.
    pub fn remap(&mut self, place: impl Fn(PageRef) -> PageRef) {
        self.refs.iter_mut().for_each(|page| *page = place(*page));
    }

    /// Whether nothing is known: the next scan hands over every page.
    pub fn is_unknown(&self) -> bool {
        self.known == 0
    }

    /// Takes everything as unknown: the next scan hands over every page.
    pub fn forget(&mut self) {
        self.known = 0;
    }

    /// Takes the pages that lie in some segments for changed, and calls with each: the next scan
    /// that looks at them hands them over, whatever they are.
    pub fn retire(&mut self, lies_there: impl Fn(u32) -> bool, mut page: impl FnMut(usize)) {
        let hash_bytes = self.hashes.len().checked_div(self.refs.len()).unwrap_or(0);
        for (at, place) in self.refs[..self.known].iter().enumerate() {
            if place.stored().is_some_and(|(segment, _)| lies_there(segment)) {
                // No page hashes to the opposite of its hash.
                let hash = &mut self.hashes[at * hash_bytes..][..hash_bytes];
                hash.iter_mut().for_each(|byte| *byte = !*byte);
                page(at);
            }
        }
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.hashes.capacity() + self.refs.capacity() * size_of::<PageRef>()
    }

    /// The hashes of all pages, if so many are known and no others.
    pub fn known_hashes(&self, pages: usize) -> Option<&[u8]> {
        (pages > 0 && self.known == pages && self.refs.len() == pages).then_some(&self.hashes)
    }

    /// Prepares for a walk over so many pages; returns how many were known. They are known again
    /// with [`PageTable::end`].
    pub fn begin(&mut self, pages: usize, hash_bytes: usize) -> usize {
        self.fit(pages, hash_bytes);
        std::mem::take(&mut self.known)
    }

    /// Hash and place of a page.
    pub fn entry(&mut self, page: usize, hash_bytes: usize) -> (&mut [u8], &mut PageRef) {
        (&mut self.hashes[page * hash_bytes..][..hash_bytes], &mut self.refs[page])
    }

    /// Everything is known.
    pub fn end(&mut self) {
        self.known = self.refs.len();
    }

    /// The hashes of all pages, end to end, and where each page is.
    pub(crate) fn tables(&mut self) -> (&mut [u8], &mut [PageRef]) {
        (&mut self.hashes, &mut self.refs)
    }

    /// Fits the tables to a region of so many pages; pages beyond the old length are unknown.
    fn fit(&mut self, pages: usize, hash_bytes: usize) {
        self.known = self.known.min(pages);
        if self.refs.is_empty() {
            // Fresh zeros come from the system, touched only when a thread fills them.
            self.hashes = vec![0; pages * hash_bytes];
            self.refs = vec![PageRef::ZERO; pages];
        } else if self.refs.len() != pages {
            self.hashes.resize(pages * hash_bytes, 0);
            self.refs.resize(pages, PageRef::ZERO);
            self.hashes.shrink_to_fit();
            self.refs.shrink_to_fit();
        }
    }
}
