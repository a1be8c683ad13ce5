//! Pruning: which checkpoints and files may go. The plan is pure; carrying it out is one place.
//!
//! Data: inventory and listing -> [`plan`] -> [`Plan`], shown to people first -> [`execute`].
//!
//! Order: manifests first, then images, then segments. A crash in between leaves files that no
//! manifest names; the next plan takes them along. Never the other way round: a manifest whose
//! files are gone would be a checkpoint that cannot be restored.
//!
//! Invariants:
//! - The newest checkpoint always stays, and so does the newest that is not marked as damaged
//!   ([`mark`]): marked ones do not count among those that are kept.
//! - What is abandoned neither counts nor goes, unless it is named.
//! - No segment goes that a kept checkpoint names. Where a manifest cannot be read nobody knows
//!   what it names, so then only checkpoints go, no segment and no image of unknown origin. The
//!   same holds while a node has pledged an attempt that nobody has committed or given up yet.

use std::collections::{BTreeMap, BTreeSet};

use standfast_format::name::{self, ManifestName};
use standfast_format::{AttemptId, Kind, Manifest, SegmentId, Version};
use standfast_store::{Lock, ObjectMeta, Store};

use crate::error::Result;
use crate::inventory::{Damaged, Inventory};
use crate::{failpoint, mark};

/// What pruning would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Checkpoints that stay, newest first.
    pub keep: Vec<Version>,
    /// Checkpoints that go, newest first.
    pub remove: Vec<Version>,
    /// The attempts of these.
    pub going: BTreeSet<AttemptId>,
    /// Manifests that go.
    pub manifests: Vec<ObjectMeta>,
    /// Images that go, with shards, records, pledges and marks of their checkpoints.
    pub images: Vec<ObjectMeta>,
    /// Segments that go.
    pub segments: Vec<ObjectMeta>,
    /// Manifests that cannot be read, because of which files of unknown use stay.
    pub unreadable: Vec<String>,
}

impl Plan {
    /// Bytes that come free.
    pub fn bytes(&self) -> u64 {
        self.objects().map(|object| object.bytes).sum()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.objects().next().is_none()
    }

    /// The ids of the segments that go.
    pub fn segment_ids(&self) -> impl Iterator<Item = SegmentId> {
        self.segments.iter().filter_map(|object| name::parse_segment(&object.name))
    }

    fn objects(&self) -> impl Iterator<Item = &ObjectMeta> {
        self.manifests.iter().chain(&self.images).chain(&self.segments)
    }
}

/// What to keep.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// So many of the newest that are not marked; 0: all. Marked ones between them stay too.
    pub newest: usize,
    /// These versions in any case.
    pub versions: Vec<Version>,
    /// These go, by name, unless one is the newest. That is the only way for what is abandoned.
    pub named: BTreeSet<AttemptId>,
    /// Attempts that are marked as damaged, besides those whose marks are in the listing.
    pub marked: BTreeSet<AttemptId>,
    /// Marked checkpoints go first, as long as one without a mark is there.
    pub drop_marked: bool,
    /// Of so many, counted over all checkpoints of the job, one in any case; 0: none.
    pub every: u64,
    /// Give up checkpoints whose manifests are damaged. Manifests that cannot be read for another
    /// reason (a failing disk, a newer format) stay, and what they may need with them.
    pub drop_damaged: bool,
    /// Pledges of attempts that were never committed are void. Otherwise they stay, and with them
    /// what they may name: the next opening of all stores commits it.
    pub drop_pledges: bool,
}

