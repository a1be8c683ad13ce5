//! The catalog: which pages are stored already, and where.
//!
//! Data: `scan` asks for a page's hash; a hit gives its [`PageRef`], a miss lets the caller store
//! the page and enter it. Entries of earlier checkpoints make deduplication in time, entries of
//! the running one make deduplication inside the rank; it is one table.
//!
//! Layout: each segment keeps the hashes of its slots end to end (they are needed for its index
//! anyway); the table holds only 8-byte references and compares through them. That costs 25 to 36
//! bytes a page with a 16-byte hash, whatever the table's fill.
//!
//! Invariants:
//! - A reference that `find` returns names a slot whose hash is the one asked for.
//! - Segments of a failed attempt, or pruned ones, are forgotten before their files go.
//! - Hash arrays stay below `bytes_max` (the newest segment excepted): the oldest are forgotten
//!   first. Forgetting costs space on disk, never correctness.

use std::collections::HashMap;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use standfast_format::{HashKind, SegmentId, SegmentIndex};

/// Where a page is: a slot of a segment of the catalog, or nowhere because it is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRef {
    segment: u32,
    slot: u32,
}

impl PageRef {
    /// A page of zeros.
    pub const ZERO: Self = Self { segment: u32::MAX, slot: u32::MAX };

    /// A page in a slot of a segment of the catalog.
    pub fn at(segment: u32, slot: u32) -> Self {
        Self { segment, slot }
    }

    /// Segment number in the catalog and slot, unless it is zero.
    pub fn stored(self) -> Option<(u32, u32)> {
        (self != Self::ZERO).then_some((self.segment, self.slot))
    }
}

/// Whether a page was known, and where it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is there already.
    Known(PageRef),
    /// It was entered as the next slot of the open segment; the caller must store it.
    Entered(PageRef),
}

#[derive(Debug)]
struct Segment {
    id: SegmentId,
    hashes: Hashes,
}

#[derive(Debug)]
enum Hashes {
    Open(Vec<u8>),
    Sealed(Arc<Vec<u8>>),
    Forgotten,
}

impl Hashes {
    fn bytes(&self) -> &[u8] {
        match self {
            Hashes::Open(bytes) => bytes,
            Hashes::Sealed(bytes) => bytes,
            Hashes::Forgotten => &[],
        }
    }
}

/// The table of stored pages.
#[derive(Debug)]
pub struct Catalog {
    hash_bytes: usize,
    bytes_max: usize,
    segments: Vec<Segment>,
    /// The newest number of each segment.
    numbers: HashMap<SegmentId, u32>,
    table: HashTable<PageRef>,
}

impl Catalog {
    /// An empty catalog for hashes of one kind, whose hash arrays may take so many bytes.
    pub fn new(hash: HashKind, bytes_max: usize) -> Self {
        let (segments, numbers, table) = (Vec::new(), HashMap::new(), HashTable::new());
        Self { hash_bytes: hash.bytes(), bytes_max, segments, numbers, table }
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.hashes_bytes() + self.table.capacity() * (size_of::<PageRef>() + 1)
    }

