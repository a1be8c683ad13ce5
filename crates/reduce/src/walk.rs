//! The walk over pages that must be fetched: a snapshot hands them out one by one, in order.
//!
//! As [`Scanner::walk`], for memory that goes on changing while its snapshot is taken in.

use crate::catalog::PageRef;
use crate::positions::Positions;
use crate::scan::{Changed, Consume, Scanner};
use crate::zero::is_zero;

/// One region whose pages are fetched.
#[derive(Debug)]
pub struct Fetched<'a> {
    /// Its length.
    pub bytes: usize,
    /// What is known of it.
    pub positions: &'a mut Positions,
    /// A bit for each page that may differ from what is known, 64 pages a word; `None`: all may.
    pub dirty: Option<&'a [u64]>,
    /// Whether a page with its bit set counts as changed even if its hash is what it was.
    pub trust_dirty: bool,
}

/// Hands out pages: region, page, where to put it.
pub trait Fetch {
    /// Fills in a page; pages are asked for in ascending order, each once.
    fn page(&mut self, region: usize, page: usize, out: &mut [u8]);

    /// Nothing more of this region is asked for.
    fn finish(&mut self, region: usize);
}

impl Scanner {
    /// Looks at every page that is unknown or may be dirty, in order. The first error of the
    /// consumer ends the walk and leaves the positions forgotten.
    pub fn walk_fetched<C: Consume>(
        &self,
        targets: &mut [Fetched<'_>],
        source: &mut impl Fetch,
        consumer: &mut C,
    ) -> Result<(), C::Error> {
        let mut room = vec![0; self.page_bytes()];
        for (region, target) in targets.iter_mut().enumerate() {
            let pages = target.bytes.div_ceil(self.page_bytes());
            let known = target.positions.begin(pages, self.hash_bytes());
            for at in 0..pages {
                let look = |dirty: &[u64]| dirty[at / 64] >> (at % 64) & 1 == 1;
                if at < known && !target.dirty.is_none_or(look) {
                    continue;
                }
                let rest = target.bytes - at * self.page_bytes();
                let bytes = &mut room[..rest.min(self.page_bytes())];
                source.page(region, at, bytes);
                let trusted = target.trust_dirty && target.dirty.is_some();
                let seen = at < known;
                let (hash, place) = target.positions.entry(at, self.hash_bytes());
                self.take(region, at, bytes, (hash, place), (seen, trusted), consumer)?;
            }
            source.finish(region);
            target.positions.end();
        }
        Ok(())
    }

    fn take<C: Consume>(
        &self,
        region: usize,
        page: usize,
        bytes: &[u8],
        (hash, place): (&mut [u8], &mut PageRef),
        (seen, trusted): (bool, bool),
        consumer: &mut C,
    ) -> Result<(), C::Error> {
        let zero = is_zero(bytes);
        if !seen && !zero {
            *place = consumer.unseen(region, page, bytes, hash)?;
            return Ok(());
        }
        let mut fresh = [0u8; standfast_format::HASH_BYTES_MAX];
        let fresh = &mut fresh[..hash.len()];
        self.hash_or_zero(bytes, zero, fresh);
        if !seen || trusted || hash != fresh {
            hash.copy_from_slice(fresh);
            *place = consumer.changed(Changed { region, page, bytes, hash, zero })?;
        }
        Ok(())
    }

    /// Whether a page hashes to what is known of it.
    pub fn is_as_known(&self, positions: &Positions, page: usize, bytes: &[u8]) -> bool {
        let mut fresh = [0u8; standfast_format::HASH_BYTES_MAX];
        let fresh = &mut fresh[..self.hash_bytes()];
        self.hash_or_zero(bytes, is_zero(bytes), fresh);
        let known = positions.hashes().chunks_exact(self.hash_bytes()).nth(page);
        !positions.is_unknown() && known.is_some_and(|known| known == fresh)
    }
}
