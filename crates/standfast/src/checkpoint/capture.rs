//! What capturing remembers between checkpoints, and what it knows of the store.
//!
//! Data: regions -> [`stop`](super::stop) or [`snapshot`](super::snapshot) -> changed pages -> the
//! catalog: known ones become references, new ones are copied into blocks -> a
//! [`Draft`](super::draft::Draft) for the committer. Where ranks share pages, the new ones are
//! candidates first ([`together`](super::together)).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use standfast_agent::StreamPlace;
use standfast_capture::{
    Dirty, Mender, Mprotect, Region, Regions, Snapshots, Span, Tracker, Uffd, Watch,
};
use standfast_comm::{Agreed, Collective, Step};
use standfast_format::{Rank, SegmentId, SegmentIndex, SegmentRef, StoreHeader};
use standfast_reduce::{Catalog, PageHasher, PageRef, Positions, Scanner};
use standfast_restart::{Inventory, Rebuild};
use standfast_store::Store;
use standfast_write::{PackSettings, Packer, Pipeline, SegmentReader, SegmentSettings, Writing};

use super::draft::Order;
use super::handing::Agency;
use super::sharing::Sharing;
use super::sink::Sink;
use super::storing::Storing;
use crate::config::{Capture, Config, Mode, Track, Write};
use crate::error::Result;

/// Least room for hashes in the catalog, however little memory is protected.
const CATALOG_BYTES_MIN: usize = 8 << 20;
/// The catalog's hashes may take one byte of so many protected ones.
const CATALOG_SHARE: u64 = 128;
/// Less than this is taken so fast that nothing needs to be ready for it.
const WARM_BYTES_MIN: u64 = 16 << 20;

/// Tracking pays while at most one page in so many is written: beyond, hashing every page costs
/// less than being told of each.
const WRITTEN_SHARE_STOP: usize = 4;
/// The same where nobody waits for hashes, but for the copy of every written page.
const WRITTEN_SHARE_COW: usize = 32;

