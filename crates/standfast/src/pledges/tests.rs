use standfast_format::{JobId, Rank, Stats, Version, Writes};

use super::*;

fn pledge(attempt: u8, sequence: u64, ranks: u32, of: &[u32]) -> Pledge {
    let part = |rank: &u32| PledgedPart {
        rank: Rank(*rank),
        image: vec![],
        streams: vec![],
        stats: Stats::default(),
        writes: Writes::of(Rank(*rank)),
    };
    Pledge {
        job: JobId([0; 16]),
        version: Version(sequence),
        attempt: AttemptId([attempt; 8]),
        sequence,
        taken_ns: 0,
        ranks,
        node: String::new(),
        segments: vec![],
        streams: vec![],
        parts: of.iter().map(part).collect(),
        abandons: None,
    }
}

#[test]
fn an_attempt_counts_when_every_rank_is_in_it() {
    let older = [pledge(1, 4, 3, &[0, 1]), pledge(1, 4, 3, &[2])];
    let newer = pledge(2, 5, 3, &[0, 1]);
    assert_eq!(complete(&older), Some(AttemptId([1; 8])));
    let all = [older[0].clone(), newer.clone(), older[1].clone()];
    assert_eq!(complete(&all), Some(AttemptId([1; 8])), "the newer one lacks a rank");
    let all = [older.to_vec(), vec![newer, pledge(2, 5, 3, &[2])]].concat();
    assert_eq!(complete(&all), Some(AttemptId([2; 8])));
    assert_eq!(complete(&older[..1]), None);
    assert_eq!(complete(&[]), None);
}
