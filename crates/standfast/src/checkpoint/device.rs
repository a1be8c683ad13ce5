//! Regions in the memory of a device.
//!
//! ```text
//! call:   hashed there -> what changed is staged there -> return
//! thread: their hashes -> catalog -> new ones encoded there -> cross -> blocks
//! ```
//! What does not fit the staging memory is stored while the program waits.
//!
//! Where several ranks agree on pages they do so in the call, by the hashes. Each rank stages its
//! share, reserves places for it in segments of its own, tells them to the others, and returns; what
//! is staged crosses behind it. A share that does not fit the staging memory is stored in the call.
//!
//! Invariants:
//! - A region's positions are known again only when all its pages are stored or referred to.
//! - What is staged is cleared before anything is staged for another checkpoint.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use standfast_capture::{ChangedPages, Device, DeviceRegion, Drained, Regions, Which};
use standfast_reduce::{Encoded, Found, PageRef, Positions, Scanner};

use super::capture::Capturer;
use super::draft::{Draft, GivenUp, Order, Taken, elapsed_ns};
use super::sharing::{Candidates, Gathering};
use super::storing::Storing;
use crate::error::{Error, Result};

/// A device that the program's thread and the committer's use in turn.
pub(crate) type SharedDevice = Arc<Mutex<Box<dyn Device>>>;

pub(crate) fn lock_device(device: &SharedDevice) -> MutexGuard<'_, Box<dyn Device>> {
    // Whatever a panic left behind, the next scan begins anew.
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is staged and stored, and where it lies.
#[derive(Clone, Copy)]
pub(super) struct Staging<'a> {
    pub(super) regions: &'a Regions,
    pub(super) device: Option<&'a SharedDevice>,
    pub(super) order: Order,
}

impl<'a> Staging<'a> {
    /// The regions on the device, by their places among all.
    fn regions(self) -> impl Iterator<Item = (usize, DeviceRegion, usize)> + 'a {
        let all = self.regions.iter().enumerate();
        all.filter_map(|(at, region)| Some((at, region.device()?, region.bytes())))
    }

    /// The region of a candidate on the device.
    pub(super) fn region_of(self, candidates: &Candidates, candidate: u32) -> DeviceRegion {
        let (at, _) = candidates.place(candidate);
        self.regions().find(|(of, ..)| *of == at).expect("it lies there").1
    }

    pub(super) fn has_regions(self) -> bool {
        self.regions().next().is_some()
    }

    /// Finds what changed; pages of zeros are done with that. Returns how many others changed.
    fn scan(
        self,
        scanner: &Scanner,
        (region, bytes): (DeviceRegion, usize),
        positions: &mut Positions,
        notes: &mut Vec<String>,
    ) -> Result<u64> {
        let (pages, hash_bytes) = (bytes.div_ceil(scanner.page_bytes()), scanner.hash_bytes());
        let mut device = self.device();
        let scanned = device.scan(region, positions.known_hashes(pages));
        notes.extend(device.messages());
        let scanned = scanned?;
        positions.begin(pages, hash_bytes);
        if scanned.zeroed > 0 {
            for page in device.zeroed(region)? {
                let (hash, place) = positions.entry(page as usize, hash_bytes);
                hash.copy_from_slice(scanner.zero_hash());
                *place = PageRef::ZERO;
            }
        }
        Ok(scanned.changed)
    }

    /// Scans every region on the device for a checkpoint whose pages the ranks agree on.
    pub(super) fn gather(
        self,
        scanner: &Scanner,
        positions: &mut [Positions],
        gathering: &mut Gathering<'_>,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let hash_bytes = scanner.hash_bytes();
        for (at, region, bytes) in self.regions() {
            let positions = &mut positions[at];
            let count = self.scan(scanner, (region, bytes), positions, notes)?;
            let changed = self.device().changed(region, 0, count)?;
            let hashes = changed.hashes.chunks_exact(hash_bytes);
            for (page, fresh) in changed.pages.iter().zip(hashes) {
                let page = *page as usize;
                let found = gathering.find(at, page, fresh);
                let (hash, place) = positions.entry(page, hash_bytes);
                hash.copy_from_slice(fresh);
                *place = found;
            }
            positions.end();
        }
        Ok(())
    }

    /// # Panics
    /// Without a device.
    pub(super) fn device(self) -> MutexGuard<'a, Box<dyn Device>> {
        lock_device(self.device.expect("a region lies on it"))
    }
}

