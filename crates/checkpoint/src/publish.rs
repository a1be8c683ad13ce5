//! Publishing: images, then the manifest, then the pruning of what is beyond `keep`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use standfast_format::{
    AttemptId, HashKind, Image, ImageRef, JobId, Kind, Level, Manifest, Node, Rank, Reference,
    RegionImage, SegmentId, SegmentRef, Stats, Tally, Version, Writes, name,
};
use standfast_store::{Lock, Store};

use crate::error::{Error, Result};
use crate::failpoint;
use crate::inventory::{Damaged, Inventory};
use crate::prune::{self, Keep};

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

/// One rank's part of a checkpoint before it is written.
pub struct Draft {
    /// Whose part.
    pub rank: Rank,
    /// Its regions; runs name segments by their place in `table`.
    pub regions: Vec<RegionImage>,
    /// Segments by id, and the reference where it was known before this checkpoint.
    pub table: Vec<(SegmentId, Option<SegmentRef>)>,
    /// Pages of these regions that other ranks store, where that is written down.
    pub references: Option<Vec<Reference>>,
    /// Its figures.
    pub stats: Stats,
    /// When it was begun.
    pub started: Instant,
    /// What its segments were made of.
    pub pieces: Tally,
    /// How its segments were written.
    pub writes: Tally,
}

/// One rank's part of a manifest.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Part {
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

/// What a commit did besides making the checkpoint.
#[derive(Debug, Default)]
pub struct Published {
    /// Segments that are gone, or may be.
    pub removed: Vec<SegmentId>,
    /// What its reader should know.
    pub notes: Vec<String>,
}

/// A commit that failed.
#[derive(Debug)]
pub struct Unpublished {
    /// Why.
    pub error: Error,
    /// The manifest may exist all the same: what it names must stay.
    pub files_stay: bool,
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
    /// Writes one rank's image; `new`: the segments that this checkpoint has sealed.
    pub fn write_image(&self, order: Order, draft: Draft, new: &[SegmentRef]) -> Result<Part> {
        let Draft { rank, regions, table, references, mut stats, started, pieces, writes } = draft;
        let mut writes = Writes { rank, pieces, writes };
        let segments = table
            .into_iter()
            .map(|(id, known)| resolve(id, known, new))
            .collect::<Result<Vec<SegmentRef>>>()?;
        let image = Image {
            job: self.job,
            version: order.version,
            rank,
            page_bytes: self.page_bytes,
            hash: self.hash,
            segments: segments.clone(),
            regions,
            references,
        };
        let (bytes, digest) = image.encode();
        stats.image_bytes = bytes.len() as u64;
        stats.rank_bytes_max = stats.segment_bytes + stats.image_bytes;
        let putting = Instant::now();
        self.store.put(&name::image(order.version, order.attempt, rank), &bytes)?;
        let put_ns = elapsed_ns(putting);
        writes.pieces.add(stats.image_bytes, put_ns);
        writes.writes.add(stats.image_bytes, put_ns);
        stats.total_ns = elapsed_ns(started);
        let image = ImageRef { rank, file_bytes: stats.image_bytes, digest };
        Ok(Part { image, segments, stats, writes, node: self.node.clone() })
    }

    /// What pruning leaves.
    pub fn keep(&self) -> Keep {
        Keep { newest: self.keep as usize, every: self.every, ..Keep::default() }
    }

    /// Writes the manifest over all parts, and prunes. `place`: its sequence and how many ranks
    /// there are. The inventory is kept up to date.
    pub fn publish(
        &self,
        order: Order,
        place: (u64, u32),
        parts: Vec<Part>,
        inventory: &mut Inventory,
    ) -> std::result::Result<Published, Unpublished> {
        let replaced = self.write_manifest(order, place, parts, inventory)?;
        let (removed, pruned) = prune_beyond(&*self.store, self.keep(), replaced, inventory);
        // The checkpoint exists all the same; what stayed is tried again after the next one.
        let note = |error: Error| format!("older checkpoints were not pruned: {error}");
        let notes = pruned.err().map(note).into_iter().collect();
        Ok(Published { removed, notes })
    }

    /// Writes the manifest only; tells whether it took the place of another of that version.
    pub fn write_manifest(
        &self,
        order: Order,
        place: (u64, u32),
        parts: Vec<Part>,
        inventory: &mut Inventory,
    ) -> std::result::Result<bool, Unpublished> {
        let version = order.version;
        let manifest = self.join(order, place, parts);
        failpoint::pass("commit.before_manifest");
        let object = name::manifest(version, Level::Local);
        if let Err(error) = self.store.put(&object, &manifest.encode()) {
            let error = Error::from(error);
            let files_stay = in_doubt(&*self.store, inventory, object, &error, order.attempt);
            return Err(Unpublished { error, files_stay });
        }
        failpoint::pass("commit.after_manifest");

        let before = inventory.checkpoints.len();
        inventory.checkpoints.retain(|other| other.version != version);
        inventory.damaged.retain(|damaged| damaged.object != object);
        let replaced = inventory.checkpoints.len() < before;
        inventory.checkpoints.insert(0, manifest);
        Ok(replaced)
    }

    /// The manifest of all ranks' parts; `place`: its sequence and how many ranks there are.
    fn join(&self, order: Order, (sequence, ranks): (u64, u32), parts: Vec<Part>) -> Manifest {
        let mut seen = HashSet::new();
        let segments = parts.iter().flat_map(|part| &part.segments);
        let segments = segments.filter(|segment| seen.insert(segment.id)).copied().collect();
        let stats = parts.iter().fold(Stats::default(), |all, part| all.join(part.stats));
        Manifest {
            job: self.job,
            version: order.version,
            sequence,
            attempt: order.attempt,
            level: Level::Local,
            taken_ns: order.taken_ns,
            ranks,
            writes: parts.iter().map(|part| part.writes.clone()).collect(),
            nodes: nodes(&parts),
            images: parts.into_iter().map(|part| part.image).collect(),
            segments,
            stats,
        }
    }

    /// Gives the space of one rank's part of a failed attempt back, as far as the store lets it.
    pub fn discard(&self, version: Version, attempt: AttemptId, rank: Rank, own: &[SegmentId]) {
        // Most are not there, and what stays goes with the next prune or opening.
        let _ = self.store.remove(&name::image(version, attempt, rank));
        for id in own {
            let _ = self.store.remove(&name::segment(*id));
        }
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

/// The nodes of parts that are in the order of ranks, in the order of their first ranks.
fn nodes(parts: &[Part]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for part in parts {
        let at = *places.entry(&part.node).or_insert_with(|| {
            nodes.push(Node { name: part.node.clone(), ranks: Vec::new() });
            nodes.len() - 1
        });
        nodes[at].ranks.push(part.image.rank);
    }
    nodes
}

fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn resolve(id: SegmentId, known: Option<SegmentRef>, new: &[SegmentRef]) -> Result<SegmentRef> {
    known
        .or_else(|| new.iter().find(|segment| segment.id == id).copied())
        .ok_or(Error::Unsealed { segment: id })
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
