//! The capturing phase: from protected memory to a draft whose pages are in the pool or beyond.
//!
//! Data: regions -> scan -> changed pages -> catalog: known ones become references, new ones are
//! copied into blocks -> [`Draft`] for the committer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use standfast_capture::{Dirty, Region, Regions, Span, Uffd, Watch};
use standfast_format::{
    AttemptId, Digest, RegionImage, Run, SegmentId, SegmentRef, Stats, StoreHeader, Version,
};
use standfast_pack::{Batch, PackSettings, Packer, Pending, SegmentReader, SegmentSettings};
use standfast_reduce::{
    Catalog, Changed, Consume, Found, PageHasher, PageRef, Positions, Scanner, Target,
};
use standfast_restart::{Inventory, Rebuild};
use standfast_store::Store;

use crate::config::{Config, Dedup, Track};
use crate::error::{Error, Result};
use crate::identity;

/// Least room for hashes in the catalog, however little memory is protected.
const CATALOG_BYTES_MIN: usize = 8 << 20;
/// The catalog's hashes may take one byte of so many protected ones.
const CATALOG_SHARE: u64 = 128;

/// A segment's index takes less than one byte of so many bytes of pages, at any hash.
const INDEX_SHARE: u64 = 64;

/// A checkpoint whose pages are captured and whose files are not yet durable.
pub(crate) struct Draft {
    pub(crate) version: Version,
    pub(crate) attempt: AttemptId,
    pub(crate) taken_ns: u64,
    pub(crate) started: Instant,
    pub(crate) pending: Pending,
    pub(crate) regions: Vec<RegionImage>,
    /// The image's segment table; the references of new segments are known once sealed.
    pub(crate) table: Vec<(SegmentId, Option<SegmentRef>)>,
    pub(crate) stats: Stats,
}

/// What capturing remembers between checkpoints.
pub(crate) struct Capturer {
    config: Config,
    store: Arc<dyn Store>,
    header: StoreHeader,
    /// Tells written pages; `None`: every page is hashed.
    watch: Option<Watch>,
    scanner: Scanner,
    hasher: PageHasher,
    /// Made with the first checkpoint: a program that only restarts needs no pool.
    packer: Option<Packer>,
    catalog: Catalog,
    catalog_loaded: bool,
    positions: HashMap<String, Positions>,
    /// Where each region lay when it was captured: what was not written since says something
    /// about that memory, not about other memory under the same name.
    spans: HashMap<String, Span>,
    references: HashMap<SegmentId, SegmentRef>,
    /// What the last restart brought back, until a checkpoint takes it in.
    restored: Option<Rebuild>,
    /// Segments that could not be read back: nothing new may refer to them.
    distrusted: HashSet<SegmentId>,
}

impl Capturer {
    pub(crate) fn new(config: &Config, store: Arc<dyn Store>, header: &StoreHeader) -> Self {
        let hasher = PageHasher::new(config.hash, &header.key);
        let page_bytes = config.page.0 as usize;
        Self {
            watch: start_watch(config),
            scanner: Scanner::new(hasher.clone(), page_bytes, config.threads()),
            hasher,
            packer: None,
            catalog: Catalog::new(config.hash, CATALOG_BYTES_MIN),
            catalog_loaded: config.dedup != Dedup::Time,
            positions: HashMap::new(),
            spans: HashMap::new(),
            references: HashMap::new(),
            restored: None,
            distrusted: HashSet::new(),
            config: config.clone(),
            store,
            header: header.clone(),
        }
    }

    /// Captures all regions.
    ///
    /// # Safety
    /// The memory of every region is mapped, and nobody writes to it until this returns.
    pub(crate) unsafe fn capture(
        &mut self,
        regions: &Regions,
        version: Version,
        inventory: &Inventory,
    ) -> Result<Draft> {
        let started = Instant::now();
        let taken_ns = identity::now_ns();
        let attempt = AttemptId(identity::bytes()?);
        self.prepare(regions, inventory);
        let mut positions = self.take_positions(regions);
        // SAFETY: the caller vouches for the memory.
        let scanned = unsafe { self.scan(regions, &mut positions, taken_ns) };
        let (pending, new_segments) = match scanned {
            Ok(done) => done,
            Err((error, segments)) => {
                self.forget_attempt(&segments);
                return Err(error);
            }
        };
        let mut table = Table::default();
        let images = self.describe(regions, &positions, &mut table);
        let stats = self.count(regions, &positions, &new_segments, pending.pages());
        self.put_positions(regions, positions);
        let table = table.order.into_iter().map(|number| self.table_entry(number)).collect();
        let mut draft =
            Draft { version, attempt, taken_ns, started, pending, regions: images, table, stats };
        draft.stats.blocked_ns = elapsed_ns(started);
        Ok(draft)
    }

