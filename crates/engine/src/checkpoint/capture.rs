//! The capturing phase: from protected memory to a draft whose pages are in the pool or beyond.
//!
//! Data: regions -> scan -> changed pages -> catalog: known ones become references, new ones are
//! copied into blocks -> [`Draft`] for the committer. Where ranks share pages, the new ones are
//! candidates first: the ranks agree on who stores which, and only then are pages copied.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use standfast_agent::StreamPlace;
use standfast_capture::{Dirty, Mprotect, Region, Regions, Snapshots, Span, Tracker, Uffd, Watch};
use standfast_format::{
    Rank, RegionImage, SegmentId, SegmentIndex, SegmentRef, Stats, StoreHeader,
};
use standfast_pack::{PackSettings, Packer, SegmentReader, SegmentSettings, Writing};
use standfast_reduce::collective::{Assignment, Fate, Place, Places};
use standfast_reduce::{
    Catalog, Changed, Consume, PageHasher, PageRef, Positions, Scanner, Target,
};
use standfast_restart::{Inventory, Rebuild};
use standfast_store::Store;

use super::describe::{Table, Writer, count, describe};
use super::handing::Agency;
use super::sharing::{Candidates, Sharing};
use super::sink::{Pending, Sink};
use super::storing::{Storing, expected_bytes};
use crate::config::{Capture, Config, Mode, Track, Write};
use crate::error::{Error, Result};
use crate::team::Team;

/// Least room for hashes in the catalog, however little memory is protected.
const CATALOG_BYTES_MIN: usize = 8 << 20;
/// The catalog's hashes may take one byte of so many protected ones.
const CATALOG_SHARE: u64 = 128;

pub(crate) use standfast_commit::Order;

/// Pages that were taken.
pub(super) struct Taken {
    pending: Pending,
    /// New segments of this rank.
    pub(super) own: Vec<SegmentId>,
    /// New segments of other ranks that this one refers to.
    foreign: Vec<SegmentId>,
    pub(super) scan_ns: u64,
    agree_ns: u64,
    copy_ns: u64,
}

impl Taken {
    pub(super) fn of(pending: Pending, own: Vec<SegmentId>) -> Self {
        Self { pending, own, foreign: Vec::new(), scan_ns: 0, agree_ns: 0, copy_ns: 0 }
    }
}

/// Why pages could not be taken, and which segments were begun.
struct GivenUp {
    error: Error,
    begun: Vec<SegmentId>,
}

impl GivenUp {
    /// Before any segment was begun.
    fn early(error: impl Into<Error>) -> Self {
        Self { error: error.into(), begun: Vec::new() }
    }
}

/// A checkpoint whose pages are captured and whose files are not yet durable.
pub(crate) struct Draft {
    pub(crate) order: Order,
    pub(crate) started: Instant,
    pub(crate) pending: Pending,
    /// New segments of other ranks that this one refers to.
    pub(crate) foreign: Vec<SegmentId>,
    pub(crate) regions: Vec<RegionImage>,
    /// The image's segment table; the references of new segments are known once sealed.
    pub(crate) table: Vec<(SegmentId, Option<SegmentRef>)>,
    pub(crate) stats: Stats,
    /// What its reader should know.
    pub(crate) notes: Vec<String>,
}

/// What capturing remembers between checkpoints.
pub(crate) struct Capturer {
    pub(super) config: Config,
    pub(super) rank: Rank,
    ranks: usize,
    store: Arc<dyn Store>,
    pub(super) header: StoreHeader,
    pub(super) sharing: Sharing,
    pub(super) agency: Agency,
    /// Tells written pages; `None`: every page is hashed.
    pub(super) watch: Option<Watch>,
    pub(super) scanner: Scanner,
    hasher: PageHasher,
    /// Made with the first checkpoint: a program that only restarts needs no pool.
    packer: Option<Packer>,
    pub(super) catalog: Catalog,
    pub(super) catalog_loaded: bool,
    positions: HashMap<String, Positions>,
    /// Where each region lay when it was captured: what was not written since says something
    /// about that memory, not about other memory under the same name.
    pub(super) spans: HashMap<String, Span>,
    pub(super) references: HashMap<SegmentId, SegmentRef>,
    /// What the last restart brought back, until a checkpoint takes it in.
    restored: Option<Rebuild>,
    /// Segments that could not be read back: nothing new may refer to them.
    distrusted: HashSet<SegmentId>,
    /// Takes snapshots, where checkpoints are taken so.
    pub(super) snapshots: Option<Arc<Snapshots>>,
    /// Pages that may have changed without anybody asking the tracker for them again, by region.
    pub(super) late: HashMap<String, Dirty>,
    /// Why the next checkpoint stops the program although it should not.
    pub(super) notes: Vec<String>,
}

