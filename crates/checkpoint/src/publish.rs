//! What a commit does to a store: write images and manifests, prune what is beyond `keep`, take
//! files back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use standfast_format::{
    Abandoned, AttemptId, HashKind, ImageRef, JobId, Kind, Level, Manifest, Node, Rank, SegmentId,
    SegmentRef, Stats, Version, Writes, name,
};
use standfast_store::{Lock, Store};
use standfast_sys::Stopwatch;

use crate::described::Described;
use crate::error::{Error, Result};
use crate::failpoint;
use crate::inventory::{Damaged, Inventory};
use crate::prune::{self, Keep};
use crate::publishing::{Aftermath, Verdict};

/// What all ranks of an attempt have in common.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Order {
    /// The checkpoint's version.
    pub version: Version,
    /// The attempt at it.
    pub attempt: AttemptId,
    /// When it was taken, nanoseconds since 1970.
    pub taken_ns: u64,
    /// Its place in the order of commits, after all that the job knows of at any level.
    pub sequence: u64,
    /// What the run had abandoned when it went back, if it did.
    pub abandons: Option<Abandoned>,
}

impl Order {
    /// All that its line has abandoned, by what the store holds.
    fn abandoned(&self, inventory: &Inventory) -> Vec<Abandoned> {
        let newest = inventory.checkpoints.first();
        let inherited = |from: Option<&Manifest>| from.map_or(vec![], |own| own.abandoned.clone());
        match self.abandons {
            // The first one since it went back.
            Some(left) if newest.is_none_or(|newest| newest.sequence <= left.last) => {
                let mut all = inventory.checkpoints.iter();
                let base = all.find(|own| own.sequence.checked_add(1) == Some(left.first));
                inherited(base).into_iter().chain([left]).collect()
            }
            _ => inherited(newest),
        }
    }
}

/// What a manifest has of one rank.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// Its image.
    pub image: ImageRef,
    /// Segments that the image needs.
    pub segments: Vec<SegmentRef>,
    /// Its figures.
    pub stats: Stats,
    /// How it was written.
    pub writes: Writes,
    /// Name of the node that wrote it.
    pub node: String,
}

/// Whoever writes images and manifests of one job.
#[derive(Clone, Debug)]
pub struct Publisher {
    /// The job's store.
    pub store: Arc<dyn Store>,
    /// The store's id.
    pub job: JobId,
    /// Hash of pages.
    pub hash: HashKind,
    /// Size of pages.
    pub page_bytes: u32,
    /// Checkpoints kept; 0: all.
    pub keep: u32,
    /// Name of this node.
    pub node: String,
    /// Of so many one is kept for ever; 0: none.
    pub every: u64,
}

impl Publisher {
    /// Writes one rank's image, whose streams are placed.
    pub fn write_image(&self, order: Order, described: Described) -> Result<Entry> {
        let Described { image, mut stats, mut writes, started, .. } = described;
        let rank = image.rank;
        let (bytes, digest) = image.encode();
        stats.image_bytes = bytes.len() as u64;
        stats.rank_bytes_max = stats.segment_bytes + stats.image_bytes;
        let putting = Stopwatch::start();
        self.store.put(&name::image(order.version, order.attempt, rank), &bytes)?;
        let put_ns = putting.ns();
        writes.pieces.add(stats.image_bytes, put_ns);
        writes.writes.add(stats.image_bytes, put_ns);
        stats.total_ns = started.ns();
        let file = ImageRef { rank, file_bytes: stats.image_bytes, digest };
        Ok(Entry { image: file, segments: image.segments, stats, writes, node: self.node.clone() })
    }

    /// What pruning leaves.
    pub fn keep(&self) -> Keep {
        Keep { newest: self.keep as usize, every: self.every, ..Keep::default() }
    }

    /// Writes the manifest over the entries of all ranks. The inventory is kept up to date.
    pub fn write_manifest(
        &self,
        order: Order,
        ranks: u32,
        entries: Vec<Entry>,
        inventory: &mut Inventory,
    ) -> Verdict<Error> {
        let abandoned = order.abandoned(inventory);
        let manifest = Manifest { abandoned, ..self.join(order, ranks, entries) };
        failpoint::pass("commit.before_manifest");
        let object = inventory.object_of(&manifest);
        if let Err(error) = self.store.put(&object, &manifest.encode()) {
            let error = Error::from(error);
            return match in_doubt(&*self.store, inventory, object, &error, order.attempt) {
                true => Verdict::InDoubt(error),
                false => Verdict::Failed(error),
            };
        }
        failpoint::pass("commit.after_manifest");

        inventory.checkpoints.insert(0, manifest);
        Verdict::Committed(Aftermath::default())
    }

    /// Prunes a store that nobody else prunes; `replaced`: whether a checkpoint of the same version
    /// was there before the newest.
    pub fn prune(&self, replaced: bool, inventory: &mut Inventory) -> Aftermath {
        let (removed, pruned) = prune_beyond(&*self.store, self.keep(), replaced, inventory);
        // The checkpoint exists all the same; what stayed is tried again after the next one.
        let note = |error: Error| format!("older checkpoints were not pruned: {error}");
        Aftermath { removed, notes: pruned.err().map(note).into_iter().collect() }
    }