    /// Takes in what a committed checkpoint stored and what pruning removed.
    pub(crate) fn committed(&mut self, sealed: &[SegmentRef], removed: &[SegmentId]) {
        self.references.extend(sealed.iter().map(|segment| (segment.id, *segment)));
        let removed: HashSet<&SegmentId> = removed.iter().collect();
        self.catalog.forget(|id| removed.contains(&id));
        self.references.retain(|id, _| !removed.contains(id));
        self.distrusted.retain(|id| !removed.contains(id));
    }

    /// Drops everything that refers to the pages of a failed checkpoint.
    pub(crate) fn forget_attempt(&mut self, segments: &[SegmentId]) {
        self.catalog.forget(|id| segments.contains(&id));
        self.positions.values_mut().for_each(Positions::forget);
    }

    /// Stores pages again rather than referring to these segments.
    pub(crate) fn distrust(&mut self, segments: impl Iterator<Item = SegmentId>) {
        self.distrusted.extend(segments);
        self.catalog.forget(|id| self.distrusted.contains(&id));
        self.positions.values_mut().for_each(Positions::forget);
    }

    /// Remembers what a restart has just put into memory. The next checkpoint takes it in: the
    /// program should not wait for that now.
    pub(crate) fn restored(&mut self, rebuild: Rebuild) {
        let image = rebuild.image();
        let same =
            image.hash == self.config.hash && u64::from(image.page_bytes) == self.config.page.0;
        self.restored = (self.config.dedup == Dedup::Time && same).then_some(rebuild);
    }

    /// Takes in what a restart has put into memory, so that only what changed since is stored,
    /// however old the segments are.
    fn take_in_restored(&mut self) {
        let Some(rebuild) = self.restored.take() else { return };
        let image = rebuild.image();
        // What was just read is there, also where pruning failed and nobody knew.
        self.references.extend(image.segments.iter().map(|segment| (segment.id, *segment)));
        let zero_hash = rebuild.zero_hash();
        let numbers: HashMap<SegmentId, u32> = image
            .segments
            .iter()
            .filter_map(|segment| Some((segment.id, self.catalog.number_of(segment.id)?)))
            .collect();
        for region in &image.regions {
            let pages = rebuild.pages(region, &zero_hash).map(|(stored, hash)| match stored {
                None => Some((PageRef::ZERO, hash)),
                Some((id, slot)) => Some((PageRef::at(*numbers.get(&id)?, slot), hash)),
            });
            // A segment that the catalog does not have: leave this region to look-ups.
            if let Some(pages) = pages.collect::<Option<Vec<_>>>() {
                self.positions.insert(region.name.clone(), Positions::of(pages.into_iter()));
            }
        }
    }