impl Capturer {
    pub(crate) fn new(
        config: &Config,
        store: Arc<dyn Store>,
        header: &StoreHeader,
        team: &Team,
    ) -> Self {
        let hasher = PageHasher::new(config.hash, &header.key);
        let page_bytes = config.page.0 as usize;
        Self {
            rank: team.rank(),
            ranks: team.size(),
            sharing: Sharing::new(config, team),
            agency: Agency::default(),
            watch: start_watch(config),
            scanner: Scanner::new(hasher.clone(), page_bytes, config.threads()),
            hasher,
            packer: None,
            catalog: Catalog::new(config.hash, CATALOG_BYTES_MIN),
            catalog_loaded: config.mode != Mode::All,
            positions: HashMap::new(),
            spans: HashMap::new(),
            references: HashMap::new(),
            restored: None,
            distrusted: HashSet::new(),
            snapshots: start_snapshots(config, team),
            late: HashMap::new(),
            notes: Vec::new(),
            config: config.clone(),
            store,
            header: header.clone(),
        }
    }

    /// Captures all regions. Collective.
    ///
    /// # Safety
    /// The memory of every region is mapped, and nobody writes to it until this returns.
    pub(crate) unsafe fn capture(
        &mut self,
        regions: &Regions,
        order: Order,
        inventory: &Inventory,
        team: &Team,
    ) -> Result<Draft> {
        let started = Instant::now();
        self.prepare(regions, inventory, team)?;
        let mut positions = self.take_positions(regions);
        let taken = match self.sharing.is_on() {
            // SAFETY: the caller vouches for the memory.
            true => unsafe { self.take_together(regions, &mut positions, order, team) },
            // SAFETY: as above.
            false => unsafe { self.take_alone(regions, &mut positions, order) },
        };
        let begun = match &taken {
            Ok(taken) => taken.own.iter().chain(&taken.foreign).copied().collect(),
            Err(given_up) => given_up.begun.clone(),
        };
        let taken = team.agree(taken.map_err(|given_up| given_up.error));
        let taken = taken.inspect_err(|_| self.forget_attempt(&begun))?;
        let mut draft = self.draft(regions, order, started, positions, taken);
        draft.stats.blocked_ns = elapsed_ns(started);
        self.hand_over(&mut draft);
        Ok(draft)
    }

    /// Describes what was taken, and remembers it.
    pub(super) fn draft(
        &mut self,
        regions: &Regions,
        order: Order,
        started: Instant,
        positions: Vec<Positions>,
        taken: Taken,
    ) -> Draft {
        let mut table = Table::default();
        let images = describe(regions, &positions, &mut table);
        let stats = self.count(regions, &positions, &taken);
        self.put_positions(regions, positions);
        let table = table.order.into_iter().map(|number| self.table_entry(number)).collect();
        let Taken { pending, foreign, .. } = taken;
        Draft {
            order,
            started,
            pending,
            foreign,
            regions: images,
            table,
            stats,
            notes: std::mem::take(&mut self.notes),
        }
    }

    fn count(&self, regions: &Regions, positions: &[Positions], taken: &Taken) -> Stats {
        let numbers = |ids: &[SegmentId]| -> HashSet<u32> {
            ids.iter().filter_map(|id| self.catalog.number_of(*id)).collect()
        };
        let (own, foreign) = (numbers(&taken.own), numbers(&taken.foreign));
        let stats = count(regions, positions, taken.pending.pages(), |number| {
            match (own.contains(&number), foreign.contains(&number)) {
                (true, _) => Writer::Own,
                (_, true) => Writer::Other,
                _ => Writer::Earlier,
            }
        });
        let Taken { scan_ns, agree_ns, copy_ns, .. } = *taken;
        Stats { scan_ns, agree_ns, copy_ns, ..stats }
    }

