use super::*;
use crate::id::SegmentId;
use proptest::prelude::*;

fn some_writes(rank: u32) -> Writes {
    let mut writes = Writes::of(Rank(rank));
    writes.pieces.add(131_072, 40_000);
    writes.writes.add(2 << 20, 900_000);
    writes
}

fn some_manifest(ranks: u32) -> Manifest {
    let image = |rank| ImageRef { rank: Rank(rank), file_bytes: 99, digest: Digest([4; 32]) };
    Manifest {
        job: JobId([1; 16]),
        version: Version(7),
        sequence: 12,
        attempt: AttemptId([2; 8]),
        level: Level::Local,
        taken_ns: 1_800_000_000_000_000_000,
        ranks,
        images: (0..ranks).map(image).collect(),
        segments: vec![SegmentRef {
            id: SegmentId([5; 16]),
            rank: Rank(0),
            slots: 10,
            file_bytes: 50_000,
            index: Digest([6; 32]),
        }],
        stats: Stats { captured_bytes: 40960, pages: 10, new_pages: 10, ..Stats::default() },
        writes: (0..ranks).map(some_writes).collect(),
        nodes: vec![Node { name: "n0".into(), ranks: (0..ranks).map(Rank).collect() }],
        abandoned: vec![Abandoned { first: 3, last: 5 }, Abandoned { first: 9, last: 11 }],
    }
}

#[test]
fn what_is_abandoned_is_older_than_its_manifest() {
    assert!(some_manifest(1).abandons(5) && !some_manifest(1).abandons(6));
    for (first, last) in [(3, 2), (3, 12), (12, 14)] {
        let abandoned = vec![Abandoned { first, last }];
        let manifest = Manifest { abandoned, ..some_manifest(1) };
        assert!(Manifest::decode(&manifest.encode()).is_err(), "{first} to {last}");
    }
}

#[test]
fn images_out_of_order_are_refused() {
    let mut manifest = some_manifest(3);
    manifest.images.swap(0, 2);
    assert!(Manifest::decode(&manifest.encode()).is_err());
    let mut manifest = some_manifest(3);
    manifest.ranks = 2;
    assert!(Manifest::decode(&manifest.encode()).is_err());
}

#[test]
fn older_formats_have_fewer_lists() {
    let fourth = Manifest { abandoned: Vec::new(), ..some_manifest(3) };
    let second = Manifest { nodes: Vec::new(), ..fourth.clone() };
    let first = Manifest { writes: Vec::new(), ..second.clone() };
    for (version, manifest, missing) in [(1, first, 3), (2, second, 2), (4, fourth, 1)] {
        let body = frame::encode(&manifest);
        let older = frame::seal_version(SORT, version, &body[..body.len() - missing]);
        assert_eq!(Manifest::decode(&older), Ok(manifest));
        let longer = frame::seal_version(SORT, version, &body);
        assert!(Manifest::decode(&longer).is_err(), "bytes behind the fields of {version}");
    }
}

#[test]
fn nodes_with_ranks_out_of_order_are_refused() {
    for ranks in [&[1, 0][..], &[3], &[0, 0]] {
        let ranks = ranks.iter().map(|rank| Rank(*rank)).collect();
        let nodes = vec![Node { name: "n0".into(), ranks }];
        let manifest = Manifest { nodes, ..some_manifest(3) };
        assert!(Manifest::decode(&manifest.encode()).is_err());
    }
}

#[test]
fn a_profile_of_ranks_that_do_not_exist_is_refused() {
    let mut manifest = some_manifest(3);
    manifest.writes[2].rank = Rank(3);
    assert!(Manifest::decode(&manifest.encode()).is_err());
}

proptest! {
    #[test]
    fn manifests_lead_back(ranks in 1u32..40, version in 1u64.., sequence: u64) {
        let manifest = Manifest { version: Version(version), sequence, ..some_manifest(ranks) };
        prop_assert_eq!(&Manifest::decode(&manifest.encode()).unwrap(), &manifest);
        prop_assert!(manifest.image(Rank(ranks - 1)).is_some());
        prop_assert!(manifest.image(Rank(ranks)).is_none());
    }

    #[test]
    fn sealed_garbage_never_panics(body: Vec<u8>) {
        let _ = Manifest::decode(&frame::seal(SORT, &body));
    }
}
