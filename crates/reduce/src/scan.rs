//! The scan: every page of every region is hashed by several threads, and handed over in order.
//!
//! Data: regions of a [`PageSource`] and what their pages hashed to last time ([`PageTable`]) -> for
//! each page that is not what it was, in order, a call with its hash.
//!
//! Why hashes are compared by position first: most pages of most programs did not change, and a
//! sequential comparison costs a tenth of a look-up in the catalog.
//!
//! How threads share the work: pages are cut into pieces; each thread takes the next piece,
//! hashes it and marks the pages that changed. The calling thread hashes too, but whenever the
//! next piece in order is ready it hands its changed pages over. Nobody hashes far ahead of what
//! is handed over: a page that must be copied is then still in the caches.
//!
//! Invariants:
//! - Pages in memory, copies too, are shared out as above. One thread alone walks over them instead, as it does
//!   over pages that must be read one by one ([`walk`](crate::walk)).
//! - Every page that is unknown or may be dirty is hashed exactly once a scan; every changed page
//!   is handed over exactly once, in the order of regions and pages.
//! - After a scan that succeeded, [`PageTable`] holds the hash of every page as it was handed over.

mod gate;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use self::gate::{Gate, OpenOnDrop};
use crate::catalog::PageRef;
use crate::hash::PageHasher;
use crate::page_table::PageTable;
use crate::source::{PageAt, PageSource, Reach};
use crate::walk::Content;
use crate::zero::is_zero;

/// Pages per piece: 64 bits mark which of them changed.
pub(crate) const PIECE_PAGES: usize = 64;
/// Pieces that each thread may be ahead of what is handed over.
const AHEAD: usize = 4;

/// What is known of one region to be scanned.
#[derive(Debug)]
pub struct Target<'a> {
    /// What its pages were.
    pub positions: &'a mut PageTable,
    /// A bit for each page that may differ from what is known, 64 pages a word; `None`: all may.
    pub dirty: Option<&'a [u64]>,
    /// Whether a page with its bit set counts as changed even if its hash is what it was.
    pub trust_dirty: bool,
}

impl Target<'_> {
    /// Whether a page counts as changed because its bit is set.
    pub(crate) fn trusts(&self) -> bool {
        self.trust_dirty && self.dirty.is_some()
    }
}

/// A page that is not what it was.
#[derive(Clone, Copy, Debug)]
pub struct Changed<'a> {
    /// Which region, in the order of the targets.
    pub region: usize,
    /// Which page of it.
    pub page: usize,
    /// Its bytes; shorter than a page at the end of a region.
    pub bytes: &'a [u8],
    /// Its hash, as of a whole page filled up with zeros.
    pub hash: &'a [u8],
    /// Whether all of it is zero.
    pub zero: bool,
}

/// Takes the pages of a [`Scanner::scan`] and says where each is from now on.
pub trait Consume {
    /// Why it cannot.
    type Error;

    /// Takes a page that is not what it was.
    fn changed(&mut self, page: Changed<'_>) -> Result<PageRef, Self::Error>;

    /// Takes a page of which nothing is known, by region and number, and fills in its hash, as of
    /// a whole page filled up with zeros.
    fn unseen(
        &mut self,
        region: usize,
        page: usize,
        bytes: &[u8],
        hash: &mut [u8],
    ) -> Result<PageRef, Self::Error>;

    /// Takes a page that is not what it was, of which only the hash is there yet.
    fn hashed(&mut self, page: PageAt, hash: &[u8]) -> Result<PageRef, Self::Error>;
}

/// How to scan.
#[derive(Clone, Debug)]
pub struct Scanner {
    hasher: PageHasher,
    page_bytes: usize,
    threads: usize,
    zero_hash: Vec<u8>,
}

/// One piece of work and its outcome.
struct Piece<'a> {
    region: usize,
    /// Its first page in the region.
    first: usize,
    /// Pages to look at count as changed.
    trust_dirty: bool,
    bytes: &'a [u8],
    /// Pages that are there.
    there: u64,
    /// Pages to look at.
    look: u64,
    /// Pages from here on have never been seen.
    known: usize,
    hashes: Mutex<&'a mut [u8]>,
    changed: AtomicU64,
    zero: AtomicU64,
    ready: AtomicBool,
}

impl Scanner {
    /// A scanner for pages of one size.
    pub fn new(hasher: PageHasher, page_bytes: usize, threads: usize) -> Self {
        let mut zero_hash = vec![0; hasher.bytes()];
        hasher.hash(&vec![0; page_bytes], &mut zero_hash);
        Self { hasher, page_bytes, threads: threads.max(1), zero_hash }
    }

    /// Threads that scan.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Length of a hash.
    pub fn hash_bytes(&self) -> usize {
        self.hasher.bytes()
    }