    /// Changes the bound, as protected memory grows or shrinks.
    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.forget_beyond_bound();
    }

    /// Makes room for so many more pages at once: growing step by step enters every page anew.
    pub fn reserve(&mut self, pages: usize) {
        let Self { segments, table, hash_bytes, .. } = self;
        table.reserve(pages, |page| key_of(hash_at(segments, *hash_bytes, *page)));
    }

    /// Starts a segment whose slots are entered one by one; returns its number.
    pub fn open_segment(&mut self, id: SegmentId) -> u32 {
        self.push(id, Hashes::Open(Vec::new()))
    }

    /// Ends the open segment: its hashes are shared with whoever writes its index.
    pub fn seal_segment(&mut self) -> Arc<Vec<u8>> {
        let segment = self.segments.last_mut().expect("a segment is open");
        let Hashes::Open(hashes) = &mut segment.hashes else {
            panic!("the newest segment is not open");
        };
        let shared = Arc::new(std::mem::take(hashes));
        segment.hashes = Hashes::Sealed(Arc::clone(&shared));
        self.forget_beyond_bound();
        shared
    }

    /// Takes the open segment back, and gives its hashes in the order of its slots.
    pub fn withdraw_segment(&mut self) -> Vec<u8> {
        let number = self.segments.len().checked_sub(1).expect("a segment is open") as u32;
        self.table.retain(|page| page.segment != number);
        let segment = self.segments.pop();
        if let Some(segment) = &segment {
            self.numbers.remove(&segment.id);
        }
        match segment.map(|segment| segment.hashes) {
            Some(Hashes::Open(hashes)) => hashes,
            _ => panic!("the newest segment is not open"),
        }
    }

    /// The number of a segment whose pages are not to be found here: another rank keeps account
    /// of them.
    pub fn foreign_segment(&mut self, id: SegmentId) -> u32 {
        self.number_of(id).unwrap_or_else(|| self.push(id, Hashes::Forgotten))
    }

    /// Enters a segment of an earlier checkpoint; returns its number.
    pub fn load_segment(&mut self, index: SegmentIndex) -> u32 {
        assert_eq!(index.hash.bytes(), self.hash_bytes, "one catalog, one kind of hash");
        let slots = index.slots();
        let number = self.push(index.id, Hashes::Sealed(Arc::new(index.hashes)));
        for slot in 0..slots {
            self.enter(PageRef { segment: number, slot });
        }
        self.forget_beyond_bound();
        number
    }

    /// Finds a page by its hash, or enters it into the open segment.
    pub fn find_or_enter(&mut self, hash: &[u8]) -> Found {
        let Self { segments, table, hash_bytes, .. } = self;
        let entry = table.entry(
            key_of(hash),
            |page| hash_at(segments, *hash_bytes, *page) == hash,
            |page| key_of(hash_at(segments, *hash_bytes, *page)),
        );
        let vacant = match entry {
            Entry::Occupied(known) => return Found::Known(*known.get()),
            Entry::Vacant(vacant) => vacant,
        };
        let next = next_slot(segments, *hash_bytes);
        vacant.insert(next);
        push_hash(segments, hash);
        Found::Entered(next)
    }

    /// Enters a page without looking whether it is known: for checkpoints without deduplication.
    pub fn enter_always(&mut self, hash: &[u8]) -> PageRef {
        let next = next_slot(&self.segments, self.hash_bytes);
        push_hash(&mut self.segments, hash);
        next
    }

    /// The id behind a segment's number.
    pub fn segment_id(&self, number: u32) -> SegmentId {
        self.segments[number as usize].id
    }

    /// The number of a segment that was opened or loaded.
    pub fn number_of(&self, id: SegmentId) -> Option<u32> {
        self.numbers.get(&id).copied()
    }

    /// Of every number, whether its segment is one of these.
    pub fn are(&self, these: impl Fn(SegmentId) -> bool) -> Vec<bool> {
        self.segments.iter().map(|segment| these(segment.id)).collect()
    }

    /// Forgets segments: their pages are no longer known. Numbers stay as they are.
    pub fn forget(&mut self, gone: impl Fn(SegmentId) -> bool) {
        let gone = self.are(gone);
        let Self { segments, table, .. } = self;
        if !gone.contains(&true) {
            return;
        }
        table.retain(|page| !gone[page.segment as usize]);
        for (segment, gone) in segments.iter_mut().zip(gone) {
            if gone {
                segment.hashes = Hashes::Forgotten;
            }
        }
    }

    /// Forgets everything, numbers included.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.numbers.clear();
        self.table.clear();
    }

    fn push(&mut self, id: SegmentId, hashes: Hashes) -> u32 {
        let number = self.segments.len() as u32;
        self.segments.push(Segment { id, hashes });
        self.numbers.insert(id, number);
        number
    }

    fn enter(&mut self, page: PageRef) {
        let Self { segments, table, hash_bytes, .. } = self;
        let hash = hash_at(segments, *hash_bytes, page);
        let entry = table.entry(
            key_of(hash),
            |other| hash_at(segments, *hash_bytes, *other) == hash,
            |other| key_of(hash_at(segments, *hash_bytes, *other)),
        );
        entry.or_insert(page);
    }

    fn hashes_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.hashes.bytes().len()).sum()
    }

    fn forget_beyond_bound(&mut self) {
        let mut over = self.hashes_bytes().saturating_sub(self.bytes_max);
        let mut victims = Vec::new();
        let older = self.segments.len().saturating_sub(1);
        for segment in &self.segments[..older] {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(segment.hashes.bytes().len());
            victims.push(segment.id);
        }
        self.forget(|id| victims.contains(&id));
    }
}

/// Page hashes are uniform already; eight of their bytes serve as the table's hash.
fn key_of(hash: &[u8]) -> u64 {
    u64::from_le_bytes(hash[..8].try_into().expect("page hashes are longer than 8 bytes"))
}

fn hash_at(segments: &[Segment], hash_bytes: usize, page: PageRef) -> &[u8] {
    &segments[page.segment as usize].hashes.bytes()[page.slot as usize * hash_bytes..][..hash_bytes]
}

fn next_slot(segments: &[Segment], hash_bytes: usize) -> PageRef {
    let number = segments.len().checked_sub(1).expect("a segment is open");
    let slot = segments[number].hashes.bytes().len() / hash_bytes;
    PageRef { segment: number as u32, slot: slot as u32 }
}

fn push_hash(segments: &mut [Segment], hash: &[u8]) {
    let segment = segments.last_mut().expect("a segment is open");
    let Hashes::Open(hashes) = &mut segment.hashes else {
        panic!("the newest segment is not open");
    };
    hashes.extend_from_slice(hash);
}

#[cfg(test)]
mod tests;
