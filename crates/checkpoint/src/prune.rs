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
//! - No segment goes that a kept checkpoint names. Where a manifest cannot be read nobody knows
//!   what it names, so then only checkpoints go, no segment and no image of unknown origin. The
//!   same holds while a node has pledged an attempt that nobody has committed or given up yet.

use std::collections::{HashMap, HashSet};

use standfast_format::{AttemptId, Kind, Manifest, SegmentId, Version, name};
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
    /// Attempts that are marked as damaged, besides those whose marks are in the listing.
    pub marked: HashSet<AttemptId>,
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
    fn held(&self, checkpoints: &[Manifest], listed: &HashSet<AttemptId>) -> Vec<bool> {
        let is_marked = |manifest: &Manifest| {
            self.marked.contains(&manifest.attempt) || listed.contains(&manifest.attempt)
        };
        // Where nothing else is left, marked ones are what somebody may still want to rescue.
        let none_sound = checkpoints.iter().all(is_marked);
        let mut sound = 0;
        let stays = |manifest: &Manifest| {
            let doubtful = !none_sound && is_marked(manifest);
            let recent = self.newest == 0 || sound < self.newest;
            sound += usize::from(!doubtful);
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
    let there: HashMap<&str, u64> =
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
    inventory.checkpoints.iter().find(is_whole).map(|manifest| manifest.version)
}

/// Checkpoints that would go but are needed by somebody now: a drain that is carrying them.
pub fn kept_by_others(store: &dyn Store, inventory: &Inventory, keep: &Keep) -> Vec<Version> {
    let held = keep.held(&inventory.checkpoints, &HashSet::new());
    let candidates = inventory.checkpoints.iter().zip(held);
    let candidates = candidates.filter(|(_, stays)| !stays).map(|(manifest, _)| manifest.version);
    // Who comes a moment later finds it gone and takes another.
    let is_kept = |version: &Version| {
        let asked = store.lock(Lock::Drop(version.0));
        asked.is_err_and(|error| error.kind() == Kind::Busy)
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
    let mut attempts: HashSet<AttemptId> = HashSet::new();
    let mut segments: HashSet<SegmentId> = HashSet::new();
    let held = keep.held(&inventory.checkpoints, &mark::attempts(objects));
    for (manifest, stays) in inventory.checkpoints.iter().zip(held) {
        if stays {
            plan.keep.push(manifest.version);
            attempts.insert(manifest.attempt);
            segments.extend(manifest.segments.iter().map(|segment| segment.id));
        } else {
            plan.remove.push(manifest.version);
        }
    }
    let going: HashSet<AttemptId> = inventory
        .checkpoints
        .iter()
        .filter(|manifest| plan.remove.contains(&manifest.version))
        .map(|manifest| manifest.attempt)
        .collect();
    let is_open = |attempt: &AttemptId| !attempts.contains(attempt) && !going.contains(attempt);
    let is_pledge = |object: &ObjectMeta| {
        name::parse_pledge(&object.name).is_some_and(|(_, attempt)| is_open(&attempt))
    };
    let pledged = !keep.drop_pledges && objects.iter().any(is_pledge);
    let all_known = plan.unreadable.is_empty() && !pledged;
    for object in objects {
        if given_up.iter().any(|damaged| damaged.object == object.name) {
            plan.manifests.push(object.clone());
        } else if let Some((version, _)) = name::parse_manifest(&object.name) {
            if plan.remove.contains(&version) {
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use standfast_format::{Digest, JobId, Level, SegmentRef, Stats, StoreHeader};

    fn manifest(sequence: u64, segments: &[u8]) -> Manifest {
        let reference = |id: &u8| SegmentRef {
            rank: standfast_format::Rank(0),
            id: SegmentId([*id; 16]),
            slots: 1,
            file_bytes: 1,
            index: Digest([0; 32]),
        };
        Manifest {
            job: JobId([0; 16]),
            version: Version(sequence),
            sequence,
            attempt: AttemptId([sequence as u8; 8]),
            level: Level::Local,
            taken_ns: 0,
            ranks: 1,
            images: vec![],
            segments: segments.iter().map(reference).collect(),
            stats: Stats::default(),
            writes: vec![],
            nodes: vec![],
        }
    }

    fn inventory(mut checkpoints: Vec<Manifest>) -> Inventory {
        checkpoints.reverse();
        let header =
            StoreHeader { id: JobId([0; 16]), job: "j".into(), key: [0; 32], created_ns: 0 };
        Inventory { header, checkpoints, damaged: vec![] }
    }

    fn listing(inventory: &Inventory, segments: &[u8]) -> Vec<ObjectMeta> {
        let meta = |name| ObjectMeta { name, bytes: 10 };
        let manifests = inventory.checkpoints.iter().flat_map(|manifest| {
            [
                meta(name::manifest(manifest.version, Level::Local)),
                meta(name::image(manifest.version, manifest.attempt, standfast_format::Rank(0))),
            ]
        });
        let segments = segments.iter().map(|id| meta(name::segment(SegmentId([*id; 16]))));
        manifests.chain(segments).chain([meta("store".into())]).collect()
    }

    #[test]
    fn shared_segments_stay_with_whoever_needs_them() {
        let inventory = inventory(vec![manifest(1, &[1]), manifest(2, &[1, 2]), manifest(3, &[2])]);
        let objects = listing(&inventory, &[1, 2, 9]);
        let plan = plan(&inventory, &objects, &Keep { newest: 1, ..Keep::default() });
        assert_eq!(plan.keep, [Version(3)]);
        assert_eq!(plan.remove, [Version(2), Version(1)]);
        let gone: Vec<_> =
            plan.segments.iter().filter_map(|o| name::parse_segment(&o.name)).collect();
        assert_eq!(gone, [SegmentId([1; 16]), SegmentId([9; 16])], "orphans go too");
        assert_eq!(plan.images.len(), 2);
    }

    #[test]
    fn an_unreadable_manifest_protects_files_of_unknown_use() {
        let mut inventory = inventory(vec![manifest(1, &[1]), manifest(2, &[2])]);
        let objects = listing(&inventory, &[1, 2, 9]);
        inventory.damaged.push(Damaged {
            object: "manifests/v0000000003.local".into(),
            error: crate::Unreadable::NoStore { place: String::new() },
        });
        let plan = plan(&inventory, &objects, &Keep { newest: 1, ..Keep::default() });
        assert!(plan.segments.is_empty());
        assert_eq!(plan.images.len(), 1);
        assert_eq!(plan.unreadable.len(), 1);
    }

    #[test]
    fn an_open_pledge_protects_files_of_unknown_use() {
        let inventory = inventory(vec![manifest(1, &[1]), manifest(2, &[2])]);
        let mut objects = listing(&inventory, &[1, 2, 9]);
        let pledge = |attempt| name::pledge(Version(3), AttemptId([attempt; 8]));
        objects.push(ObjectMeta { name: pledge(7), bytes: 10 });
        let keep = Keep { newest: 1, ..Keep::default() };
        let careful = plan(&inventory, &objects, &keep);
        assert_eq!((careful.segments.len(), careful.images.len()), (0, 1));
        let keep = Keep { drop_pledges: true, ..keep };
        let opening = plan(&inventory, &objects, &keep);
        assert_eq!((opening.segments.len(), opening.images.len()), (2, 2));
        objects.last_mut().unwrap().name = pledge(2);
        let keep = Keep { drop_pledges: false, ..keep };
        assert_eq!(plan(&inventory, &objects, &keep).segments.len(), 2, "it was committed");
    }

    #[test]
    fn a_damaged_manifest_is_given_up_only_when_asked_and_only_beside_a_good_one() {
        let object = "manifests/v0000000003.local";
        let damaged = |error| Damaged { object: object.into(), error };
        let corrupt = || damaged(crate::Unreadable::Told { why: "torn".into() });
        let mut some = inventory(vec![manifest(1, &[1])]);
        let mut objects = listing(&some, &[1, 9]);
        objects.push(ObjectMeta { name: object.into(), bytes: 10 });
        let keep = Keep { drop_damaged: true, ..Keep::default() };
        some.damaged.push(corrupt());
        let dropped = plan(&some, &objects, &keep);
        assert_eq!(dropped.manifests[0].name, object);
        assert_eq!(dropped.segments.len(), 1, "what only it may have needed goes with it");
        // A failing disk or a newer format is not damage.
        let place = String::new();
        some.damaged = vec![damaged(crate::Unreadable::NoStore { place })];
        assert!(plan(&some, &objects, &keep).is_empty());
        let mut none = inventory(vec![]);
        none.damaged.push(corrupt());
        assert!(plan(&none, &objects, &keep).is_empty());
    }

    #[test]
    fn of_so_many_one_stays_for_ever() {
        let inventory = inventory((1..=9).map(|at| manifest(at, &[at as u8])).collect());
        let keep = Keep { newest: 2, every: 4, ..Keep::default() };
        let plan = plan(&inventory, &listing(&inventory, &[]), &keep);
        assert_eq!(plan.keep, [9, 8, 4].map(Version));
    }

    fn mark_of(manifest: &Manifest) -> ObjectMeta {
        ObjectMeta { name: name::mark(manifest.version, manifest.attempt), bytes: 10 }
    }

    #[test]
    fn marked_ones_do_not_count_and_their_marks_go_with_them() {
        let inventory = inventory((1..=5).map(|at| manifest(at, &[at as u8])).collect());
        let mut objects = listing(&inventory, &[1, 2, 3, 4, 5]);
        // 5 and 3 are marked.
        objects.extend([0, 2].map(|at| mark_of(&inventory.checkpoints[at])));
        let keep = Keep { newest: 1, ..Keep::default() };
        let one = plan(&inventory, &objects, &keep);
        assert_eq!(one.keep, [5, 4].map(Version));
        let gone = |name: &str| one.images.iter().any(|object| object.name == name);
        assert!(gone(&objects[objects.len() - 1].name) && !gone(&objects[objects.len() - 2].name));
        let keep = Keep { newest: 2, ..Keep::default() };
        assert_eq!(plan(&inventory, &objects, &keep).keep, [5, 4, 3, 2].map(Version));
        let keep = Keep { drop_marked: true, ..keep };
        assert_eq!(plan(&inventory, &objects, &keep).keep, [4, 2].map(Version));
        // Known from another node.
        let marked = HashSet::from([inventory.checkpoints[0].attempt]);
        let keep = Keep { newest: 1, marked, ..Keep::default() };
        assert_eq!(plan(&inventory, &[], &keep).keep, [5, 4].map(Version));
    }

    #[test]
    fn where_all_are_marked_they_count_as_any() {
        let inventory = inventory(vec![manifest(1, &[1]), manifest(2, &[2])]);
        let objects: Vec<ObjectMeta> = inventory.checkpoints.iter().map(mark_of).collect();
        let keep = Keep { newest: 1, drop_marked: true, ..Keep::default() };
        assert_eq!(plan(&inventory, &objects, &keep).keep, [Version(2)]);
        assert_eq!(newest_whole(&inventory, &objects), None);
    }

    #[test]
    fn the_newest_that_is_whole_is_found() {
        let inventory = inventory(vec![manifest(1, &[1]), manifest(2, &[1, 2])]);
        let mut objects = listing(&inventory, &[1]);
        // The listing of these tests has ten bytes for everything, references have one.
        objects.iter_mut().for_each(|object| object.bytes = 1);
        assert_eq!(newest_whole(&inventory, &objects), Some(Version(1)), "2 lacks a segment");
        assert_eq!(newest_whole(&inventory, &[]), None);
        objects.push(mark_of(&inventory.checkpoints[1]));
        assert_eq!(newest_whole(&inventory, &objects), None, "1 is marked");
    }

    proptest! {
        #[test]
        fn no_plan_takes_what_a_kept_checkpoint_needs(
            needs in proptest::collection::vec(proptest::collection::vec(0u8..12, 0..5), 1..10),
            newest in 0usize..6,
            marks: [bool; 10],
        ) {
            let inventory = inventory(
                needs.iter().zip(1..).map(|(segments, at)| manifest(at, segments)).collect(),
            );
            let mut objects = listing(&inventory, &(0..12).collect::<Vec<u8>>());
            let marked = inventory.checkpoints.iter().zip(marks).filter(|(_, marked)| *marked);
            objects.extend(marked.map(|(manifest, _)| mark_of(manifest)));
            let plan = plan(&inventory, &objects, &Keep { newest, ..Keep::default() });
            let sound = inventory.checkpoints.iter().zip(marks).find(|(_, marked)| !marked);
            prop_assert!(sound.is_none_or(|(sound, _)| plan.keep.contains(&sound.version)));
            prop_assert!(!plan.keep.is_empty(), "the newest always stays");
            prop_assert_eq!(plan.keep[0], inventory.checkpoints[0].version);
            for manifest in &inventory.checkpoints {
                if plan.keep.contains(&manifest.version) {
                    for segment in &manifest.segments {
                        let name = name::segment(segment.id);
                        prop_assert!(plan.segments.iter().all(|object| object.name != name));
                    }
                }
            }
        }
    }
}