    /// Stops watching: a restart is about to write everything, which would cost a fault a page.
    pub(crate) fn rest(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.rest();
        }
    }

    /// How changed pages are found.
    pub(crate) fn tracker(&self) -> &'static str {
        self.watch.as_ref().map_or("hash", Watch::name)
    }

    /// Memory held between checkpoints, in bytes, pool excluded.
    pub(crate) fn bytes(&self) -> usize {
        self.catalog.bytes() + self.positions.values().map(Positions::bytes).sum::<usize>()
    }

    fn prepare(&mut self, regions: &Regions, inventory: &Inventory) {
        if self.packer.is_none() {
            self.packer = Some(self.start_packer());
        }
        let share = usize::try_from(regions.bytes() / CATALOG_SHARE).unwrap_or(usize::MAX);
        self.catalog.set_bytes_max(share.max(CATALOG_BYTES_MIN));
        if self.config.dedup != Dedup::Time {
            self.catalog.clear();
            self.positions.values_mut().for_each(Positions::forget);
        }
        self.load_catalog(inventory);
        self.take_in_restored();
    }

    fn start_packer(&self) -> Packer {
        let settings = PackSettings {
            pool_bytes: self.config.pool.0 as usize,
            block_bytes: self.config.block.0 as usize,
            page_bytes: self.config.page.0 as usize,
            threads: self.config.threads(),
            codec: self.config.codec,
            filter: self.config.filter,
        };
        Packer::new(Arc::clone(&self.store), settings, self.hasher.clone())
    }

    /// Enters the pages of earlier checkpoints, oldest first, so that the bound keeps the newest.
    /// A segment that cannot be read is left out: its pages are stored again.
    fn load_catalog(&mut self, inventory: &Inventory) {
        if std::mem::replace(&mut self.catalog_loaded, true) {
            return;
        }
        let mut seen = HashSet::new();
        let mut wanted: Vec<SegmentRef> = Vec::new();
        for manifest in &inventory.checkpoints {
            let trusted = manifest.segments.iter().filter(|segment| {
                !self.distrusted.contains(&segment.id) && seen.insert(segment.id)
            });
            wanted.extend(trusted);
        }
        for segment in wanted.iter().rev() {
            let Ok(reader) = SegmentReader::open(&*self.store, self.header.id, segment) else {
                continue;
            };
            let index = reader.into_index();
            let same =
                index.hash == self.config.hash && u64::from(index.page_bytes) == self.config.page.0;
            if same {
                self.references.insert(segment.id, *segment);
                self.catalog.load_segment(index);
            }
        }
    }

    fn take_positions(&mut self, regions: &Regions) -> Vec<Positions> {
        let taken =
            regions.iter().map(|region| self.positions.remove(region.name()).unwrap_or_default());
        let taken = taken.collect();
        // What is left belongs to regions that are no longer protected.
        self.positions.clear();
        taken
    }

    fn put_positions(&mut self, regions: &Regions, positions: Vec<Positions>) {
        let names = || regions.iter().map(|region| region.name().to_owned());
        self.positions = names().zip(positions).collect();
        self.spans = names().zip(regions.iter().map(Region::span)).collect();
    }

    /// Asks what was written, scans it, and starts watching new regions beside the scan: the
    /// program is stopped, so nothing is written in between.
    unsafe fn scan(
        &mut self,
        regions: &Regions,
        positions: &mut [Positions],
        created_ns: u64,
    ) -> std::result::Result<(Pending, Vec<SegmentId>), (Error, Vec<SegmentId>)> {
        let Some(mut watch) = self.watch.take() else {
            let all = vec![Dirty::All; positions.len()];
            // SAFETY: the caller of `capture` vouches for the memory.
            return unsafe { self.scan_dirty(regions, positions, &all, created_ns) };
        };
        let spans: Vec<Span> = regions.iter().map(|region| region.span()).collect();
        let mut dirty = watch.collect(&spans, self.config.page.0 as usize);
        for (region, dirty) in regions.iter().zip(&mut dirty) {
            if self.spans.get(region.name()) != Some(&region.span()) {
                *dirty = Dirty::All;
            }
        }
        let new = watch.to_arm(&spans);
        let (scanned, armed) = std::thread::scope(|scope| {
            let arming = scope.spawn(|| new.iter().map(|span| watch.arm(*span)).collect());
            // SAFETY: as above.
            let scanned = unsafe { self.scan_dirty(regions, positions, &dirty, created_ns) };
            let armed: Vec<bool> = arming.join().expect("arming does not panic");
            (scanned, armed)
        });
        new.iter().zip(armed).for_each(|(span, watched)| watch.armed(*span, watched));
        self.watch = Some(watch);
        scanned
    }

    /// Scans, finds and copies. On failure it tells which segments were begun.
    unsafe fn scan_dirty(
        &mut self,
        regions: &Regions,
        positions: &mut [Positions],
        dirty: &[Dirty],
        created_ns: u64,
    ) -> std::result::Result<(Pending, Vec<SegmentId>), (Error, Vec<SegmentId>)> {
        let elements: Vec<u8> = regions.iter().map(|region| region.elem()).collect();
        let expected_bytes = expected_bytes(regions, positions, dirty, self.config.page.0);
        if self.config.dedup != Dedup::Off {
            self.catalog.reserve((expected_bytes / self.config.page.0) as usize);
        }
        let mut targets: Vec<Target<'_>> = regions
            .iter()
            .zip(positions)
            .zip(dirty)
            .map(|((region, positions), dirty)| {
                let dirty = match dirty {
                    Dirty::All => None,
                    Dirty::Pages(bits) => Some(bits.as_slice()),
                };
                // SAFETY: the caller of `capture` vouches for the memory.
                Target { bytes: unsafe { region.memory() }, positions, dirty }
            })
            .collect();
        let settings = SegmentSettings {
            job: self.header.id,
            hash: self.config.hash,
            page_bytes: self.config.page.0 as u32,
            created_ns,
        };
        let packer = self.packer.as_ref().expect("prepared");
        let mut store = Storing {
            elements,
            catalog: &mut self.catalog,
            batch: packer.begin(settings),
            dedup: self.config.dedup,
            slots_max: (self.config.segment.0 / self.config.page.0) as u32,
            segment_bytes: self.config.segment.0,
            expected_bytes,
            begun: Vec::new(),
        };
        // Where most pages are new, the encoders want a core: one thread less. If that leaves one,
        // it hashes what it copies instead of copying what it hashed.
        let mostly_new = expected_bytes > regions.bytes() / 2;
        let scanned = match self.config.threads() - usize::from(mostly_new) {
            0 | 1 => self.scanner.walk(&mut targets, &mut store),
            threads => {
                let scanner = self.scanner.with_threads(threads);
                scanner.scan(&mut targets, |page| store.changed(page))
            }
        };
        match scanned.and_then(|()| store.close()) {
            Ok(()) => Ok((store.batch.finish(), store.begun)),
            Err(error) => Err((error, store.begun)),
        }
    }

    fn describe(
        &self,
        regions: &Regions,
        positions: &[Positions],
        table: &mut Table,
    ) -> Vec<RegionImage> {
        let describe =
            |(region, positions): (&standfast_capture::Region, &Positions)| RegionImage {
                name: region.name().to_owned(),
                bytes: region.bytes() as u64,
                elem: region.elem(),
                pages_digest: Digest::of(positions.hashes()),
                runs: runs(positions.refs(), table),
            };
        regions.iter().zip(positions).map(describe).collect()
    }

    fn count(
        &self,
        regions: &Regions,
        positions: &[Positions],
        new_segments: &[SegmentId],
        new_pages: u64,
    ) -> Stats {
        let mut stats = Stats { captured_bytes: regions.bytes(), new_pages, ..Stats::default() };
        // Segments are numbered in the order they were begun.
        let first_new = new_segments.first().and_then(|id| self.catalog.number_of(*id));
        let is_new = |number| first_new.is_some_and(|first| number >= first);
        for page in positions.iter().flat_map(Positions::refs) {
            stats.pages += 1;
            match page.stored() {
                None => stats.zero_pages += 1,
                Some((number, _)) if is_new(number) => stats.duplicate_pages += 1,
                Some(_) => stats.old_pages += 1,
            }
        }
        // So far these are all pages in new segments; each new page is one of them.
        stats.duplicate_pages -= new_pages;
        stats
    }

    fn table_entry(&self, number: u32) -> (SegmentId, Option<SegmentRef>) {
        let id = self.catalog.segment_id(number);
        (id, self.references.get(&id).copied())
    }
}

