//! The home index: where pages of earlier checkpoints lie, whoever stored them.
//!
//! Data: places of a committed checkpoint's pages ([`NewPages`]), or the hash lists of segments
//! found in the store -> [`HomeIndex`] -> [`Known`] places for hashes that come again. Each rank
//! keeps the part of the hashes whose home it is.
//!
//! Layout: each segment keeps the hashes and slots of its pages that belong here; the table holds
//! 8-byte references and compares through them.
//!
//! Invariants:
//! - Only pages of committed checkpoints are entered; those of removed segments are forgotten
//!   before their files go.
//! - Memory stays below `bytes_max`: the oldest segments are forgotten first, and what does not
//!   fit even then is not entered. Forgetting costs space on disk, never correctness.

use std::collections::{HashMap, VecDeque};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use standfast_format::SegmentId;

use super::super::places::NewPages;

/// Most that the table takes for a page: a reference and a control byte, at the least fill.
const TABLE_BYTES: usize = 21;
/// What a segment takes beside its pages.
const SEGMENT_BYTES: usize = 160;

/// Where a known page is: a segment's number in the index, and a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) segment: u32,
    pub(super) slot: u32,
}

#[derive(Debug, Default)]
struct Segment {
    id: Option<SegmentId>,
    hashes: Vec<u8>,
    slots: Vec<u32>,
}

/// A page of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entered {
    segment: u32,
    at: u32,
}

/// One rank's part of the pages stored in kept checkpoints.
#[derive(Debug)]
pub struct HomeIndex {
    hash_bytes: usize,
    bytes_max: usize,
    bytes: usize,
    /// By number; numbers of forgotten segments are used again.
    segments: Vec<Segment>,
    free: Vec<u32>,
    numbers: HashMap<SegmentId, u32>,
    /// Oldest first.
    ages: VecDeque<u32>,
    table: HashTable<Entered>,
}

impl HomeIndex {
    pub(super) fn new(hash_bytes: usize, bytes_max: usize) -> Self {
        Self {
            hash_bytes,
            bytes_max,
            bytes: 0,
            segments: Vec::new(),
            free: Vec::new(),
            numbers: HashMap::new(),
            ages: VecDeque::new(),
            table: HashTable::new(),
        }
    }

    /// Changes the bound, as protected memory grows or shrinks; what is beyond it goes when the next
    /// page is entered.
    pub(super) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Memory held, in bytes: never more than the bound.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Pages known here.
    pub fn pages(&self) -> usize {
        self.table.len()
    }

    /// Segments that pages known here lie in.
    pub fn segments(&self) -> usize {
        self.ages.len()
    }

    /// Where a page is.
    pub(super) fn find(&self, hash: &[u8]) -> Option<Known> {
        let Self { segments, table, hash_bytes, .. } = self;
        let same = |page: &Entered| hash_at(segments, *hash_bytes, *page) == hash;
        let page = table.find(key_of(hash), same)?;
        let slot = segments[page.segment as usize].slots[page.at as usize];
        Some(Known { segment: page.segment, slot })
    }

    /// The id behind a segment's number.
    pub(super) fn id(&self, segment: u32) -> SegmentId {
        self.segments[segment as usize].id.expect("a page lies in a segment")
    }

    /// Enters pages of a committed checkpoint.
    pub(super) fn enter_all(&mut self, pages: &NewPages) {
        for (hash, place) in pages.hashes.chunks_exact(self.hash_bytes).zip(&pages.places) {
            self.enter(pages.ids[place.segment as usize], hash, place.slot);
        }
    }

    /// Enters a page. If its hash is known, the newer place counts: it is kept for longer.
    pub(super) fn enter(&mut self, id: SegmentId, hash: &[u8], slot: u32) {
        let Some(number) = self.room_in(id) else { return };
        let Self { segments, table, hash_bytes, .. } = self;
        let segment = &mut segments[number as usize];
        let page = Entered { segment: number, at: segment.slots.len() as u32 };
        segment.hashes.extend_from_slice(hash);
        segment.slots.push(slot);
        let entry = table.entry(
            key_of(hash),
            |other| hash_at(segments, *hash_bytes, *other) == hash,
            |other| key_of(hash_at(segments, *hash_bytes, *other)),
        );
        match entry {
            Entry::Occupied(mut known) => *known.get_mut() = page,
            Entry::Vacant(vacant) => drop(vacant.insert(page)),
        }
    }

    /// Forgets segments.
    pub(super) fn forget(&mut self, gone: &[SegmentId]) {
        for id in gone {
            if let Some(number) = self.numbers.remove(id) {
                self.ages.retain(|other| *other != number);
                self.clear(number);
            }
        }
    }

    /// Number of a segment that has room for one more page, after forgetting older ones if need
    /// be; `None` if there is none even then.
    fn room_in(&mut self, id: SegmentId) -> Option<u32> {
        let known = self.numbers.get(&id).copied();
        let page_bytes = self.page_bytes();
        let needed = page_bytes + if known.is_none() { SEGMENT_BYTES } else { 0 };
        while self.bytes + needed > self.bytes_max {
            if self.ages.front().copied() == known {
                return None;
            }
            let oldest = self.ages.pop_front()?;
            self.numbers.remove(&self.id(oldest));
            self.clear(oldest);
        }
        self.bytes += needed;
        Some(known.unwrap_or_else(|| self.open(id)))
    }

    fn open(&mut self, id: SegmentId) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.segments.push(Segment::default());
            self.segments.len() as u32 - 1
        });
        self.segments[number as usize].id = Some(id);
        self.numbers.insert(id, number);
        self.ages.push_back(number);
        number
    }

    fn clear(&mut self, number: u32) {
        let Self { segments, table, hash_bytes, .. } = self;
        let segment = &segments[number as usize];
        for (at, hash) in (0u32..).zip(segment.hashes.chunks_exact(*hash_bytes)) {
            let page = Entered { segment: number, at };
            // A page that was entered anew points to another segment.
            if let Ok(entry) = table.find_entry(key_of(hash), |other| *other == page) {
                entry.remove();
            }
        }
        self.bytes -= SEGMENT_BYTES + segment.slots.len() * self.page_bytes();
        self.segments[number as usize] = Segment::default();
        self.free.push(number);
    }

    fn page_bytes(&self) -> usize {
        // Vectors grow by doubling.
        2 * (self.hash_bytes + size_of::<u32>()) + TABLE_BYTES
    }
}

/// Page hashes are uniform already; eight of their bytes serve as the table's hash.
fn key_of(hash: &[u8]) -> u64 {
    u64::from_le_bytes(hash[..8].try_into().expect("page hashes are longer than 8 bytes"))
}

fn hash_at(segments: &[Segment], hash_bytes: usize, page: Entered) -> &[u8] {
    &segments[page.segment as usize].hashes[page.at as usize * hash_bytes..][..hash_bytes]
}

#[cfg(test)]
mod tests;
