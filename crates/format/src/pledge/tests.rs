use super::*;
use crate::id::Digest;
use proptest::prelude::*;

fn some_pledge(ranks: &[u32]) -> Pledge {
    let part = |rank: &u32| PledgedPart {
        rank: Rank(*rank),
        image: vec![1, 2, 3],
        streams: vec![SegmentId([7; 16])],
        stats: Stats::default(),
        writes: Writes::of(Rank(*rank)),
    };
    Pledge {
        job: JobId([1; 16]),
        version: Version(7),
        attempt: AttemptId([2; 8]),
        sequence: 12,
        taken_ns: 5,
        ranks: 9,
        node: "n0".into(),
        segments: vec![SegmentRef {
            id: SegmentId([5; 16]),
            rank: Rank(2),
            slots: 10,
            file_bytes: 50_000,
            index: Digest([6; 32]),
        }],
        streams: vec![PledgedStream { stream: SegmentId([7; 16]), segment: 0, first_slot: 3 }],
        parts: ranks.iter().map(part).collect(),
        abandons: Some(crate::Abandoned { first: 3, last: 5 }),
    }
}

#[test]
fn pledges_lead_back_and_contradictions_are_refused() {
    let pledge = some_pledge(&[2, 3, 8]);
    assert_eq!(Pledge::decode(&pledge.encode()), Ok(pledge));
    assert!(Pledge::decode(&some_pledge(&[3, 2]).encode()).is_err());
    assert!(Pledge::decode(&some_pledge(&[9]).encode()).is_err());
    let mut nowhere = some_pledge(&[1]);
    nowhere.streams[0].segment = 1;
    assert!(Pledge::decode(&nowhere.encode()).is_err());
}

proptest! {
    #[test]
    fn sealed_garbage_never_panics(body: Vec<u8>) {
        let _ = Pledge::decode(&frame::seal(SORT, &body));
    }
}
