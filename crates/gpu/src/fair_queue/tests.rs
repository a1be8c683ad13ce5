use proptest::prelude::*;

use super::*;

fn next_rank(turns: &mut FairQueue<u32>) -> Option<u32> {
    turns.next_piece(|_| true).map(|(rank, _)| rank)
}

#[test]
fn a_late_rank_waits_one_round_at_most() {
    let mut turns = FairQueue::new();
    for piece in 0..1000 {
        turns.ask(1, piece);
        turns.ask(2, piece);
    }
    assert_eq!(next_rank(&mut turns), Some(1));
    turns.ask(3, 0);
    let order: Vec<_> = std::iter::from_fn(|| next_rank(&mut turns)).take(5).collect();
    assert_eq!(order, [2, 1, 3, 2, 1]);
}

#[test]
fn who_does_not_fit_now_comes_first_next_time() {
    let mut turns = FairQueue::new();
    for (rank, piece) in [(1, 'a'), (2, 'b'), (1, 'b'), (3, 'a')] {
        turns.ask(rank, piece);
    }
    let mut take = |fits: fn(&char) -> bool| turns.next_piece(fits);
    assert_eq!(take(|piece| *piece == 'a'), Some((1, 'a')));
    assert_eq!(take(|piece| *piece == 'a'), Some((3, 'a')));
    assert_eq!(take(|piece| *piece == 'a'), None);
    assert_eq!(take(|_| true), Some((2, 'b')));
    assert_eq!(take(|_| true), Some((1, 'b')));
}

proptest! {
    #[test]
    fn every_piece_is_done_in_order_and_nobody_is_passed_twice(
        asked in proptest::collection::vec(0..6_u32, 0..60),
    ) {
        let mut turns = FairQueue::new();
        asked.iter().zip(0_u32..).for_each(|(rank, piece)| turns.ask(*rank, piece));
        let order: Vec<(u32, u32)> =
            std::iter::from_fn(|| turns.next_piece(|_| true)).collect();
        for rank in 0..6 {
            let at: Vec<usize> = (0..order.len()).filter(|i| order[*i].0 == rank).collect();
            prop_assert_eq!(at.len(), asked.iter().filter(|other| **other == rank).count());
            for pair in at.windows(2) {
                prop_assert!(order[pair[0]].1 < order[pair[1]].1);
                let between = &order[pair[0] + 1..pair[1]];
                let once = |rank: u32| between.iter().filter(|o| o.0 == rank).count() == 1;
                prop_assert!(between.iter().all(|(rank, _)| once(*rank)));
            }
        }
    }
}
