//! Turns on a shared device: fair among the ranks of a node, whatever each asks for.
//!
//! Data: pieces that ranks want compressed -> [`Turns`] -> whose piece is next. No I/O and no
//! clock: the decision is a function of what was asked before.
//!
//! Two levels, as in the paper's spin-round: ranks are spread over the devices of the node, each
//! device has turns of its own ([`device_of`]); on one device every waiting rank gets one piece a
//! round. Whoever holds the turns has a piece of look-ahead, so consecutive turns overlap on the
//! device even when they belong to different ranks.
//!
//! Invariants:
//! - Between two pieces of a rank every other rank gets one whose oldest piece fits.
//! - A rank whose oldest piece does not fit now keeps its place in the round.
//! - The pieces of one rank keep their order.

use std::collections::VecDeque;

/// Whose piece is next on one device.
#[derive(Clone, Debug)]
pub struct Turns<T> {
    /// Ranks that wait, each once, with their pieces, oldest first.
    waiting: VecDeque<(u32, VecDeque<T>)>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new() }
    }
}

impl<T> Turns<T> {
    /// Nobody waits.
    pub fn new() -> Self {
        Turns::default()
    }

    /// `rank` has one more piece to do.
    pub fn ask(&mut self, rank: u32, piece: T) {
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == rank) {
            Some((_, pieces)) => pieces.push_back(piece),
            None => self.waiting.push_back((rank, VecDeque::from([piece]))),
        }
    }

    /// The next piece of a rank whose oldest one fits; the rank goes to the end of the round if it
    /// has more.
    pub fn next_piece(&mut self, fits: impl Fn(&T) -> bool) -> Option<(u32, T)> {
        let fitting = |(_, pieces): &(u32, VecDeque<T>)| pieces.front().is_some_and(&fits);
        let at = self.waiting.iter().position(fitting)?;
        let (rank, mut pieces) = self.waiting.remove(at)?;
        let piece = pieces.pop_front()?;
        if !pieces.is_empty() {
            self.waiting.push_back((rank, pieces));
        }
        Some((rank, piece))
    }

    /// `rank` is gone: its pieces too.
    pub fn leave(&mut self, rank: u32) {
        self.waiting.retain(|(waiting, _)| *waiting != rank);
    }

    /// Pieces that wait, of all ranks.
    pub fn pieces(&self) -> usize {
        self.waiting.iter().map(|(_, pieces)| pieces.len()).sum()
    }
}

/// The device that serves a rank, by its number on the node: equally many on each. `None` on a
/// node without devices.
pub fn device_of(local_rank: u32, devices: u32) -> Option<u32> {
    local_rank.checked_rem(devices)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn next_rank(turns: &mut Turns<u32>) -> Option<u32> {
        turns.next_piece(|_| true).map(|(rank, _)| rank)
    }

    #[test]
    fn a_late_rank_waits_one_round_at_most() {
        let mut turns = Turns::new();
        for piece in 0..1000 {
            turns.ask(1, piece);
            turns.ask(2, piece);
        }
        assert_eq!(next_rank(&mut turns), Some(1));
        turns.ask(3, 0);
        let order: Vec<_> = std::iter::from_fn(|| next_rank(&mut turns)).take(5).collect();
        assert_eq!(order, [2, 1, 3, 2, 1]);
        turns.leave(1);
        turns.leave(2);
        assert_eq!((turns.pieces(), next_rank(&mut turns)), (0, None));
    }

    #[test]
    fn who_does_not_fit_now_comes_first_next_time() {
        let mut turns = Turns::new();
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

    #[test]
    fn ranks_are_spread_over_devices() {
        let served: Vec<_> = (0..8).map(|rank| device_of(rank, 3)).collect();
        assert_eq!(served, [0, 1, 2, 0, 1, 2, 0, 1].map(Some));
        assert_eq!(device_of(5, 0), None);
    }

    proptest! {
        #[test]
        fn every_piece_is_done_in_order_and_nobody_is_passed_twice(
            asked in proptest::collection::vec(0..6_u32, 0..60),
        ) {
            let mut turns = Turns::new();
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
}
