//! The ledger: which pages are stored, and where, as far as this rank knows.
//!
//! Data: segments of earlier checkpoints and what a restart has read -> catalog and page tables ->
//! a checkpoint looks pages up and enters new ones -> it counts once it is committed.
//!
//! Invariants:
//! - Nothing refers to pages of a failed checkpoint, of a segment that was removed, or of one that
//!   could not be read back.

use std::collections::{BTreeMap, BTreeSet};

use standfast_capture::{Dirty, Regions};
use standfast_comm::{Collective, Step};
use standfast_format::{HashKind, SegmentId, SegmentIndex, SegmentRef};
use standfast_reduce::{Catalog, PageRef, PageTable};
use standfast_restart::{Inventory, Rebuild};
use standfast_write::SegmentReader;

use crate::error::Phase;
use crate::owners::Owners;
use crate::place::{Place, converse};
use crate::remembered::Env;
use crate::settings::TakeSettings;
use crate::tracks::Tracks;

/// Least room for hashes in the catalog, however little memory is protected.
const CATALOG_BYTES_MIN: usize = 8 << 20;
/// The catalog's hashes may take one byte of so many protected ones.
const CATALOG_SHARE: u64 = 128;

/// What is known of stored pages.
pub(crate) struct Ledger {
    pub(crate) catalog: Catalog,
    /// Whether the catalog knows earlier checkpoints, or need not.
    loaded: bool,
    /// What the pages of each region were when they were captured.
    positions: BTreeMap<String, PageTable>,
    pub(crate) references: BTreeMap<SegmentId, SegmentRef>,
    /// What the last restart brought back, until a checkpoint takes it in.
    restored: Option<Rebuild>,
    /// Segments that could not be read back: nothing new may refer to them.
    distrusted: BTreeSet<SegmentId>,
}

impl Ledger {
    pub(crate) fn new(settings: &TakeSettings) -> Self {
        Self {
            catalog: Catalog::new(settings.hash, CATALOG_BYTES_MIN),
            loaded: !settings.compare.needs_catalog(),
            positions: BTreeMap::new(),
            references: BTreeMap::new(),
            restored: None,
            distrusted: BTreeSet::new(),
        }
    }