/// Staged pages of a region: `count` of the changed ones, from the `first` on.
pub(super) struct Part {
    at: usize,
    region: DeviceRegion,
    first: u64,
    count: u64,
}

/// A checkpoint of which some pages are still on the device.
pub(crate) struct Staged {
    pub(super) regions: Regions,
    pub(super) order: Order,
    pub(super) started: Instant,
    pub(super) blocked_ns: u64,
    pub(super) positions: Vec<Positions>,
    pub(super) taken: Taken,
    pub(super) parts: Vec<Part>,
    pub(super) device: SharedDevice,
}

impl Capturer {
    /// Scans and stages every region on the device. What is staged when this returns is in `parts`,
    /// unless it may not be left for later.
    pub(super) fn take_devices(
        &mut self,
        staging: Staging<'_>,
        positions: &mut [Positions],
        mut taken: Taken,
        parts: &mut Vec<Part>,
        later: bool,
    ) -> std::result::Result<Taken, GivenUp> {
        let outcome = self.stage_all(staging, positions, &mut taken, parts);
        let outcome = outcome.and_then(|()| match later || parts.is_empty() {
            true => Ok(()),
            false => self.store_now(staging, positions, &mut taken, parts),
        });
        if !later {
            staging.regions().for_each(|(at, ..)| positions[at].end());
        }
        match outcome {
            Ok(()) => Ok(taken),
            Err(GivenUp { error, mut begun }) => {
                begun.extend(&taken.own);
                Err(GivenUp { error, begun })
            }
        }
    }