/// What capturing remembers between checkpoints.
pub(crate) struct Capturer {
    pub(super) config: Config,
    pub(super) rank: Rank,
    pub(super) store: Arc<dyn Store>,
    pub(super) header: StoreHeader,
    pub(super) sharing: Sharing,
    pub(super) agency: Agency,
    /// Tells written pages; `None`: every page is hashed.
    pub(super) watch: Option<Watch>,
    pub(super) scanner: Scanner,
    pub(super) hasher: PageHasher,
    /// Made with the first checkpoint: a program that only restarts needs no pool.
    packer: Option<Packer>,
    /// What the device that compresses blocks had to say.
    pub(super) gpu_notes: Arc<Mutex<Vec<String>>>,
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
    /// Keeps what is protected fast to protect.
    pub(super) mender: Mender,
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
        team: &Collective,
    ) -> Self {
        let hasher = PageHasher::new(config.hash, &header.key);
        let page_bytes = config.page.0 as usize;
        Self {
            rank: team.rank(),
            sharing: Sharing::new(config, team),
            agency: Agency::default(),
            watch: start_watch(config),
            scanner: Scanner::new(hasher.clone(), page_bytes, config.threads()),
            hasher,
            packer: None,
            gpu_notes: Arc::default(),
            catalog: Catalog::new(config.hash, CATALOG_BYTES_MIN),
            catalog_loaded: config.mode != Mode::All,
            positions: HashMap::new(),
            spans: HashMap::new(),
            references: HashMap::new(),
            restored: None,
            distrusted: HashSet::new(),
            snapshots: start_snapshots(config),
            mender: Mender::default(),
            late: HashMap::new(),
            notes: Vec::new(),
            config: config.clone(),
            store,
            header: header.clone(),
        }
    }

    /// The settings.
    pub(crate) fn config(&self) -> &Config {
        &self.config
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
        self.sharing.failed(segments);
        self.catalog.forget(|id| segments.contains(&id));
        self.positions.values_mut().for_each(Positions::forget);
    }

    /// Loads the catalog again with the next checkpoint.
    #[cfg(test)]
    pub(crate) fn lose_catalog(&mut self) {
        self.catalog.clear();
        self.forget_positions();
        self.catalog_loaded = false;
    }

    /// Stores pages again rather than referring to these segments.
    pub(crate) fn distrust(&mut self, segments: &Agreed<Vec<SegmentId>>) {
        let segments = self.agency.with_streams(segments);
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
        if let Some(owners) = self.sharing.owners() {
            owners.learn(image);
        }
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
        team: &Collective,
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

    /// Makes ready what a first checkpoint of so many bytes needs, beside the program: where it is
    /// written from host memory alone.
    pub(crate) fn warm(&mut self, bytes: u64) {
        // Who writes piece by piece fills one buffer again and again.
        let needs_none =
            self.config.write == Write::Direct || self.config.pipeline == Pipeline::Gpu;
        if bytes < WARM_BYTES_MIN || needs_none {
            return;
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if let Some(link) = &self.agency.link {
            return link.warm(bytes, self.agency.ranks);
        }
        if self.packer.is_none() {
            self.packer = Some(self.start_packer());
        }
        let packer = self.packer.as_mut().expect("just made");
        packer.warm(bytes);
    }

    fn start_packer(&mut self) -> Packer {
        let settings = PackSettings {
            pool_bytes: self.config.pool.0 as usize,
            block_bytes: self.config.block.0 as usize,
            page_bytes: self.config.page.0 as usize,
            pipeline: self.config.pipeline,
            threads: self.config.threads(),
            codec: self.config.codec,
            filter: self.config.filter,
        };
        self.start_on_gpu(settings)
    }

    /// Enters the pages of earlier checkpoints, oldest first, so that the bound keeps the newest.
    /// Each rank enters those that it has written, and those of ranks that are no more are dealt
    /// out. A segment that cannot be read is left out: its pages are stored again.
    fn load_catalog(&mut self, inventory: &Inventory, team: &Collective) -> Result<()> {
        let was_loaded = std::mem::replace(&mut self.catalog_loaded, true);
        // One rank that has to load needs all: they keep the index over all ranks together.
        let [loaded] = *team.all_hold(Step("capture: catalog"), [was_loaded])?;
        if loaded {
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
        self.sharing.load(team.raw(), &indexes)?;
        for index in indexes.into_iter().filter(|_| !was_loaded) {
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
        let segment_bytes = self.segment_bytes();
        let batch = match &self.agency.link {
            Some(link) => {
                let hash_bytes = self.config.hash.bytes();
                let batch = standfast_agent::Batch::begin(link, order, hash_bytes);
                Sink::Agent(batch, Arc::clone(link), order.attempt)
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
            page_bytes: self.config.page.0 as usize,
            slots_max: (segment_bytes / self.config.page.0) as u32,
            segment_bytes,
            expected_bytes,
            begun: Vec::new(),
        }
    }

    /// Bytes of pages that a segment takes.
    pub(super) fn segment_bytes(&self) -> u64 {
        // A segment of the agent's holds a stream of every rank of its node.
        let streams = if self.has_agent() { self.agency.ranks as u64 } else { 1 };
        (self.config.segment.0 / streams).max(self.config.block.0)
    }

    pub(super) fn table_entry(&self, number: u32) -> (SegmentId, Option<SegmentRef>) {
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
    let written_share = match config.capture {
        Capture::Stop => WRITTEN_SHARE_STOP,
        Capture::Cow => WRITTEN_SHARE_COW,
    };
    Some(Watch::new(tracker, (config.track == Track::Auto).then_some(written_share)))
}

fn start_snapshots(config: &Config) -> Option<Arc<Snapshots>> {
    let wanted = config.capture == Capture::Cow;
    wanted.then(|| Snapshots::new(config.cow_pool.0 as usize))?.map(Arc::new)
}