    /// Memory held between checkpoints, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.catalog.bytes() + self.positions.values().map(PageTable::bytes).sum::<usize>()
    }

    /// Takes in what a committed checkpoint needs.
    pub(crate) fn refer(&mut self, segments: &[SegmentRef]) {
        self.references.extend(segments.iter().map(|segment| (segment.id, *segment)));
    }

    /// These segments are gone.
    pub(crate) fn removed(&mut self, segments: &[SegmentId]) {
        let removed: BTreeSet<&SegmentId> = segments.iter().collect();
        self.catalog.forget(|id| removed.contains(&id));
        self.references.retain(|id, _| !removed.contains(id));
        self.distrusted.retain(|id| !removed.contains(id));
    }

    /// Drops everything that refers to the pages of a failed checkpoint.
    pub(crate) fn forget_attempt(&mut self, segments: &[SegmentId]) {
        self.catalog.forget(|id| segments.contains(&id));
        self.forget_positions();
    }

    /// Stores pages again rather than referring to these segments.
    pub(crate) fn distrust(&mut self, segments: Vec<SegmentId>) {
        self.distrusted.extend(segments);
        self.catalog.forget(|id| self.distrusted.contains(&id));
        self.forget_positions();
    }

    /// Where the pages of all regions are, if that is known of all.
    pub(crate) fn known_refs(&self) -> Option<impl Iterator<Item = PageRef>> {
        let known = self.restored.is_none() && !self.positions.values().any(PageTable::is_unknown);
        let refs = self.positions.values().flat_map(|positions| positions.refs().iter().copied());
        known.then_some(refs)
    }

    /// Takes the pages of these segments for changed: the next checkpoint stores them again.
    pub(crate) fn retire(&mut self, names: &BTreeSet<SegmentId>, tracks: &mut Tracks) {
        // By number: every page is asked for its segment.
        let gone = self.catalog.are(|id| names.contains(&id));
        for (region, positions) in &mut self.positions {
            let mut pages = vec![0; positions.refs().len().div_ceil(64)];
            positions.retire(
                |number| gone[number as usize],
                |page| pages[page / 64] |= 1 << (page % 64),
            );
            tracks.look_at(region, Dirty::Pages(pages));
        }
        self.catalog.forget(|id| names.contains(&id));
    }

    /// Forgets all pages; the next checkpoint reads them back from the store.
    pub(crate) fn reset(&mut self, settings: &TakeSettings) {
        self.catalog.clear();
        self.forget_positions();
        self.references.clear();
        self.loaded = !settings.compare.needs_catalog();
    }

    /// Remembers what a restart has just put into memory. The next checkpoint takes it in: the
    /// program should not wait for that now.
    pub(crate) fn restored(&mut self, settings: &TakeSettings, rebuild: Rebuild) {
        let image = rebuild.image();
        let same = is_same(settings, image.hash, image.page_bytes);
        self.restored = (settings.compare.back && same).then_some(rebuild);
    }

    /// Makes ready for a checkpoint of so many protected bytes.
    pub(crate) fn prepare(
        &mut self,
        env: &Env,
        bytes: u64,
        place: &mut Place,
        (inventory, team): (&Inventory, &Collective),
    ) -> Phase<()> {
        let share = usize::try_from(bytes / CATALOG_SHARE).unwrap_or(usize::MAX);
        self.catalog.set_bytes_max(share.max(CATALOG_BYTES_MIN));
        if let Some(placement) = place.placement() {
            placement.fit(bytes);
        }
        if !env.settings.compare.back {
            self.catalog.clear();
            self.forget_positions();
        }
        self.load(env, inventory, place, team)?;
        self.take_in_restored(place.placement().and_then(|placement| placement.owners()));
        Ok(())
    }

    /// Takes in what a restart has put into memory, so that only what changed since is stored,
    /// however old the segments are.
    fn take_in_restored(&mut self, owners: Option<&mut Owners>) {
        let Some(rebuild) = self.restored.take() else { return };
        let image = rebuild.image();
        // What was just read is there, also where pruning failed and nobody knew.
        self.refer(&image.segments);
        if let Some(owners) = owners {
            owners.learn(image);
        }
        let zero_hash = rebuild.zero_hash();
        let numbers: BTreeMap<SegmentId, u32> = image
            .segments
            .iter()
            .map(|segment| (segment.id, self.catalog.foreign_segment(segment.id)))
            .collect();
        for region in &image.regions {
            let pages = rebuild.pages(region, &zero_hash).map(|(stored, hash)| match stored {
                None => (PageRef::ZERO, hash),
                Some((id, slot)) => (PageRef::at(numbers[&id], slot), hash),
            });
            self.positions.insert(region.name.clone(), PageTable::of(pages));
        }
    }

    /// Enters the pages of earlier checkpoints, oldest first, so that the bound keeps the newest.
    /// Each rank enters those that it has written, and those of ranks that are no more are dealt
    /// out. A segment that cannot be read is left out: its pages are stored again.
    fn load(
        &mut self,
        env: &Env,
        inventory: &Inventory,
        place: &mut Place,
        team: &Collective,
    ) -> Phase<()> {
        let was_loaded = std::mem::replace(&mut self.loaded, true);
        // One rank that has to load needs all: they keep the index over all ranks together.
        let [loaded] = *team.all_hold(Step("capture: catalog"), [was_loaded])?;
        if loaded {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
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
            own.iter().rev().filter_map(|segment| read_index(env, segment)).collect();
        if let Some(placement) = place.placement() {
            let loaded = converse(team.raw(), |comm| placement.load(comm, &indexes));
            team.agree(Step("capture: index"), loaded)?;
        }
        for index in indexes.into_iter().filter(|_| !was_loaded) {
            self.catalog.load_segment(index);
        }
        Ok(())
    }

    /// What is known of each region's pages; the attempt has it until it succeeds.
    pub(crate) fn take_positions(&mut self, regions: &Regions) -> Vec<PageTable> {
        let taken =
            regions.iter().map(|region| self.positions.remove(region.name()).unwrap_or_default());
        let taken = taken.collect();
        // What is left belongs to regions that are no longer protected.
        self.positions.clear();
        taken
    }

    pub(crate) fn put_positions(&mut self, regions: &Regions, positions: Vec<PageTable>) {
        let names = regions.iter().map(|region| region.name().to_owned());
        self.positions = names.zip(positions).collect();
    }

    fn forget_positions(&mut self) {
        self.positions.values_mut().for_each(PageTable::forget);
    }

    /// A segment of the catalog as an image names it.
    pub(crate) fn table_entry(&self, number: u32) -> (SegmentId, Option<SegmentRef>) {
        let id = self.catalog.segment_id(number);
        (id, self.references.get(&id).copied())
    }
}

fn read_index(env: &Env, segment: &SegmentRef) -> Option<SegmentIndex> {
    let reader = SegmentReader::open(&*env.store, env.header.id, segment).ok()?;
    let index = reader.into_index();
    is_same(&env.settings, index.hash, index.page_bytes).then_some(index)
}

/// Whether pages are cut and recognised as they are now.
fn is_same(settings: &TakeSettings, hash: HashKind, page_bytes: u32) -> bool {
    hash == settings.hash && page_bytes as usize == settings.pack.page_bytes
}