/// Tracking needs something to compare with: without deduplication in time every page is stored.
fn start_watch(config: &Config) -> Option<Watch> {
    if config.dedup != Dedup::Time || config.track == Track::Hash {
        return None;
    }
    let tracker = Uffd::new()?;
    Some(Watch::new(Box::new(tracker), config.track == Track::Uffd))
}

/// Where changed pages go.
struct Storing<'a> {
    /// Size of each region's elements.
    elements: Vec<u8>,
    catalog: &'a mut Catalog,
    batch: Batch<'a>,
    dedup: Dedup,
    slots_max: u32,
    segment_bytes: u64,
    /// What is still to come, if nothing is found to be known: a hint for the file system.
    expected_bytes: u64,
    begun: Vec<SegmentId>,
}

impl Consume for Storing<'_> {
    type Error = Error;

    fn changed(&mut self, page: Changed<'_>) -> Result<PageRef> {
        if self.dedup != Dedup::Off && page.zero {
            return Ok(PageRef::ZERO);
        }
        self.make_room()?;
        match self.find_or_enter(page.hash) {
            Found::Known(place) => Ok(place),
            Found::Entered(place) => {
                self.batch.push(page.bytes, page.hash, self.elements[page.region])?;
                Ok(place)
            }
        }
    }

    fn unseen(&mut self, region: usize, bytes: &[u8], hash: &mut [u8]) -> Result<PageRef> {
        self.make_room()?;
        self.batch.stage(bytes, self.elements[region], hash)?;
        match self.find_or_enter(hash) {
            Found::Known(place) => Ok(place),
            Found::Entered(place) => {
                self.batch.keep_staged();
                Ok(place)
            }
        }
    }
}