    /// The manifest over the entries of all ranks.
    fn join(&self, order: Order, ranks: u32, entries: Vec<Entry>) -> Manifest {
        let mut seen = BTreeSet::new();
        let segments = entries.iter().flat_map(|entry| &entry.segments);
        let segments = segments.filter(|segment| seen.insert(segment.id)).copied().collect();
        let stats = entries.iter().fold(Stats::default(), |all, entry| all.join(entry.stats));
        Manifest {
            job: self.job,
            version: order.version,
            sequence: order.sequence,
            attempt: order.attempt,
            level: Level::Local,
            taken_ns: order.taken_ns,
            ranks,
            writes: entries.iter().map(|entry| entry.writes.clone()).collect(),
            nodes: nodes(&entries),
            abandoned: Vec::new(),
            images: entries.into_iter().map(|entry| entry.image).collect(),
            segments,
            stats,
        }
    }

    /// Gives the space of a failed attempt back, as far as the store lets it.
    pub fn discard(
        &self,
        order: Order,
        ranks: impl Iterator<Item = Rank>,
        segments: impl Iterator<Item = SegmentId>,
    ) {
        // Most are not there, and what stays goes with the next prune or opening.
        let images = ranks.map(|rank| name::image(order.version, order.attempt, rank));
        for object in images.chain(segments.map(name::segment)) {
            let _ = self.store.remove(&object);
        }
    }

    /// Removes this node's pledge; returns whether it is gone. One that stays is void where its job
    /// goes on, and must find what it names where the job ends here.
    pub fn discard_pledge(&self, order: Order) -> bool {
        let removed = self.store.remove(&name::pledge(order.version, order.attempt));
        removed.map_or_else(|error| error.kind() == Kind::Missing, |()| true)
    }
}

/// Whether a manifest may be there although writing it was reported to have failed. It is then
/// in the inventory: as a checkpoint, or as a manifest of unknown contents.
fn in_doubt(
    store: &dyn Store,
    inventory: &mut Inventory,
    object: String,
    error: &Error,
    attempt: AttemptId,
) -> bool {
    if refresh(store, inventory) {
        return inventory.checkpoints.iter().any(|manifest| manifest.attempt == attempt)
            || inventory.damaged.iter().any(|damaged| damaged.object == object);
    }
    let why = crate::Unreadable::Uncertain { object: object.clone(), why: error.to_string() };
    inventory.damaged.push(Damaged { object, error: why });
    true
}

/// Asks the store what is there; false if it does not answer.
pub fn refresh(store: &dyn Store, inventory: &mut Inventory) -> bool {
    Inventory::read(store).map(|fresh| *inventory = fresh).is_ok()
}

/// Asks the store what is left. A manifest that is listed and fails to be read now is what it was: who
/// forgot it would give its place in the order of commits to the next one.
fn look_again(store: &dyn Store, inventory: &mut Inventory) {
    let known = inventory.checkpoints.clone();
    if !refresh(store, inventory) {
        return;
    }
    let Inventory { checkpoints, damaged, .. } = inventory;
    damaged.retain(|damaged| {
        let name = name::parse_manifest(&damaged.object);
        let same = |own: &&Manifest| name.is_some_and(|name| name.is_of(own));
        let known = known.iter().find(same).filter(|_| damaged.error.kind() != Kind::Corrupt);
        checkpoints.extend(known.cloned());
        known.is_none()
    });
    checkpoints.sort_by_key(|manifest| std::cmp::Reverse((manifest.sequence, manifest.taken_ns)));
}

/// The nodes of entries that are in the order of ranks, in the order of their first ranks.
fn nodes(entries: &[Entry]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries {
        let at = *places.entry(&entry.node).or_insert_with(|| {
            nodes.push(Node { name: entry.node.clone(), ranks: Vec::new() });
            nodes.len() - 1
        });
        nodes[at].ranks.push(entry.image.rank);
    }
    nodes
}

/// Removes the checkpoints beyond `keep`, and what only they or a replaced one needed. Returns
/// the segments that are gone, or may be.
fn prune_beyond(
    store: &dyn Store,
    mut keep: Keep,
    replaced: bool,
    inventory: &mut Inventory,
) -> (Vec<SegmentId>, Result<()>) {
    let beyond = keep.newest != 0 && inventory.line().count() > keep.newest;
    if !beyond && !replaced {
        return (Vec::new(), Ok(()));
    }
    // Somebody reads (a verify, an export): nothing is taken away from under them.
    let _lock = match store.lock(Lock::ReadExclusive) {
        Ok(lock) => lock,
        Err(error) if error.kind() == Kind::Busy => return (Vec::new(), Ok(())),
        Err(error) => return (Vec::new(), Err(error.into())),
    };
    keep.versions = prune::kept_by_others(store, inventory, &keep);
    let plan = match store.list("") {
        Ok(objects) => prune::plan(inventory, &objects, &keep),
        Err(error) => return (Vec::new(), Err(error.into())),
    };
    let pruned = prune::execute(store, &plan);
    match &pruned {
        Ok(_) => {
            inventory.checkpoints.retain(|manifest| !plan.going.contains(&manifest.attempt));
        }
        // Some are gone, some are not; an old inventory at worst offers what is gone.
        Err(_) => look_again(store, inventory),
    }
    // Also those that stayed: nothing may refer to them any more.
    (plan.segment_ids().collect(), pruned.map(drop))
}