    /// Takes in what a committed checkpoint of all ranks needs, what pruning removed, and where
    /// the agent has put the streams of all ranks.
    pub(crate) fn committed(
        &mut self,
        segments: &[SegmentRef],
        removed: &[SegmentId],
        places: &[StreamPlace],
    ) {
        self.references.extend(segments.iter().map(|segment| (segment.id, *segment)));
        self.agency.learn(places);
        let removed_streams = self.agency.with_streams(removed);
        self.agency.forget(removed);
        let removed = removed_streams.as_slice();
        self.sharing.committed(removed);
        let removed: HashSet<&SegmentId> = removed.iter().collect();
        self.catalog.forget(|id| removed.contains(&id));
        self.references.retain(|id, _| !removed.contains(id));
        self.distrusted.retain(|id| !removed.contains(id));
    }

    /// Drops everything that refers to the pages of a failed checkpoint.
    pub(crate) fn forget_attempt(&mut self, segments: &[SegmentId]) {
        self.sharing.failed();
        self.catalog.forget(|id| segments.contains(&id));
        self.positions.values_mut().for_each(Positions::forget);
    }

    /// Stores pages again rather than referring to these segments.
    pub(crate) fn distrust(&mut self, segments: impl Iterator<Item = SegmentId>) {
        let segments: Vec<SegmentId> = segments.collect();
        let segments = self.agency.with_streams(&segments);
        self.sharing.forget(&segments);
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
        self.restored = (self.config.mode.looks_back() && same).then_some(rebuild);
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
            .map(|segment| (segment.id, self.catalog.foreign_segment(segment.id)))
            .collect();
        for region in &image.regions {
            let pages = rebuild.pages(region, &zero_hash).map(|(stored, hash)| match stored {
                None => (PageRef::ZERO, hash),
                Some((id, slot)) => (PageRef::at(numbers[&id], slot), hash),
            });
            self.positions.insert(region.name.clone(), Positions::of(pages));
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
        self.catalog.bytes()
            + self.sharing.bytes()
            + self.positions.values().map(Positions::bytes).sum::<usize>()
    }

    pub(super) fn prepare(
        &mut self,
        regions: &Regions,
        inventory: &Inventory,
        team: &Team,
    ) -> Result<()> {
        if self.packer.is_none() && !self.has_agent() {
            self.packer = Some(self.start_packer());
        }
        let share = usize::try_from(regions.bytes() / CATALOG_SHARE).unwrap_or(usize::MAX);
        self.catalog.set_bytes_max(share.max(CATALOG_BYTES_MIN));
        self.sharing.fit(regions.bytes());
        if !self.config.mode.looks_back() {
            self.catalog.clear();
            self.positions.values_mut().for_each(Positions::forget);
        }
        self.load_catalog(inventory, team)?;
        self.take_in_restored();
        Ok(())
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
    /// Each rank enters those that it has written, and those of ranks that are no more are dealt
    /// out. A segment that cannot be read is left out: its pages are stored again. Collective.
    fn load_catalog(&mut self, inventory: &Inventory, team: &Team) -> Result<()> {
        if std::mem::replace(&mut self.catalog_loaded, true) {
            return Ok(());
        }
        let mut seen = HashSet::new();
        let mut own: Vec<SegmentRef> = Vec::new();
        for segment in inventory.checkpoints.iter().flat_map(|manifest| &manifest.segments) {
            if self.distrusted.contains(&segment.id) || !seen.insert(segment.id) {
                continue;
            }
            self.references.insert(segment.id, *segment);
            if segment.rank.0 as usize % team.size() == team.rank().0 as usize {
                own.push(*segment);
            }
        }
        let indexes: Vec<SegmentIndex> =
            own.iter().rev().filter_map(|segment| self.read_index(segment)).collect();
        self.sharing.load(team.comm(), &indexes)?;
        for index in indexes {
            self.catalog.load_segment(index);
        }
        Ok(())
    }

    fn read_index(&self, segment: &SegmentRef) -> Option<SegmentIndex> {
        let reader = SegmentReader::open(&*self.store, self.header.id, segment).ok()?;
        let index = reader.into_index();
        let same =
            index.hash == self.config.hash && u64::from(index.page_bytes) == self.config.page.0;
        same.then_some(index)
    }

    pub(super) fn take_positions(&mut self, regions: &Regions) -> Vec<Positions> {
        let taken =
            regions.iter().map(|region| self.positions.remove(region.name()).unwrap_or_default());
        let taken = taken.collect();
        // What is left belongs to regions that are no longer protected.
        self.positions.clear();
        taken
    }

    pub(super) fn forget_positions(&mut self) {
        self.positions.values_mut().for_each(Positions::forget);
    }

    pub(super) fn put_positions(&mut self, regions: &Regions, positions: Vec<Positions>) {
        let names = || regions.iter().map(|region| region.name().to_owned());
        self.positions = names().zip(positions).collect();
        self.spans = names().zip(regions.iter().map(Region::span)).collect();
    }

    /// What was written since each region was captured.
    pub(super) fn collect_dirty(&mut self, regions: &Regions) -> Vec<Dirty> {
        let spans: Vec<Span> = regions.iter().map(Region::span).collect();
        let late = std::mem::take(&mut self.late);
        let Some(watch) = &mut self.watch else { return vec![Dirty::All; spans.len()] };
        let mut dirty = watch.collect(&spans, self.config.page.0 as usize);
        for (region, dirty) in regions.iter().zip(&mut dirty) {
            if self.spans.get(region.name()) != Some(&region.span()) {
                *dirty = Dirty::All;
            }
            if let Some(late) = late.get(region.name()) {
                dirty.join(late.clone());
            }
        }
        dirty
    }

    /// Asks what was written, lets `scan` look at it, and starts watching new regions beside that:
    /// the program is stopped, so nothing is written in between.
    fn with_dirty<T>(
        &mut self,
        regions: &Regions,
        scan: impl FnOnce(&mut Self, &[Dirty]) -> T,
    ) -> T {
        let spans: Vec<Span> = regions.iter().map(|region| region.span()).collect();
        let dirty = self.collect_dirty(regions);
        let Some(mut watch) = self.watch.take() else { return scan(self, &dirty) };
        let new = watch.to_arm(&spans);
        let (scanned, armed) = std::thread::scope(|scope| {
            let arming = scope.spawn(|| new.iter().map(|span| watch.arm(*span)).collect());
            let scanned = scan(self, &dirty);
            let armed: Vec<bool> = arming.join().expect("arming does not panic");
            (scanned, armed)
        });
        new.iter().zip(armed).for_each(|(span, watched)| watch.armed(*span, watched));
        self.watch = Some(watch);
        scanned
    }

    /// Scans, finds and copies, all by this rank alone.
    unsafe fn take_alone(
        &mut self,
        regions: &Regions,
        positions: &mut [Positions],
        order: Order,
    ) -> std::result::Result<Taken, GivenUp> {
        let started = Instant::now();
        let taken = self.with_dirty(regions, |this, dirty| {
            // SAFETY: the caller vouches for the memory.
            unsafe { this.scan_and_store(regions, positions, dirty, order) }
        });
        taken.map(|taken| Taken { scan_ns: elapsed_ns(started), ..taken })
    }

    unsafe fn scan_and_store(
        &mut self,
        regions: &Regions,
        positions: &mut [Positions],
        dirty: &[Dirty],
        order: Order,
    ) -> std::result::Result<Taken, GivenUp> {
        let expected_bytes = expected_bytes(regions, positions, dirty, self.config.page.0);
        if self.config.mode.finds_equal() {
            self.catalog.reserve((expected_bytes / self.config.page.0) as usize);
        }
        // SAFETY: the caller vouches for the memory.
        let mut targets = unsafe { targets(regions, positions, dirty, self.config.mode) };
        let scanner = self.scanner.clone();
        let link = self.agency.link.clone();
        let mut store = self.storing(regions, order, expected_bytes);
        // Where most pages are new, the encoders want a core: one thread less. If that leaves one,
        // it hashes what it copies instead of copying what it hashed.
        let mostly_new = expected_bytes > regions.bytes() / 2;
        let scanned = match scanner.threads() - usize::from(mostly_new) {
            0 | 1 => scanner.walk(&mut targets, &mut store),
            threads => {
                let scanner = scanner.with_threads(threads);
                scanner.scan(&mut targets, |page| store.changed(page))
            }
        };
        match scanned.and_then(|()| store.close()) {
            Ok(()) => Ok(Taken::of(store.batch.finish(link.as_ref(), order.attempt), store.begun)),
            Err(error) => Err(GivenUp { error, begun: store.begun }),
        }
    }

    /// Scans, agrees with the other ranks on who stores what, and copies this rank's share.
    /// Collective; a rank that fails goes on to the end, so that no other waits for it.
    unsafe fn take_together(
        &mut self,
        regions: &Regions,
        positions: &mut [Positions],
        order: Order,
        team: &Team,
    ) -> std::result::Result<Taken, GivenUp> {
        let mut clock = Instant::now();
        let mut lap = || elapsed_ns(std::mem::replace(&mut clock, Instant::now()));
        let candidates = self.with_dirty(regions, |this, dirty| {
            // SAFETY: the caller vouches for the memory.
            let mut targets = unsafe { targets(regions, positions, dirty, this.config.mode) };
            Candidates::gather(&this.scanner, &mut this.catalog, &mut targets)
        });
        let scan_ns = lap();
        let strategy = self.sharing.strategy();
        let assignment =
            strategy.assign(team.comm(), candidates.hashes()).map_err(GivenUp::early)?;
        let assign_ns = lap();
        // SAFETY: the caller vouches for the memory.
        let stored = unsafe { self.store_own(regions, &candidates, &assignment, order) };
        let copy_ns = lap();
        let (begun, places) = match &stored {
            Ok((taken, places)) => (taken.own.clone(), places.as_slice()),
            Err(given_up) => (given_up.begun.clone(), &[][..]),
        };
        // What failed is told right after this; until then any place will do.
        let nowhere = Place { segment: 0, slot: 0 };
        let place = |candidate: u32| places.get(candidate as usize).copied().unwrap_or(nowhere);
        let located = self.sharing.strategy().locate(team.comm(), &assignment, &begun, &place);
        let located =
            located.map_err(|error| GivenUp { error: error.into(), begun: begun.clone() })?;
        let (taken, places) = stored?;
        let foreign = self.refer(positions, &candidates, &assignment, &located, &begun, &places);
        Ok(Taken { foreign, scan_ns, copy_ns, agree_ns: assign_ns + lap(), ..taken })
    }

    /// Copies the candidates that this rank stores; where each lies, by candidate.
    unsafe fn store_own(
        &mut self,
        regions: &Regions,
        candidates: &Candidates,
        assignment: &Assignment,
        order: Order,
    ) -> std::result::Result<(Taken, Vec<Place>), GivenUp> {
        let page_bytes = self.config.page.0 as usize;
        let expected_bytes = assignment.mine().count() as u64 * self.config.page.0;
        self.catalog.reserve((expected_bytes / self.config.page.0) as usize);
        // SAFETY: the caller vouches for the memory.
        let memory: Vec<&[u8]> = regions.iter().map(|region| unsafe { region.memory() }).collect();
        let link = self.agency.link.clone();
        let mut store = self.storing(regions, order, expected_bytes);
        let mut places = vec![Place { segment: 0, slot: 0 }; assignment.len()];
        for candidate in assignment.mine() {
            let (region, page) = candidates.place(candidate);
            let bytes = memory[region].chunks(page_bytes).nth(page).expect("it was scanned");
            let hash = candidates.hash(candidate);
            let stored = store.changed(Changed { region, page, bytes, hash, zero: false });
            if let Err(error) = stored {
                return Err(GivenUp { error, begun: store.begun });
            }
            places[candidate as usize] = store.last_place();
        }
        match store.close() {
            Ok(()) => {
                let pending = store.batch.finish(link.as_ref(), order.attempt);
                Ok((Taken::of(pending, store.begun), places))
            }
            Err(error) => Err(GivenUp { error, begun: store.begun }),
        }
    }

    /// Replaces candidates by references to where they are; returns other ranks' new segments.
    fn refer(
        &mut self,
        positions: &mut [Positions],
        candidates: &Candidates,
        assignment: &Assignment,
        located: &Places,
        begun: &[SegmentId],
        places: &[Place],
    ) -> Vec<SegmentId> {
        let own: Vec<u32> = begun.iter().map(|id| self.catalog.foreign_segment(*id)).collect();
        let foreign: Vec<u32> =
            located.segments().iter().map(|id| self.catalog.foreign_segment(*id)).collect();
        let mut earlier: HashMap<SegmentId, u32> = HashMap::new();
        let final_places: Vec<PageRef> = (0..assignment.len() as u32)
            .map(|candidate| match assignment.fate(candidate) {
                Fate::Mine => {
                    let Place { segment, slot } = places[candidate as usize];
                    PageRef::at(own[segment as usize], slot)
                }
                Fate::Theirs { .. } => {
                    let Place { segment, slot } = located.get(candidate).expect("it was located");
                    PageRef::at(foreign[segment as usize], slot)
                }
                Fate::Old { segment, slot } => {
                    let number = *earlier
                        .entry(segment)
                        .or_insert_with(|| self.catalog.foreign_segment(segment));
                    PageRef::at(number, slot)
                }
            })
            .collect();
        for positions in positions {
            positions.remap(|page| candidates.find(page).map_or(page, |at| final_places[at]));
        }
        located.segments().to_vec()
    }

    pub(super) fn storing<'a>(
        &'a mut self,
        regions: &Regions,
        order: Order,
        expected_bytes: u64,
    ) -> Storing<'a> {
        let settings = SegmentSettings {
            job: self.header.id,
            rank: self.rank,
            hash: self.config.hash,
            page_bytes: self.config.page.0 as u32,
            created_ns: order.taken_ns,
        };
        // A segment of the agent's holds a stream of every rank.
        let streams = if self.agency.link.is_some() { self.ranks as u64 } else { 1 };
        let segment_bytes = (self.config.segment.0 / streams).max(self.config.block.0);
        let batch = match &self.agency.link {
            Some(link) => {
                Sink::Agent(standfast_agent::Batch::begin(link, order, self.config.hash.bytes()))
            }
            None => {
                let packer = self.packer.as_ref().expect("prepared");
                Sink::Own(packer.begin_as(settings, writing(&self.config)))
            }
        };
        Storing {
            elements: regions.iter().map(|region| region.elem()).collect(),
            catalog: &mut self.catalog,
            batch,
            last: None,
            mode: self.config.mode,
            slots_max: (segment_bytes / self.config.page.0) as u32,
            segment_bytes,
            expected_bytes,
            begun: Vec::new(),
        }
    }

