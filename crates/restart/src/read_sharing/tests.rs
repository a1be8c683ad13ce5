use super::*;
use standfast_format::{Digest, HashKind, JobId, Rank, RegionImage, Run, Version};
use standfast_testkit::run_threads;

fn segment(id: u8) -> SegmentRef {
    let id = SegmentId([id; 16]);
    SegmentRef { id, rank: Rank(0), slots: 100, file_bytes: 1, index: Digest([0; 32]) }
}

/// One that wants these slots of two segments.
fn image(runs: &[(u32, u32, u32)]) -> Image {
    let run = |(segment, slot, pages): &(u32, u32, u32)| Run::Stored {
        segment: *segment,
        slot: *slot,
        pages: *pages,
    };
    Image {
        job: JobId([0; 16]),
        version: Version(1),
        rank: Rank(0),
        page_bytes: 4096,
        hash: HashKind::Blake3,
        segments: vec![segment(1), segment(2)],
        regions: vec![RegionImage {
            name: "field".into(),
            bytes: 0,
            elem: 0,
            pages_digest: Digest([0; 32]),
            runs: runs.iter().map(run).collect(),
        }],
        references: None,
    }
}

#[test]
fn pages_of_several_ranks_are_told_from_those_of_one() {
    for (ranks, near) in [(4, false), (50, true)] {
        let shared = run_threads(ranks, |comm| {
            let team = Collective::new(Box::new(comm));
            let part = 100 / ranks as u32;
            let first = team.rank().0 * part;
            // The first segment has a part for each rank, which it uses twice; all want most
            // of the second one.
            let own = image(&[(0, first, part), (0, first, part), (1, 0, 40)]);
            let sharing = ReadSharing::sum(&team, Some(&own)).unwrap();
            let is_shared =
                |distance| [1, 2, 3].map(|id| sharing.is_shared(&segment(id), distance));
            (is_shared(Distance::Far), is_shared(Distance::Near))
        });
        let expected = ([false, true, false], [false, near, false]);
        assert!(shared.iter().all(|shared| *shared == expected), "{shared:?}");
    }
}
