//! What a commit does to a store: write images and manifests, prune what is beyond `keep`, take
//! files back.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use standfast_format::{
    AttemptId, HashKind, ImageRef, JobId, Kind, Level, Manifest, Node, Rank, SegmentId, SegmentRef,
    Stats, Version, Writes, name,
};
use standfast_store::{Lock, Store};

use crate::described::Described;
use crate::error::{Error, Result};
use crate::failpoint;
use crate::inventory::{Damaged, Inventory};
use crate::prune::{self, Keep};
use crate::publishing::{Published, Verdict};

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
        let putting = Instant::now();
        self.store.put(&name::image(order.version, order.attempt, rank), &bytes)?;
        let put_ns = elapsed_ns(putting);
        writes.pieces.add(stats.image_bytes, put_ns);
        writes.writes.add(stats.image_bytes, put_ns);
        stats.total_ns = elapsed_ns(started);
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
        let version = order.version;
        let manifest = self.join(order, ranks, entries);
        failpoint::pass("commit.before_manifest");
        let object = name::manifest(version, Level::Local);
        if let Err(error) = self.store.put(&object, &manifest.encode()) {
            let error = Error::from(error);
            return match in_doubt(&*self.store, inventory, object, &error, order.attempt) {
                true => Verdict::InDoubt(error),
                false => Verdict::Failed(error),
            };
        }
        failpoint::pass("commit.after_manifest");

        inventory.checkpoints.retain(|other| other.version != version);
        inventory.damaged.retain(|damaged| damaged.object != object);
        inventory.checkpoints.insert(0, manifest);
        Verdict::Committed(Published::default())
    }

    /// Prunes a store that nobody else prunes; `replaced`: whether a checkpoint of the same version
    /// was there before the newest.
    pub fn prune(&self, replaced: bool, inventory: &mut Inventory) -> Published {
        let (removed, pruned) = prune_beyond(&*self.store, self.keep(), replaced, inventory);
        // The checkpoint exists all the same; what stayed is tried again after the next one.
        let note = |error: Error| format!("older checkpoints were not pruned: {error}");
        Published { removed, notes: pruned.err().map(note).into_iter().collect() }
    }

    /// The manifest over the entries of all ranks.
    fn join(&self, order: Order, ranks: u32, entries: Vec<Entry>) -> Manifest {
        let mut seen = HashSet::new();
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

    /// Removes this node's pledge, as far as the store lets it: what stays is void.
    pub fn discard_pledge(&self, order: Order) {
        let _ = self.store.remove(&name::pledge(order.version, order.attempt));
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

/// The nodes of entries that are in the order of ranks, in the order of their first ranks.
fn nodes(entries: &[Entry]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for entry in entries {
        let at = *places.entry(&entry.node).or_insert_with(|| {
            nodes.push(Node { name: entry.node.clone(), ranks: Vec::new() });
            nodes.len() - 1
        });
        nodes[at].ranks.push(entry.image.rank);
    }
    nodes
}

fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Removes the checkpoints beyond `keep`, and what only they or a replaced one needed. Returns
/// the segments that are gone, or may be.
fn prune_beyond(
    store: &dyn Store,
    mut keep: Keep,
    replaced: bool,
    inventory: &mut Inventory,
) -> (Vec<SegmentId>, Result<()>) {
    let beyond = keep.newest != 0 && inventory.checkpoints.len() > keep.newest;
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
            inventory.checkpoints.retain(|manifest| !plan.remove.contains(&manifest.version));
        }
        // Some are gone, some are not; an old inventory at worst offers what is gone.
        Err(_) => {
            refresh(store, inventory);
        }
    }
    // Also those that stayed: nothing may refer to them any more.
    (plan.segment_ids().collect(), pruned.map(drop))
}