    fn table_entry(&self, number: u32) -> (SegmentId, Option<SegmentRef>) {
        let id = self.catalog.segment_id(number);
        (id, self.references.get(&id).copied())
    }
}

/// When this process writes what it captures.
fn writing(config: &Config) -> Writing {
    match config.write {
        Write::Direct => Writing::Direct,
        Write::Wag => Writing::Wag { threshold_bytes: config.wag_threshold.0 as usize },
        Write::Pool | Write::WagDbi => Writing::Behind,
    }
}

/// Tracking needs something to compare with: where nobody looks back, every page is looked at.
///
/// What protects pages by itself is never chosen, only asked for: whether a program hands its
/// memory to system calls cannot be seen from here.
fn start_watch(config: &Config) -> Option<Watch> {
    if !config.mode.looks_back() {
        return None;
    }
    let tracker: Box<dyn Tracker> = match config.track {
        Track::Hash => return None,
        Track::Mprotect => Box::new(Mprotect::new()?),
        Track::Auto | Track::Uffd => Box::new(Uffd::new()?),
    };
    Some(Watch::new(tracker, config.track != Track::Auto))
}

fn start_snapshots(config: &Config, team: &Team) -> Option<Arc<Snapshots>> {
    let wanted = config.capture == Capture::Cow && team.size() == 1;
    wanted.then(|| Snapshots::new(config.cow_pool.0 as usize))?.map(Arc::new)
}

/// What to scan.
///
/// # Safety
/// The memory of every region is mapped, and nobody writes to it while the targets are used.
unsafe fn targets<'a>(
    regions: &'a Regions,
    positions: &'a mut [Positions],
    dirty: &'a [Dirty],
    mode: Mode,
) -> Vec<Target<'a>> {
    let target = |((region, positions), dirty): ((&'a Region, &'a mut Positions), &'a Dirty)| {
        let dirty = match dirty {
            Dirty::All => None,
            Dirty::Pages(bits) => Some(bits.as_slice()),
        };
        // SAFETY: the caller vouches for the memory.
        let bytes = unsafe { region.memory() };
        Target { bytes, positions, dirty, trust_dirty: mode == Mode::Incremental }
    };
    regions.iter().zip(positions).zip(dirty).map(target).collect()
}

pub(crate) fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
