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
        abandoned: vec![],
    }
}

fn both() -> Candidate {
    let (local, global) = (manifest(1, Level::Local, 10), manifest(1, Level::Global, 5));
    Candidate { local: Some(local), global: Some(global) }
}

#[test]
fn the_nearest_level_of_each_rank_is_taken() {
    let candidate = both();
    let all = StoredParts::all(candidate.manifest());
    let near = RestartPlan::new(&candidate, &all, &all);
    assert_eq!(near.describe(), "ranks 0-2 from local");
    assert!(!near.needs_global());
    // Node of rank 1 is wiped and rebuilt by the ring; that of rank 2 is lost for good.
    let without = |ids: &[u8]| StoredParts {
        segments: (0..3).filter(|id| !ids.contains(id)).map(|id| SegmentId([id; 16])).collect(),
        images: (0..3).filter(|id| !ids.contains(id)).map(|id| Rank(id.into())).collect(),
    };
    let mixed = RestartPlan::new(&candidate, &without(&[1, 2]), &without(&[2]));
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
    let candidate = Candidate { local: None, ..both() };
    let plan = RestartPlan::new(&candidate, &StoredParts::default(), &StoredParts::default());
    assert_eq!(plan.describe(), "ranks 0-2 from global");
    assert_eq!(plan.away().count(), 3);
}

#[test]
fn what_no_level_has_is_not_looked_for_elsewhere() {
    let candidate = Candidate { global: None, ..both() };
    let plan = RestartPlan::new(&candidate, &StoredParts::default(), &StoredParts::default());
    assert!(!plan.needs_global());
}

#[test]
fn levels_are_merged_newest_first() {
    let header = StoreHeader { id: JobId([0; 16]), job: "j".into(), key: [0; 32], created_ns: 0 };
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
