use super::*;
use proptest::prelude::*;

fn runs() -> impl Strategy<Value = Vec<Run>> {
    proptest::collection::vec(
        prop_oneof![
            (1u32..50).prop_map(|pages| Run::Zero { pages }),
            (1u32..50, 0u32..2, 0u32..50).prop_map(|(pages, segment, slot)| Run::Stored {
                pages,
                segment,
                slot
            }),
        ],
        0..20,
    )
}

fn image_of(all: Vec<Vec<Run>>) -> Image {
    let segment = |id| SegmentRef {
        id: SegmentId([id; 16]),
        rank: Rank(2),
        slots: 100,
        file_bytes: 1 << 20,
        index: Digest([id; 32]),
    };
    let regions = all.into_iter().enumerate().map(|(at, runs)| RegionImage {
        name: format!("region {at}"),
        bytes: runs.iter().map(|run| u64::from(run.pages()) * 4096).sum(),
        elem: 8,
        pages_digest: Digest([9; 32]),
        runs,
    });
    Image {
        job: JobId([1; 16]),
        version: Version(3),
        rank: Rank(2),
        page_bytes: 4096,
        hash: HashKind::Xxh3,
        regions: regions.collect(),
        segments: vec![segment(1), segment(2)],
        references: None,
    }
}

/// An image as format 3 wrote it, byte by byte: one segment, one region of two runs.
fn third_format() -> Vec<u8> {
    let fields = [&[1; 16][..], &[3, 2], &[0x80, 0x20], &[0]].concat();
    let segments = [&[1][..], &[5; 16], &[2, 100, 0x80, 0x40], &[6; 32]].concat();
    let regions = [&[1, 1, b'x'][..], &[0x80, 0xc0, 0x01], &[8], &[9; 32], &[2]].concat();
    let runs = [[4u32, 0, 7], [2, u32::MAX, 0]].concat();
    let runs: Vec<u8> = runs.into_iter().flat_map(u32::to_le_bytes).collect();
    [fields, segments, regions, runs].concat()
}

#[test]
fn images_of_older_formats_have_no_references() {
    for version in 1..REFERENCES_SINCE {
        let bytes = frame::seal_version(SORT, version, &third_format());
        let (image, digest) = Image::decode(&bytes).unwrap();
        assert_eq!((image.rank, image.page_bytes, image.hash), (Rank(2), 4096, HashKind::Xxh3));
        assert_eq!((image.segments[0].slots, image.segments[0].file_bytes), (100, 8192));
        assert_eq!((image.regions[0].name.as_str(), image.regions[0].bytes), ("x", 6 * 4096));
        let runs = [Run::Stored { pages: 4, segment: 0, slot: 7 }, Run::Zero { pages: 2 }];
        assert_eq!((&image.regions[0].runs[..], &image.references), (&runs[..], &None));
        // Written anew it is of today's format, and says the same.
        let (again, other) = image.encode();
        assert_ne!(other, digest);
        assert_eq!(Image::decode(&again), Ok((image, other)));
        let longer = [&third_format()[..], &[0; 16]].concat();
        let longer = frame::seal_version(SORT, version, &longer);
        assert!(Image::decode(&longer).is_err(), "bytes behind the runs of {version}");
    }
}

#[test]
fn contradictions_are_refused() {
    let stored = |pages, segment, slot| vec![vec![Run::Stored { pages, segment, slot }]];
    for bad in [stored(1, 2, 0), stored(1, 0, 100), stored(2, 1, 99), stored(5, 0, u32::MAX)] {
        let (bytes, _) = image_of(bad).encode();
        assert!(matches!(Image::decode(&bytes), Err(Error::Malformed { .. })));
    }
    let mut short = image_of(stored(2, 0, 0));
    short.regions[0].bytes = 4096;
    assert!(Image::decode(&short.encode().0).is_err());
    let mut twice = image_of(vec![vec![], vec![]]);
    twice.regions[1].name = "region 0".into();
    assert!(Image::decode(&twice.encode().0).is_err());
}

proptest! {
    #[test]
    fn images_lead_back(all in proptest::collection::vec(runs(), 0..5)) {
        let image = image_of(all);
        let (bytes, digest) = image.encode();
        let (decoded, found) = Image::decode(&bytes).unwrap();
        prop_assert_eq!(decoded, image);
        prop_assert_eq!(found, digest);
    }

    #[test]
    fn sealed_garbage_never_panics(body: Vec<u8>) {
        let _ = Image::decode(&frame::seal(SORT, &body));
    }
}