impl Keep {
    /// Which of some checkpoints stay, newest first.
    fn held(&self, checkpoints: &[Manifest], listed: &BTreeSet<AttemptId>) -> Vec<bool> {
        let is_marked = |manifest: &Manifest| {
            self.marked.contains(&manifest.attempt) || listed.contains(&manifest.attempt)
        };
        let newest = checkpoints.first();
        let is_abandoned =
            |manifest: &Manifest| newest.is_some_and(|newest| newest.abandons(manifest.sequence));
        // Where nothing else is left, marked ones are what somebody may still want to rescue.
        let none_intact = checkpoints.iter().filter(|own| !is_abandoned(own)).all(is_marked);
        let (mut intact, mut versions) = (0, BTreeSet::new());
        let stays = |manifest: &Manifest| {
            let is_newest = newest.is_some_and(|newest| newest.attempt == manifest.attempt);
            if self.named.contains(&manifest.attempt) && !is_newest {
                return false;
            }
            if is_abandoned(manifest) {
                return true;
            }
            let replaced = !versions.insert(manifest.version);
            if replaced {
                return false;
            }
            let doubtful = !none_intact && is_marked(manifest);
            let recent = self.newest == 0 || intact < self.newest;
            intact += usize::from(!doubtful);
            (recent && !(doubtful && self.drop_marked))
                || self.versions.contains(&manifest.version)
                || (self.every > 0 && manifest.sequence.is_multiple_of(self.every))
        };
        checkpoints.iter().map(stays).collect()
    }
}

/// The newest checkpoint that is not marked and whose files are all there, by a listing; `None` if
/// none is.
pub fn newest_whole(inventory: &Inventory, objects: &[ObjectMeta]) -> Option<Version> {
    let there: BTreeMap<&str, u64> =
        objects.iter().map(|object| (object.name.as_str(), object.bytes)).collect();
    let is_there = |name: String, bytes: u64| there.get(name.as_str()) == Some(&bytes);
    let marked = mark::attempts(objects);
    let is_whole = |manifest: &&Manifest| {
        let mut segments = manifest.segments.iter();
        let mut images = manifest.images.iter();
        !marked.contains(&manifest.attempt)
            && segments.all(|segment| is_there(name::segment(segment.id), segment.file_bytes))
            && images.all(|image| {
                let object = name::image(manifest.version, manifest.attempt, image.rank);
                is_there(object, image.file_bytes)
            })
    };
    inventory.line().find(is_whole).map(|manifest| manifest.version)
}

/// Checkpoints that would go but are needed by somebody now: a drain that is carrying them.
pub fn kept_by_others(store: &dyn Store, inventory: &Inventory, keep: &Keep) -> Vec<Version> {
    let held = keep.held(&inventory.checkpoints, &BTreeSet::new());
    let candidates = inventory.checkpoints.iter().zip(held);
    let candidates = candidates.filter(|(_, stays)| !stays).map(|(manifest, _)| manifest.version);
    // Who comes a moment later finds it gone and takes another. Where nobody can be asked it stays.
    let is_kept = |version: &Version| {
        let asked = store.lock(Lock::Drop(version.0));
        asked.is_err_and(|error| error.kind() != Kind::Unsupported)
    };
    candidates.filter(is_kept).collect()
}

/// Plans what may go, from the manifests and the listing of all objects.
pub fn plan(inventory: &Inventory, objects: &[ObjectMeta], keep: &Keep) -> Plan {
    // Where nothing else is left, damaged ones are what somebody may still want to rescue.
    let drop_damaged = keep.drop_damaged && !inventory.checkpoints.is_empty();
    let (given_up, unreadable): (Vec<&Damaged>, Vec<&Damaged>) = inventory
        .damaged
        .iter()
        .partition(|damaged| drop_damaged && damaged.error.kind() == Kind::Corrupt);
    let mut plan = Plan {
        unreadable: unreadable.iter().map(|damaged| damaged.object.clone()).collect(),
        ..Plan::default()
    };
    let mut attempts: BTreeSet<AttemptId> = BTreeSet::new();
    let mut segments: BTreeSet<SegmentId> = BTreeSet::new();
    let held = keep.held(&inventory.checkpoints, &mark::attempts(objects));
    for (manifest, stays) in inventory.checkpoints.iter().zip(held) {
        if stays {
            plan.keep.push(manifest.version);
            attempts.insert(manifest.attempt);
            segments.extend(manifest.segments.iter().map(|segment| segment.id));
        } else {
            plan.remove.push(manifest.version);
            plan.going.insert(manifest.attempt);
        }
    }
    let going = plan.going.clone();
    let manifests = manifest_names(inventory, objects);
    let is_open = |attempt: &AttemptId| !attempts.contains(attempt) && !going.contains(attempt);
    let is_pledge = |object: &ObjectMeta| {
        name::parse_pledge(&object.name).is_some_and(|(_, attempt)| is_open(&attempt))
    };
    let pledged = !keep.drop_pledges && objects.iter().any(is_pledge);
    let all_known = plan.unreadable.is_empty() && !pledged;
    for object in objects {
        if given_up.iter().any(|damaged| damaged.object == object.name) {
            plan.manifests.push(object.clone());
        } else if name::parse_manifest(&object.name).is_some() {
            let attempt = manifests.get(object.name.as_str());
            if attempt.is_some_and(|attempt| going.contains(attempt)) {
                plan.manifests.push(object.clone());
            }
        } else if let Some(attempt) = attempt_of(&object.name) {
            // What a committed attempt was pledged with nobody needs any more.
            let redeemed =
                attempts.contains(&attempt) && name::parse_pledge(&object.name).is_some();
            let orphan = all_known && !attempts.contains(&attempt);
            if going.contains(&attempt) || redeemed || orphan {
                plan.images.push(object.clone());
            }
        } else if let Some(id) = name::parse_segment(&object.name)
            && all_known
            && !segments.contains(&id)
        {
            plan.segments.push(object.clone());
        }
    }
    plan
}