    /// Hash of a page of zeros.
    pub fn zero_hash(&self) -> &[u8] {
        &self.zero_hash
    }

    /// Length of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Hashes a page, as of a whole one filled up with zeros, of which is known whether it is zero.
    pub fn hash_or_zero(&self, bytes: &[u8], zero: bool, out: &mut [u8]) {
        match zero {
            true => out.copy_from_slice(&self.zero_hash),
            false => self.hash_page(bytes, out),
        }
    }

    /// The same with another number of threads.
    pub fn with_threads(&self, threads: usize) -> Self {
        Self { threads: threads.max(1), ..self.clone() }
    }

    /// Scans all regions of a source, of which `targets` tells what is known; the consumer says
    /// where each changed page is from now on. Its first error ends the scan and leaves the
    /// positions forgotten.
    ///
    /// A single thread leaves pages of which nothing is known to [`Consume::unseen`], which hashes
    /// them where it puts them: one pass over memory less, where most pages are new.
    pub fn scan<S, C>(
        &self,
        source: &S,
        targets: &mut [Target<'_>],
        consumer: &mut C,
    ) -> Result<(), C::Error>
    where
        S: PageSource + ?Sized,
        C: Consume<Error = S::Error>,
    {
        if self.threads > 1 {
            self.scan_here(source, targets, consumer)?;
        }
        for (region, target) in targets.iter_mut().enumerate() {
            match source.reach(region) {
                Some(Reach::Here(_) | Reach::Packed(..)) if self.threads > 1 => {}
                Some(Reach::Here(memory)) => {
                    self.walk(
                        source,
                        (region, Content::Here(memory), memory.len()),
                        target,
                        consumer,
                    )?;
                }
                Some(Reach::Packed(memory, bytes)) => {
                    self.walk(source, (region, Content::Packed(memory), bytes), target, consumer)?;
                }
                Some(Reach::Read(bytes)) => {
                    let room = Content::Read(vec![0; self.page_bytes]);
                    self.walk(source, (region, room, bytes), target, consumer)?;
                }
                Some(Reach::Hashed(bytes)) => {
                    self.take_hashed(source, (region, bytes), target, consumer)?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Scans the regions that lie in memory with all threads.
    fn scan_here<S, C>(
        &self,
        source: &S,
        targets: &mut [Target<'_>],
        consumer: &mut C,
    ) -> Result<(), C::Error>
    where
        S: PageSource + ?Sized,
        C: Consume,
    {
        let hash_bytes = self.hasher.bytes();
        let mut pieces = Vec::new();
        let mut refs: Vec<&mut [PageRef]> = Vec::with_capacity(targets.len());
        for (region, target) in targets.iter_mut().enumerate() {
            let Some((memory, bytes, packed)) = in_memory(source.reach(region)) else {
                refs.push(&mut []);
                continue;
            };
            let (trust_dirty, dirty) = (target.trusts(), target.dirty);
            let known = target.positions.begin(bytes.div_ceil(self.page_bytes), hash_bytes);
            let (hashes, own) = target.positions.tables();
            let cut = self.cut((region, memory, packed), hashes, known, dirty);
            pieces.extend(cut.map(|piece| Piece { trust_dirty, ..piece }));
            refs.push(own);
        }
        self.run(&pieces, |piece| self.hand_over(piece, refs[piece.region], consumer))?;
        drop(pieces);
        for (region, target) in targets.iter_mut().enumerate() {
            if in_memory(source.reach(region)).is_some() {
                target.positions.end();
            }
        }
        Ok(())
    }

    fn cut<'a>(
        &self,
        (region, mut memory, packed): (usize, &'a [u8], bool),
        hashes: &'a mut [u8],
        known: usize,
        dirty: Option<&'a [u64]>,
    ) -> impl Iterator<Item = Piece<'a>> {
        let page_bytes = self.page_bytes;
        let hashes = hashes.chunks_mut(PIECE_PAGES * self.hasher.bytes());
        hashes.enumerate().map(move |(at, hashes)| {
            let known = known.saturating_sub(at * PIECE_PAGES);
            let dirty = dirty.map(|dirty| dirty[at]);
            let there = if packed { dirty.unwrap_or(u64::MAX) } else { u64::MAX };
            let length = memory.len().min(there.count_ones() as usize * page_bytes);
            Piece {
                region,
                first: at * PIECE_PAGES,
                trust_dirty: false,
                bytes: memory.split_off(..length).unwrap_or_default(),
                there,
                look: look(dirty, known) & there,
                known,
                hashes: Mutex::new(hashes),
                changed: AtomicU64::new(0),
                zero: AtomicU64::new(0),
                ready: AtomicBool::new(false),
            }
        })
    }

    fn run<E>(
        &self,
        pieces: &[Piece<'_>],
        mut consume: impl FnMut(&Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let next = AtomicUsize::new(0);
        let gate = Gate::default();
        let ahead = AHEAD * self.threads;
        let take = || {
            let at = next.fetch_add(1, Ordering::Relaxed);
            Some((at, pieces.get(at)?))
        };
        let helpers = (self.threads - 1).min(pieces.len());
        std::thread::scope(|scope| {
            for _ in 0..helpers {
                standfast_sys::help(scope, || {
                    while let Some((at, piece)) = take() {
                        if !gate.pass(at, ahead) {
                            break;
                        }
                        self.hash_piece(piece);
                    }
                });
            }
            let _open = OpenOnDrop(&gate);
            for (at, piece) in pieces.iter().enumerate() {
                while !piece.ready.load(Ordering::Acquire) {
                    match take() {
                        Some((_, other)) => self.hash_piece(other),
                        None => std::thread::yield_now(),
                    }
                }
                consume(piece)?;
                gate.advance(at + 1);
            }
            Ok(())
        })
    }

    fn hash_piece(&self, piece: &Piece<'_>) {
        let hash_bytes = self.hasher.bytes();
        let mut hashes = lock(&piece.hashes);
        let mut fresh = [0u8; standfast_format::HASH_BYTES_MAX];
        let fresh = &mut fresh[..hash_bytes];
        let (mut changed, mut zero) = (0u64, 0u64);
        for (at, page) in piece.pages(self.page_bytes) {
            let bit = 1 << at;
            if piece.look & bit == 0 {
                continue;
            }
            if is_zero(page) {
                fresh.copy_from_slice(&self.zero_hash);
                zero |= bit;
            } else {
                self.hash_page(page, fresh);
            }
            let old = &mut hashes[at * hash_bytes..][..hash_bytes];
            if at >= piece.known || piece.trust_dirty || old != fresh {
                old.copy_from_slice(fresh);
                changed |= bit;
            }
        }
        piece.changed.store(changed, Ordering::Relaxed);
        piece.zero.store(zero, Ordering::Relaxed);
        drop(hashes);
        piece.ready.store(true, Ordering::Release);
    }

    fn hash_page(&self, page: &[u8], out: &mut [u8]) {
        if page.len() == self.page_bytes {
            return self.hasher.hash(page, out);
        }
        let mut whole = vec![0; self.page_bytes];
        whole[..page.len()].copy_from_slice(page);
        self.hasher.hash(&whole, out);
    }

    fn hand_over<C: Consume>(
        &self,
        piece: &Piece<'_>,
        refs: &mut [PageRef],
        consumer: &mut C,
    ) -> Result<(), C::Error> {
        let hash_bytes = self.hasher.bytes();
        let hashes = lock(&piece.hashes);
        let changed = piece.changed.load(Ordering::Relaxed);
        let zero = piece.zero.load(Ordering::Relaxed);
        for (at, bytes) in piece.pages(self.page_bytes) {
            if changed & (1 << at) != 0 {
                let (region, page) = (piece.region, piece.first + at);
                let hash = &hashes[at * hash_bytes..][..hash_bytes];
                let zero = zero & (1 << at) != 0;
                refs[page] = consumer.changed(Changed { region, page, bytes, hash, zero })?;
            }
        }
        Ok(())
    }
}

impl<'a> Piece<'a> {
    /// The pages that are there, with their numbers in the piece.
    fn pages(&self, page_bytes: usize) -> impl Iterator<Item = (usize, &'a [u8])> {
        let there = self.there;
        (0..PIECE_PAGES).filter(move |at| there >> at & 1 == 1).zip(self.bytes.chunks(page_bytes))
    }
}

/// Pages in memory which stays as it is, the length of their region, and whether only those are there
/// that may be dirty.
fn in_memory(reach: Option<Reach<'_>>) -> Option<(&[u8], usize, bool)> {
    match reach? {
        Reach::Here(memory) => Some((memory, memory.len(), false)),
        Reach::Packed(memory, bytes) => Some((memory, bytes, true)),
        Reach::Read(_) | Reach::Hashed(_) => None,
    }
}

/// Which pages of a piece to look at: those that may be dirty, and those never seen.
fn look(dirty: Option<u64>, known: usize) -> u64 {
    let unseen = if known >= PIECE_PAGES { 0 } else { u64::MAX << known };
    dirty.unwrap_or(u64::MAX) | unseen
}

fn lock<'a, 'b>(hashes: &'a Mutex<&'b mut [u8]>) -> MutexGuard<'a, &'b mut [u8]> {
    hashes.lock().expect("no thread panics while it holds hashes")
}
