use super::*;
use standfast_format::{HashKind, JobId, RegionImage, Run, Version};
use standfast_sys::Stopwatch;

fn segment(id: u8) -> SegmentRef {
    SegmentRef { id: SegmentId([id; 16]), slots: 8, file_bytes: 1, ..unplaced(SegmentId([0; 16])) }
}

/// Pages in streams 1 and 2 of this checkpoint and in segment 3 of an earlier one.
fn described() -> Described {
    let stored = |segment| Run::Stored { pages: 2, segment, slot: 1 };
    let region = RegionImage {
        name: "x".into(),
        bytes: 0,
        elem: 0,
        pages_digest: Digest([0; 32]),
        runs: vec![stored(0), stored(1), stored(2)],
    };
    let streams = vec![SegmentId([1; 16]), SegmentId([2; 16])];
    let image = Image {
        job: JobId([0; 16]),
        version: Version(1),
        rank: Rank(0),
        page_bytes: 4096,
        hash: HashKind::Xxh3,
        segments: streams.iter().copied().map(unplaced).chain([segment(3)]).collect(),
        regions: vec![region],
        references: None,
    };
    let (stats, writes) = (Stats::default(), Writes::of(Rank(0)));
    Described { image, streams, stats, writes, started: Stopwatch::start() }
}

#[test]
fn a_segment_that_is_a_stream_stays_where_it_is() {
    let part = Part { segments: vec![segment(1), segment(2)], places: vec![] };
    let mut own = described();
    own.place(&part.moved(), |_| true).unwrap();
    assert_eq!(own.image.segments, [segment(1), segment(2), segment(3)]);
    assert_eq!(own.image.regions[0].runs, described().image.regions[0].runs);
}

#[test]
fn streams_of_an_agent_share_its_segment() {
    let place = |stream, first_slot| StreamPlace {
        stream: SegmentId([stream; 16]),
        segment: SegmentId([1; 16]),
        first_slot,
    };
    let parts = [
        Part { segments: vec![segment(1)], places: vec![place(1, 0)] },
        Part { segments: vec![], places: vec![place(2, 5)] },
    ];
    let mut foreign = described();
    foreign.place(&Part::join(parts).moved(), |known| *known == segment(3)).unwrap();
    assert_eq!(foreign.image.segments, [segment(1), segment(3)]);
    let stored = |segment, slot| Run::Stored { pages: 2, segment, slot };
    assert_eq!(foreign.image.regions[0].runs, [stored(0, 1), stored(0, 6), stored(1, 1)]);
}

#[test]
fn what_nobody_has_is_refused() {
    let part = Part { segments: vec![segment(1)], places: vec![] };
    let lost = described().place(&part.moved(), |_| true);
    assert!(matches!(lost, Err(Error::Unsealed { segment }) if segment.0 == [2; 16]));
    let part = Part { segments: vec![segment(1), segment(2)], places: vec![] };
    let lost = described().place(&part.moved(), |_| false);
    assert!(matches!(lost, Err(Error::Unsealed { segment }) if segment.0 == [3; 16]));
}