/// Whose manifest each listed name is. The name without attempt is that of the manifest of its
/// version that has no other.
fn manifest_names<'o>(
    inventory: &Inventory,
    objects: &'o [ObjectMeta],
) -> BTreeMap<&'o str, AttemptId> {
    let listed: BTreeMap<&str, ManifestName> = objects
        .iter()
        .filter_map(|object| Some((object.name.as_str(), name::parse_manifest(&object.name)?)))
        .collect();
    let full = |own: &Manifest| name::manifest_of(own.version, own.attempt, own.level);
    let is_of = |name: &ManifestName, own: &&Manifest| {
        let named = || listed.contains_key(full(own).as_str());
        name.is_of(own) && (name.attempt.is_some() || !named())
    };
    let own = |name: &ManifestName| inventory.checkpoints.iter().find(|own| is_of(name, own));
    listed.iter().filter_map(|(object, name)| Some((*object, own(name)?.attempt))).collect()
}

/// The attempt that an image, also one that waits for others, a shard, a record of level ring, a
/// pledge or a mark belongs to.
fn attempt_of(object: &str) -> Option<AttemptId> {
    let image = name::parse_image(object).map(|(_, attempt, _)| attempt);
    let shard = || name::parse_shard(object).map(|(_, attempt, _)| attempt);
    let record = || name::parse_ring(object).map(|(_, attempt)| attempt);
    let pledge = || name::parse_pledge(object).map(|(_, attempt)| attempt);
    let part = || name::parse_part(object).map(|(_, attempt, _)| attempt);
    let mark = || name::parse_mark(object).map(|(_, attempt)| attempt);
    image.or_else(shard).or_else(record).or_else(pledge).or_else(part).or_else(mark)
}

/// Removes an object. If it is gone somebody else was faster; a store that only says so must not
/// make anybody go on to what the object refers to, so it is asked twice.
fn remove(store: &dyn Store, object: &ObjectMeta) -> Result<()> {
    match store.remove(&object.name) {
        Err(error) if error.kind() == Kind::Missing => {
            let dir = object.name.rsplit_once('/').map_or("", |(dir, _)| dir);
            let listed = store.list(dir)?;
            let there = listed.iter().any(|other| other.name == object.name);
            if there { Err(error.into()) } else { Ok(()) }
        }
        removed => Ok(removed?),
    }
}

/// Carries a plan out; returns the segments that are gone.
pub fn execute(store: &dyn Store, plan: &Plan) -> Result<Vec<SegmentId>> {
    let steps = [
        ("prune.before_manifest", &plan.manifests),
        ("prune.before_image", &plan.images),
        ("prune.before_segment", &plan.segments),
    ];
    for (point, objects) in steps {
        for object in objects {
            failpoint::pass(point);
            remove(store, object)?;
        }
    }
    Ok(plan.segment_ids().collect())
}

#[cfg(test)]
mod tests;
