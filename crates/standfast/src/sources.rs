//! The plan of a restart: from which level the parts of a checkpoint come. Pure.
//!
//! Data: what the levels say of a checkpoint, and what the stores of the nodes hold before and after
//! the ring was asked -> [`Plan`]: a level for each rank, and for each segment the file it is read
//! from.
//!
//! Nearest first: what a node has is read there; what the ring has brought back lies on a node
//! again; only what is left comes from global storage.
//!
//! Why references are exchanged: the same segment is compressed anew on its way to global storage.
//! Slots and hashes are the same there, length and index are not.
//!
//! Invariants:
//! - All ranks make the same plan: they have been told the same.

use std::collections::{HashMap, HashSet};

use standfast_format::{Image, Level, Manifest, Rank, SegmentId, SegmentRef};
use standfast_restart::Inventory;

/// One checkpoint as the levels know it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// What the stores of the nodes say; the ring is behind them.
    pub(crate) local: Option<Manifest>,
    /// What global storage says.
    pub(crate) global: Option<Manifest>,
}

impl Found {
    /// What both say alike: version, ranks, place in the order of commits.
    pub(crate) fn manifest(&self) -> &Manifest {
        self.local.as_ref().or(self.global.as_ref()).expect("one level has it")
    }
}

/// The checkpoints of all levels, newest first.
pub(crate) fn merge(local: &Inventory, global: &[Manifest]) -> Vec<Found> {
    let mut all: Vec<Found> = local
        .checkpoints
        .iter()
        .map(|manifest| Found { local: Some(manifest.clone()), global: None })
        .collect();
    for manifest in global {
        let same = |found: &&mut Found| found.manifest().attempt == manifest.attempt;
        match all.iter_mut().find(same) {
            Some(found) => found.global = Some(manifest.clone()),
            None => all.push(Found { local: None, global: Some(manifest.clone()) }),
        }
    }
    all.sort_by_key(|found| {
        let manifest = found.manifest();
        std::cmp::Reverse((manifest.sequence, manifest.taken_ns))
    });
    all
}

/// What the stores of the nodes hold of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) segments: HashSet<SegmentId>,
    pub(crate) images: HashSet<Rank>,
}

impl Held {
    /// Everything that a checkpoint names.
    pub(crate) fn all(manifest: &Manifest) -> Self {
        Self {
            segments: manifest.segments.iter().map(|segment| segment.id).collect(),
            images: manifest.images.iter().map(|image| image.rank).collect(),
        }
    }
}

/// Where everything comes from.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// By rank: the farthest level that a part of it comes from.
    pub(crate) levels: Vec<Level>,
    /// How segments are referred to where they are read.
    references: HashMap<SegmentId, SegmentRef>,
    away: HashSet<SegmentId>,
    images_away: HashSet<Rank>,
}

/// Plans a restart, given what the nodes held before and hold now.
pub(crate) fn plan(found: &Found, before: &Held, now: &Held) -> Plan {
    let manifest = found.manifest();
    let mut plan = Plan::default();
    if let Some(local) = &found.local {
        plan.references.extend(local.segments.iter().map(|segment| (segment.id, *segment)));
    }
    if let Some(global) = &found.global {
        for segment in global.segments.iter().filter(|own| !now.segments.contains(&own.id)) {
            plan.references.insert(segment.id, *segment);
            plan.away.insert(segment.id);
        }
        let images = global.images.iter().map(|image| image.rank);
        plan.images_away = images.filter(|rank| !now.images.contains(rank)).collect();
    }
    let mut levels = vec![Level::Local; manifest.ranks as usize];
    let mut reached = |rank: Rank, is_away: bool, was_here: bool| {
        if let Some(level) = levels.get_mut(rank.0 as usize) {
            let own = match (is_away, was_here) {
                (true, _) => Level::Global,
                (false, true) => Level::Local,
                (false, false) => Level::Ring,
            };
            *level = (*level).max(own);
        }
    };
    for segment in &manifest.segments {
        let (is_away, was_here) = (plan.is_away(segment), before.segments.contains(&segment.id));
        reached(segment.rank, is_away, was_here);
    }
    for image in &manifest.images {
        let is_away = plan.is_image_away(image.rank);
        reached(image.rank, is_away, before.images.contains(&image.rank));
    }
    plan.levels = levels;
    plan
}

impl Plan {
    /// Whether a segment is read from global storage.
    pub(crate) fn is_away(&self, segment: &SegmentRef) -> bool {
        self.away.contains(&segment.id)
    }

    /// Whether the image of a rank is.
    pub(crate) fn is_image_away(&self, rank: Rank) -> bool {
        self.images_away.contains(&rank)
    }

    /// Whether anything is.
    pub(crate) fn needs_global(&self) -> bool {
        !self.away.is_empty() || !self.images_away.is_empty()
    }

    /// The segments that no node has.
    pub(crate) fn away(&self) -> impl Iterator<Item = SegmentId> {
        self.away.iter().copied()
    }

