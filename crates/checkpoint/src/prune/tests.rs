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
        abandoned: vec![],
    }
}

fn inventory(mut checkpoints: Vec<Manifest>) -> Inventory {
    checkpoints.reverse();
    let header = StoreHeader { id: JobId([0; 16]), job: "j".into(), key: [0; 32], created_ns: 0 };
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

/// Two lines: 2 and 3 were abandoned by a run that went back to 1; its first is a 2 again.
fn two_lines() -> Inventory {
    let abandoned = vec![standfast_format::Abandoned { first: 2, last: 3 }];
    let next = |sequence, version| Manifest {
        version: Version(version),
        abandoned: abandoned.clone(),
        ..manifest(sequence, &[sequence as u8])
    };
    let old = (1..=3).map(|sequence| manifest(sequence, &[sequence as u8]));
    inventory(old.chain([next(4, 2), next(5, 7)]).collect())
}

fn objects_of_two_lines(inventory: &Inventory) -> Vec<ObjectMeta> {
    let mut objects = listing(inventory, &[1, 2, 3, 4, 5]);
    // The name of version 2 belongs to the abandoned one: the other has its attempt in it.
    let second = &inventory.checkpoints[1];
    let plain = name::manifest(second.version, Level::Local);
    let at = objects.iter().position(|object| object.name == plain).unwrap();
    objects[at].name = name::manifest_of(second.version, second.attempt, Level::Local);
    objects
}

#[test]
fn what_is_abandoned_neither_counts_nor_goes() {
    let inventory = two_lines();
    let objects = objects_of_two_lines(&inventory);
    let plan = plan(&inventory, &objects, &Keep { newest: 1, ..Keep::default() });
    let numbers = |versions: &[Version]| versions.iter().map(|own| own.0).collect::<Vec<u64>>();
    assert_eq!((numbers(&plan.keep), numbers(&plan.remove)), (vec![7, 3, 2], vec![2, 1]));
    let gone: Vec<&str> = plan.manifests.iter().map(|object| object.name.as_str()).collect();
    let second = &inventory.checkpoints[1];
    let named = name::manifest_of(second.version, second.attempt, Level::Local);
    let mut expected = vec![named, name::manifest(Version(1), Level::Local)];
    expected.sort();
    let mut gone_sorted = gone.clone();
    gone_sorted.sort_unstable();
    assert_eq!(gone_sorted, expected);
    assert_eq!(plan.segment_ids().count(), 2, "segments 1 and 4");
}

#[test]
fn what_is_abandoned_goes_by_name() {
    let inventory = two_lines();
    let objects = objects_of_two_lines(&inventory);
    let named = BTreeSet::from([inventory.checkpoints[3].attempt]);
    let plan = plan(&inventory, &objects, &Keep { named, ..Keep::default() });
    assert_eq!(plan.remove, [Version(2)]);
    assert_eq!(plan.manifests[0].name, name::manifest(Version(2), Level::Local));
    assert_eq!(plan.segment_ids().collect::<Vec<_>>(), [SegmentId([2; 16])]);
    let newest = BTreeSet::from([inventory.checkpoints[0].attempt]);
    let keep = Keep { named: newest, ..Keep::default() };
    assert!(super::plan(&inventory, &objects, &keep).is_empty(), "the newest stays");
}

#[test]
fn shared_segments_stay_with_whoever_needs_them() {
    let inventory = inventory(vec![manifest(1, &[1]), manifest(2, &[1, 2]), manifest(3, &[2])]);
    let objects = listing(&inventory, &[1, 2, 9]);
    let plan = plan(&inventory, &objects, &Keep { newest: 1, ..Keep::default() });
    assert_eq!(plan.keep, [Version(3)]);
    assert_eq!(plan.remove, [Version(2), Version(1)]);
    let gone: Vec<_> = plan.segments.iter().filter_map(|o| name::parse_segment(&o.name)).collect();
    assert_eq!(gone, [SegmentId([1; 16]), SegmentId([9; 16])], "orphans go too");
    assert_eq!(plan.images.len(), 2);
}

#[test]
fn an_unreadable_manifest_protects_files_of_unknown_use() {
    let mut inventory = inventory(vec![manifest(1, &[1]), manifest(2, &[2])]);
    let objects = listing(&inventory, &[1, 2, 9]);
    inventory.damaged.push(Damaged {
        object: "manifests/v0000000003.local".into(),
        error: crate::Unreadable::NoStore(String::new()),
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
    let corrupt = || damaged(crate::Unreadable::Told { kind: Kind::Corrupt, why: "torn".into() });
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
    some.damaged = vec![damaged(crate::Unreadable::NoStore(place))];
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
    let marked = BTreeSet::from([inventory.checkpoints[0].attempt]);
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
        let intact = inventory.checkpoints.iter().zip(marks).find(|(_, marked)| !marked);
        prop_assert!(intact.is_none_or(|(intact, _)| plan.keep.contains(&intact.version)));
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
