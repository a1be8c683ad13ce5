//! The plan of a restart: from which level the parts of a checkpoint come. Pure.
//!
//! Data: what the levels say of a checkpoint, and what the stores of the nodes hold before and after
//! the ring was asked -> [`RestartPlan`]: a level for each rank, and for each segment the file it is read
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

use std::collections::{BTreeMap, BTreeSet};

use standfast_checkpoint::Inventory;
use standfast_format::{Image, Level, Manifest, Rank, SegmentId, SegmentRef};

/// One checkpoint as the levels know it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What the stores of the nodes say; the ring is behind them.
    pub local: Option<Manifest>,
    /// What global storage says.
    pub global: Option<Manifest>,
}

impl Candidate {
    /// What both say alike: version, ranks, place in the order of commits.
    pub fn manifest(&self) -> &Manifest {
        self.local.as_ref().or(self.global.as_ref()).expect("one level has it")
    }
}

/// The checkpoints of all levels, newest first.
pub fn merge(local: &Inventory, global: &[Manifest]) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = local
        .checkpoints
        .iter()
        .map(|manifest| Candidate { local: Some(manifest.clone()), global: None })
        .collect();
    for manifest in global {
        let same = |candidate: &&mut Candidate| candidate.manifest().attempt == manifest.attempt;
        match all.iter_mut().find(same) {
            Some(candidate) => candidate.global = Some(manifest.clone()),
            None => all.push(Candidate { local: None, global: Some(manifest.clone()) }),
        }
    }
    all.sort_by_key(|candidate| {
        let manifest = candidate.manifest();
        std::cmp::Reverse((manifest.sequence, manifest.taken_ns))
    });
    all
}

/// Takes those out that the newest has abandoned.
pub fn split_line(all: Vec<Candidate>) -> (Vec<Candidate>, Vec<Candidate>) {
    let newest = all.first().map(|newest| newest.manifest().abandoned.clone()).unwrap_or_default();
    let is_abandoned =
        |one: &Candidate| newest.iter().any(|left| left.has(one.manifest().sequence));
    let (abandoned, line) = all.into_iter().partition(is_abandoned);
    (line, abandoned)
}

/// What the stores of the nodes hold of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredParts {
    pub(crate) segments: BTreeSet<SegmentId>,
    pub(crate) images: BTreeSet<Rank>,
}

impl StoredParts {
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
pub(crate) struct RestartPlan {
    /// By rank: the farthest level that a part of it comes from.
    pub(crate) levels: Vec<Level>,
    /// How segments are referred to where they are read.
    references: BTreeMap<SegmentId, SegmentRef>,
    away: BTreeSet<SegmentId>,
    images_away: BTreeSet<Rank>,
}

impl RestartPlan {
    /// Plans a restart, given what the nodes held before and hold now.
    pub(crate) fn new(candidate: &Candidate, before: &StoredParts, now: &StoredParts) -> Self {
        let manifest = candidate.manifest();
        let mut plan = Self::default();
        if let Some(local) = &candidate.local {
            plan.references.extend(local.segments.iter().map(|segment| (segment.id, *segment)));
        }
        if let Some(global) = &candidate.global {
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
            let (is_away, was_here) =
                (plan.is_away(segment), before.segments.contains(&segment.id));
            reached(segment.rank, is_away, was_here);
        }
        for image in &manifest.images {
            let is_away = plan.is_image_away(image.rank);
            reached(image.rank, is_away, before.images.contains(&image.rank));
        }
        plan.levels = levels;
        plan
    }

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
mod tests;