    /// Lets an image refer to segments as they are where they will be read.
    pub(crate) fn resolve(&self, mut image: Image) -> Image {
        for segment in &mut image.segments {
            if let Some(reference) = self.references.get(&segment.id) {
                *segment = *reference;
            }
        }
        image
    }

    /// The plan in words: `ranks 0-2 from local, rank 3 from global`.
    pub(crate) fn describe(&self) -> String {
        let mut parts = Vec::new();
        let mut first = 0;
        for alike in self.levels.chunk_by(|a, b| a == b) {
            let last = first + alike.len() - 1;
            let ranks = match alike.len() {
                1 => format!("rank {first}"),
                _ => format!("ranks {first}-{last}"),
            };
            parts.push(format!("{ranks} from {}", alike[0].name()));
            first = last + 1;
        }
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use standfast_format::{AttemptId, Digest, ImageRef, JobId, Stats, StoreHeader, Version};

    use super::*;

    fn segment(id: u8, rank: u32, file_bytes: u64) -> SegmentRef {
        let id = SegmentId([id; 16]);
        SegmentRef { id, rank: Rank(rank), slots: 1, file_bytes, index: Digest([0; 32]) }
    }

    fn manifest(sequence: u64, level: Level, file_bytes: u64) -> Manifest {
        let image = |rank| ImageRef { rank: Rank(rank), file_bytes, digest: Digest([0; 32]) };
        Manifest {
            job: JobId([0; 16]),
            version: Version(sequence),
            sequence,
            attempt: AttemptId([sequence as u8; 8]),
            level,
            taken_ns: 0,
            ranks: 3,
            images: (0..3).map(image).collect(),
            segments: (0..3).map(|at| segment(at as u8, at, file_bytes)).collect(),
            stats: Stats::default(),
            writes: vec![],
            nodes: vec![],
        }
    }

    fn both() -> Found {
        let (local, global) = (manifest(1, Level::Local, 10), manifest(1, Level::Global, 5));
        Found { local: Some(local), global: Some(global) }
    }

    #[test]
    fn the_nearest_level_of_each_rank_is_taken() {
        let found = both();
        let all = Held::all(found.manifest());
        let near = plan(&found, &all, &all);
        assert_eq!(near.describe(), "ranks 0-2 from local");
        assert!(!near.needs_global());
        // Node of rank 1 is wiped and rebuilt by the ring; that of rank 2 is lost for good.
        let without = |ids: &[u8]| Held {
            segments: (0..3).filter(|id| !ids.contains(id)).map(|id| SegmentId([id; 16])).collect(),
            images: (0..3).filter(|id| !ids.contains(id)).map(|id| Rank(id.into())).collect(),
        };
        let mixed = plan(&found, &without(&[1, 2]), &without(&[2]));
        assert_eq!(mixed.describe(), "rank 0 from local, rank 1 from ring, rank 2 from global");
        assert!(mixed.is_away(&segment(2, 2, 10)) && !mixed.is_away(&segment(1, 1, 10)));
        assert!(mixed.is_image_away(Rank(2)) && !mixed.is_image_away(Rank(1)));
        let image = Image {
            job: JobId([0; 16]),
            version: Version(1),
            rank: Rank(0),
            page_bytes: 4096,
            hash: standfast_format::HashKind::Xxh3,
            segments: vec![segment(0, 0, 10), segment(2, 2, 10)],
            regions: vec![],
            references: None,
        };
        let lengths: Vec<u64> =
            mixed.resolve(image).segments.iter().map(|own| own.file_bytes).collect();
        assert_eq!(lengths, [10, 5], "each as it lies where it is read");
    }

    #[test]
    fn a_machine_without_anything_takes_all_from_global() {
        let found = Found { local: None, ..both() };
        let plan = plan(&found, &Held::default(), &Held::default());
        assert_eq!(plan.describe(), "ranks 0-2 from global");
        assert_eq!(plan.away().count(), 3);
    }

    #[test]
    fn what_no_level_has_is_not_looked_for_elsewhere() {
        let found = Found { global: None, ..both() };
        let plan = plan(&found, &Held::default(), &Held::default());
        assert!(!plan.needs_global());
    }

    #[test]
    fn levels_are_merged_newest_first() {
        let header =
            StoreHeader { id: JobId([0; 16]), job: "j".into(), key: [0; 32], created_ns: 0 };
        let local = |sequence| manifest(sequence, Level::Local, 10);
        let checkpoints = vec![local(4), local(2)];
        let inventory = Inventory { header, checkpoints, damaged: vec![] };
        let global = |sequence| manifest(sequence, Level::Global, 5);
        let all = merge(&inventory, &[global(5), global(4), global(1)]);
        let seen: Vec<_> = all
            .iter()
            .map(|one| (one.manifest().sequence, one.local.is_some(), one.global.is_some()))
            .collect();
        let expected = [(5, false, true), (4, true, true), (2, true, false), (1, false, true)];
        assert_eq!(seen, expected);
    }
}
