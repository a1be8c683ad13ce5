use super::*;
use standfast_format::{Digest, HashKind, Image, JobId, Rank, Version};

fn segment(id: u8, slots: u32) -> SegmentRef {
    let id = SegmentId([id; 16]);
    SegmentRef { id, rank: Rank(0), slots, file_bytes: 1, index: Digest([0; 32]) }
}

fn image(runs: Vec<Run>) -> Image {
    let region =
        RegionImage { name: "x".into(), bytes: 0, elem: 0, pages_digest: Digest([0; 32]), runs };
    Image {
        job: JobId([0; 16]),
        version: Version(1),
        rank: Rank(0),
        page_bytes: 4096,
        hash: HashKind::Xxh3,
        segments: vec![segment(1, u32::MAX), segment(2, 9), segment(3, u32::MAX)],
        regions: vec![region],
        references: None,
    }
}

fn moved() -> BTreeMap<SegmentId, Moved> {
    let shared = segment(7, 20);
    BTreeMap::from([
        (SegmentId([1; 16]), Moved { segment: shared, first_slot: 5 }),
        (SegmentId([3; 16]), Moved { segment: shared, first_slot: 12 }),
    ])
}

#[test]
fn streams_become_places_of_one_segment() {
    let stored = |pages, segment, slot| Run::Stored { pages, segment, slot };
    let mut image =
        image(vec![stored(2, 0, 1), stored(1, 1, 8), Run::Zero { pages: 3 }, stored(8, 2, 0)]);
    relocate(&mut image.segments, &mut image.regions, &moved()).unwrap();
    assert_eq!(image.segments, [segment(7, 20), segment(2, 9)]);
    let runs = [stored(2, 0, 6), stored(1, 1, 8), Run::Zero { pages: 3 }, stored(8, 0, 12)];
    assert_eq!(image.regions[0].runs, runs);
}

#[test]
fn slots_beyond_the_segment_are_refused() {
    for (pages, slot) in [(9, 0), (1, 8), (1, u32::MAX), (u32::MAX, 0)] {
        let mut image = image(vec![Run::Stored { pages, segment: 2, slot }]);
        let refused = relocate(&mut image.segments, &mut image.regions, &moved());
        assert!(matches!(refused, Err(Error::Beyond { .. })), "{pages} pages at {slot}");
    }
}