    fn stage_all(
        &mut self,
        staging: Staging<'_>,
        positions: &mut [Positions],
        taken: &mut Taken,
        parts: &mut Vec<Part>,
    ) -> std::result::Result<(), GivenUp> {
        // What a failed attempt may have left.
        if staging.has_regions() {
            staging.device().clear();
        }
        for (at, region, bytes) in staging.regions() {
            let changed = staging
                .scan(&self.scanner, (region, bytes), &mut positions[at], &mut self.notes)
                .map_err(GivenUp::early)?;
            let mut first = 0;
            while first < changed {
                let count = staging.device().stage(region, Which::Changed { first });
                match count.map_err(GivenUp::early)? {
                    0 => self.store_now(staging, positions, taken, parts)?,
                    count => {
                        parts.push(Part { at, region, first, count });
                        first += count;
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores what is staged, while the program waits.
    fn store_now(
        &mut self,
        staging: Staging<'_>,
        positions: &mut [Positions],
        taken: &mut Taken,
        parts: &mut Vec<Part>,
    ) -> std::result::Result<(), GivenUp> {
        if parts.is_empty() {
            return Err(GivenUp::early(Error::Broken { what: "staging" }));
        }
        let stored = self.store_parts(staging, positions, parts)?;
        parts.clear();
        taken.join(stored);
        Ok(())
    }

    fn store_parts(
        &mut self,
        staging: Staging<'_>,
        positions: &mut [Positions],
        parts: &[Part],
    ) -> std::result::Result<Taken, GivenUp> {
        let pages: u64 = parts.iter().map(|part| part.count).sum();
        if self.config.mode.finds_equal() {
            self.catalog.reserve(pages as usize);
        }
        let mut device = staging.device();
        let expected_bytes = pages * self.scanner.page_bytes() as u64;
        let taken = {
            let mut store = self.storing(staging.regions, staging.order, expected_bytes);
            let mut base = 0;
            let outcome = parts.iter().try_for_each(|part| {
                let changed = device.changed(part.region, part.first, part.count)?;
                let positions = &mut positions[part.at];
                store_part(&mut store, &mut **device, part.at, base, &changed, positions)?;
                base += part.count as u32;
                Ok(())
            });
            match outcome.and_then(|()| store.close()) {
                Ok(()) => Ok(Taken::of(store.batch.finish(), store.begun)),
                Err(error) => Err(GivenUp { error, begun: store.begun }),
            }
        };
        device.clear();
        self.notes.extend(device.messages());
        taken
    }

    /// Takes in what was left on the device.
    pub(crate) fn take_in_staged(&mut self, staged: Staged) -> Result<Draft> {
        let Staged { regions, order, started, blocked_ns, mut positions, mut taken, parts, device } =
            staged;
        let staging = Staging { regions: &regions, device: Some(&device), order };
        let copying = Instant::now();
        let reserved = std::mem::take(&mut taken.reserved);
        let agreed = !reserved.is_empty();
        let stored = match agreed {
            true => self.store_reserved(staging, &reserved),
            false => self.store_parts(staging, &mut positions, &parts),
        };
        match stored {
            Ok(stored) => taken.join(stored),
            Err(GivenUp { error, mut begun }) => {
                begun.extend(&taken.own);
                self.forget_attempt(&begun);
                return Err(error);
            }
        }
        if !agreed {
            staging.regions().for_each(|(at, ..)| positions[at].end());
        }
        taken.copy_ns = elapsed_ns(copying);
        let mut draft = self.draft(&regions, order, started, positions, taken);
        draft.stats.blocked_ns = blocked_ns;
        self.hand_over(&mut draft);
        Ok(draft)
    }
}

/// Brings staged pages to the open segment.
pub(super) fn push_drained(
    store: &mut Storing<'_>,
    device: &mut dyn Device,
    staged: &[u32],
    hashes: &[u8],
    at: usize,
) -> Result<()> {
    if staged.is_empty() {
        return Ok(());
    }
    let (elem, encoded) = (store.elements[at], store.batch.takes_blocks());
    let hash_bytes = hashes.len() / staged.len();
    let page_bytes = store.page_bytes;
    let (mut hashes, mut pushed, mut outcome) = (hashes.chunks_exact(hash_bytes), 0, Ok(()));
    device.drain(staged, elem, encoded, &mut |drained| {
        outcome = match drained {
            Drained::Block { pages, codec, filter, bytes } => {
                pushed += pages as usize;
                let of_block = hashes.by_ref().take(pages as usize).flatten().copied().collect();
                let encoded = Encoded { codec, filter, bytes };
                store.batch.push_block(pages, encoded, of_block).map_err(Error::from)
            }
            Drained::Pages(bytes) => {
                let mut pages = bytes.chunks_exact(page_bytes).zip(hashes.by_ref());
                pages.try_for_each(|(page, hash)| {
                    pushed += 1;
                    Ok(store.batch.push(page, hash, elem)?)
                })
            }
        };
        outcome.is_ok()
    })?;
    outcome?;
    if pushed == staged.len() { Ok(()) } else { Err(Error::Broken { what: "draining" }) }
}

/// Stores changed pages of a region that are staged from `base` on: known ones become references,
/// new ones cross.
fn store_part(
    store: &mut Storing<'_>,
    device: &mut dyn Device,
    at: usize,
    base: u32,
    changed: &ChangedPages,
    positions: &mut Positions,
) -> Result<()> {
    let hash_bytes = changed.hashes.len() / changed.pages.len().max(1);
    let hashes = changed.hashes.chunks_exact(hash_bytes.max(1));
    let (mut staged, mut waiting): (Vec<u32>, Vec<u8>) = (Vec::new(), Vec::new());
    for (number, (page, fresh)) in (base..).zip(changed.pages.iter().zip(hashes)) {
        let open = store.batch.slots();
        if open.is_none_or(|slots| slots + staged.len() as u32 >= store.slots_max) {
            push_drained(store, device, &staged, &waiting, at)?;
            (staged, waiting) = (Vec::new(), Vec::new());
            store.make_room()?;
        }
        let found = match store.find_or_enter(fresh) {
            Found::Known(place) => place,
            Found::Entered(place) => {
                staged.push(number);
                waiting.extend_from_slice(fresh);
                place
            }
        };
        let (hash, place) = positions.entry(*page as usize, hash_bytes);
        hash.copy_from_slice(fresh);
        *place = found;
    }
    push_drained(store, device, &staged, &waiting, at)
}