impl Storing<'_> {
    fn find_or_enter(&mut self, hash: &[u8]) -> Found {
        match self.dedup {
            Dedup::Off => Found::Entered(self.catalog.enter_always(hash)),
            Dedup::Local | Dedup::Time => self.catalog.find_or_enter(hash),
        }
    }

    /// Makes sure that a segment with a free slot is open.
    fn make_room(&mut self) -> Result<()> {
        match self.batch.slots() {
            Some(slots) if slots < self.slots_max => return Ok(()),
            Some(_) => self.close()?,
            None => {}
        }
        let id = SegmentId(identity::bytes()?);
        self.begun.push(id);
        self.catalog.open_segment(id);
        let pages_bytes = self.expected_bytes.min(self.segment_bytes);
        self.expected_bytes -= pages_bytes;
        // Room for the index too: growing a file at its very end costs as much as reserving it all.
        let hint = pages_bytes + pages_bytes / INDEX_SHARE;
        self.batch.open_segment(id, (hint > 0).then_some(hint));
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if self.batch.slots().is_some() {
            self.batch.close_segment(self.catalog.seal_segment());
        }
        Ok(())
    }
}

/// How much may have to be stored, as far as anybody knows: regions never seen, and pages that
/// were written. Regions of which only hashing will tell count as nothing.
fn expected_bytes(
    regions: &Regions,
    positions: &[Positions],
    dirty: &[Dirty],
    page_bytes: u64,
) -> u64 {
    let of_region =
        |((region, positions), dirty): ((&standfast_capture::Region, &Positions), &Dirty)| {
            match dirty.count() {
                _ if positions.is_unknown() => region.bytes() as u64,
                Some(pages) => pages as u64 * page_bytes,
                None => 0,
            }
        };
    regions.iter().zip(positions).zip(dirty).map(of_region).sum()
}

/// The image's segment table in the making: numbers of the catalog, in the order of first use.
#[derive(Default)]
struct Table {
    order: Vec<u32>,
    places: HashMap<u32, u32>,
}

impl Table {
    fn place(&mut self, number: u32) -> u32 {
        let order = &mut self.order;
        *self.places.entry(number).or_insert_with(|| {
            order.push(number);
            order.len() as u32 - 1
        })
    }
}

/// Joins references to runs.
fn runs(refs: &[PageRef], table: &mut Table) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut place = (u32::MAX, 0);
    for page in refs {
        let next = match page.stored() {
            None => Run::Zero { pages: 1 },
            Some((number, slot)) => {
                if place.0 != number {
                    place = (number, table.place(number));
                }
                Run::Stored { pages: 1, segment: place.1, slot }
            }
        };
        match (runs.last_mut(), next) {
            (Some(Run::Zero { pages }), Run::Zero { .. }) => *pages += 1,
            (
                Some(Run::Stored { pages, segment, slot }),
                Run::Stored { segment: same, slot: following, .. },
            ) if *segment == same && *slot + *pages == following => *pages += 1,
            _ => runs.push(next),
        }
    }
    runs
}

pub(crate) fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
