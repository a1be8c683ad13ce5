//! Regions of a device that is none: memory of the process. Addresses are those of the process.

use std::sync::{Mutex, PoisonError};

use standfast_capture::{ChangedPages, Scanned, Which};
use standfast_format::{FilterKind, HashKind};
use standfast_gpu::memory::{Backend, Before, Encoding, Filler, Place};
use standfast_gpu::{Error, Packed, Result};
use standfast_reduce::{PageHasher, is_zero};

use crate::encode::{chunks_of, pack};
use crate::{Faults, Step, deflate};

/// Memory of the process as if it were a device's.
pub struct StandIn {
    hasher: PageHasher,
    faults: Faults,
}

impl StandIn {
    /// For the job with this key.
    pub fn new(key: &[u8; 32], faults: Faults) -> Self {
        Self { hasher: PageHasher::new(HashKind::Xxh3, key), faults }
    }
}

fn memory(at: u64, bytes: usize) -> *mut u8 {
    assert!(bytes <= isize::MAX as usize, "a part of memory");
    std::ptr::with_exposed_provenance_mut(at as usize)
}

/// Hashes of the last scan, and what it found.
pub struct Tracker {
    place: Place,
    hashes: Vec<u8>,
    changed: Vec<u64>,
    zeroed: Vec<u64>,
}

/// Staged pages.
pub struct Arena {
    bytes: Mutex<Vec<u8>>,
    page_bytes: usize,
}

/// One piece, encoded at once.
pub struct Lane {
    encoding: Encoding,
    packed: Packed,
    out: Vec<u8>,
}

impl StandIn {
    /// A page of a region, filled up with zeros.
    fn page(&self, place: Place, page: u64) -> Vec<u8> {
        let start = page as usize * place.page_bytes;
        let mut bytes = vec![0; place.page_bytes];
        let there = place.page_bytes.min(place.bytes - start);
        // SAFETY: whoever registered the region keeps it allocated until it is released, and leaves
        // it alone during a checkpoint.
        unsafe {
            let from = memory(place.at + start as u64, there);
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), there);
        }
        bytes
    }

    fn hash(&self, page: &[u8]) -> [u8; 16] {
        let mut hash = [0; 16];
        self.hasher.hash(page, &mut hash);
        hash
    }
}

impl Backend for StandIn {
    type Tracker = Tracker;
    type Arena = Arena;
    type Lane = Lane;
    type Filler = StandInFiller;

    fn finish_program(&self) -> Result<()> {
        self.faults.check(Step::Wait)
    }

    fn read(&self, at: u64, out: &mut [u8]) -> Result<()> {
        self.faults.check(Step::Copy)?;
        // SAFETY: as in `page`.
        unsafe {
            let from = memory(at, out.len());
            std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len());
        }
        Ok(())
    }

    fn filler(&self) -> Result<StandInFiller> {
        Ok(StandInFiller { faults: self.faults.clone() })
    }

    fn tracker(&self, place: Place) -> Result<Tracker> {
        self.faults.check(Step::Tracker)?;
        Ok(Tracker { place, hashes: Vec::new(), changed: Vec::new(), zeroed: Vec::new() })
    }

    fn scan(&self, tracker: &mut Tracker, before: Before<'_>) -> Result<Scanned> {
        self.faults.check(Step::Scan)?;
        let old = match before {
            Before::Nothing => Vec::new(),
            Before::Last => std::mem::take(&mut tracker.hashes),
            Before::Hashes(hashes) => hashes.to_vec(),
        };
        tracker.hashes.clear();
        (tracker.changed, tracker.zeroed) = (Vec::new(), Vec::new());
        for number in 0..tracker.place.pages() {
            let page = self.page(tracker.place, number as u64);
            let hash = self.hash(&page);
            tracker.hashes.extend(hash);
            if old.get(number * 16..(number + 1) * 16) == Some(&hash) {
                continue;
            }
            let list = if is_zero(&page) { &mut tracker.zeroed } else { &mut tracker.changed };
            list.push(number as u64);
        }
        let (changed, zeroed) = (tracker.changed.len() as u64, tracker.zeroed.len() as u64);
        Ok(Scanned { changed, zeroed })
    }

    fn changed(&self, tracker: &Tracker, first: u64, count: u64) -> Result<ChangedPages> {
        let pages = tracker.changed[first as usize..(first + count) as usize].to_vec();
        let hash = |page: &u64| tracker.hashes[*page as usize * 16..][..16].to_vec();
        let hashes = pages.iter().flat_map(hash).collect();
        Ok(ChangedPages { pages, hashes })
    }

    fn zeroed(&self, tracker: &Tracker) -> Result<Vec<u64>> {
        Ok(tracker.zeroed.clone())
    }

    fn arena(&self, pages: usize, page_bytes: usize) -> Result<Arena> {
        self.faults.check(Step::Arena)?;
        Ok(Arena { bytes: Mutex::new(vec![0; pages * page_bytes]), page_bytes })
    }

    fn stage(
        &self,
        tracker: &Tracker,
        which: Which<'_>,
        count: usize,
        arena: &Arena,
        slot: usize,
    ) -> Result<()> {
        self.faults.check(Step::Stage)?;
        let pages = match which {
            Which::Changed { first } => &tracker.changed[first as usize..][..count],
            Which::Pages(pages) => &pages[..count],
        };
        let mut bytes = arena.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut differing = 0;
        for (at, page) in pages.iter().enumerate() {
            let copy = self.page(tracker.place, *page);
            let expected = &tracker.hashes[*page as usize * 16..][..16];
            differing += u64::from(self.hash(&copy) != expected);
            bytes[(slot + at) * arena.page_bytes..][..arena.page_bytes].copy_from_slice(&copy);
        }
        if differing > 0 { Err(Error::Changed { pages: differing }) } else { Ok(()) }
    }

    fn read_staged(&self, arena: &Arena, slot: usize, page: &mut [u8]) -> Result<()> {
        self.faults.check(Step::Copy)?;
        let bytes = arena.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        page.copy_from_slice(&bytes[slot * arena.page_bytes..][..page.len()]);
        Ok(())
    }

    fn lane(&self, encoding: Encoding, _: usize) -> Result<Lane> {
        self.faults.check(Step::Lane)?;
        Ok(Lane { encoding, packed: Packed::default(), out: Vec::new() })
    }

    fn start(&self, lane: &mut Lane, arena: &Arena, slots: &[u32]) -> Result<()> {
        self.faults.check(Step::Encode)?;
        let bytes = arena.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let page = |slot: &u32| &bytes[*slot as usize * arena.page_bytes..][..arena.page_bytes];
        let raw: Vec<u8> = slots.iter().flat_map(page).copied().collect();
        let chunks =
            chunks_of(&raw, lane.encoding, |chunk| deflate::encode_chunk(chunk, FilterKind::None))?;
        (lane.packed, lane.out) = pack(&chunks);
        Ok(())
    }

    fn finish<'a>(&self, lane: &'a mut Lane) -> Result<(Packed, &'a [u8])> {
        Ok((lane.packed.clone(), &lane.out))
    }
}

/// Fills memory of the process.
pub struct StandInFiller {
    faults: Faults,
}

impl Filler for StandInFiller {
    fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.faults.check(Step::Copy)?;
        // SAFETY: as in `page`; nobody uses it during a restart.
        unsafe {
            let to = memory(at, bytes.len());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        Ok(())
    }

    fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        self.faults.check(Step::Copy)?;
        // SAFETY: as above.
        unsafe { std::ptr::write_bytes(memory(at, bytes), 0, bytes) };
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        self.faults.check(Step::Wait)
    }
}
