//! Turns on a shared device: fair among the ranks of a node, whatever each asks for.
//!
//! Data: ranks that have pieces to compress -> [`Turns`] -> whose piece is next. No I/O and no
//! clock: the agent asks, the decision is a function of what was asked before.
//!
//! Two levels, as in the paper's spin-round: ranks are spread over the devices of the node, each
//! device has turns of its own ([`device_of`]); on one device every waiting rank gets one piece a
//! round. The pipeline holds a piece or two of look-ahead, so consecutive turns overlap on the
//! device even when they belong to different ranks.
//!
//! Invariants:
//! - Between two pieces of a rank every other rank that waits gets one.
//! - Memory is bounded: a rank that waits already is not entered again, its pieces are counted.

use std::collections::VecDeque;

/// Whose piece is next on one device.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// Ranks that wait, each once, with the number of their pieces.
    waiting: VecDeque<(u32, u64)>,
}

impl Turns {
    /// Nobody waits.
    pub fn new() -> Self {
        Turns::default()
    }

    /// `rank` has `pieces` more to do.
    pub fn ask(&mut self, rank: u32, pieces: u64) {
        if pieces == 0 {
            return;
        }
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == rank) {
            Some((_, count)) => *count += pieces,
            None => self.waiting.push_back((rank, pieces)),
        }
    }

    /// The rank whose piece is next; it goes to the end of the round if it has more.
    pub fn next_rank(&mut self) -> Option<u32> {
        let (rank, pieces) = self.waiting.pop_front()?;
        if pieces > 1 {
            self.waiting.push_back((rank, pieces - 1));
        }
        Some(rank)
    }

    /// `rank` is gone: its pieces too.
    pub fn leave(&mut self, rank: u32) {
        self.waiting.retain(|(waiting, _)| *waiting != rank);
    }

    /// Pieces that wait, of all ranks.
    pub fn pieces(&self) -> u64 {
        self.waiting.iter().map(|(_, pieces)| pieces).sum()
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

    #[test]
    fn a_late_rank_waits_one_round_at_most() {
        let mut turns = Turns::new();
        turns.ask(1, 1000);
        turns.ask(2, 1000);
        assert_eq!(turns.next_rank(), Some(1));
        turns.ask(3, 1);
        let order: Vec<_> = std::iter::from_fn(|| turns.next_rank()).take(5).collect();
        assert_eq!(order, [2, 1, 3, 2, 1]);
        turns.leave(1);
        turns.leave(2);
        assert_eq!((turns.pieces(), turns.next_rank()), (0, None));
    }

    #[test]
    fn ranks_are_spread_over_devices() {
        let served: Vec<_> = (0..8).map(|rank| device_of(rank, 3)).collect();
        assert_eq!(served, [0, 1, 2, 0, 1, 2, 0, 1].map(Some));
        assert_eq!(device_of(5, 0), None);
    }

    proptest! {
        #[test]
        fn every_piece_is_done_and_nobody_is_passed_twice(
            asked in proptest::collection::vec((0..6_u32, 0..9_u64), 0..20),
        ) {
            let mut turns = Turns::new();
            asked.iter().for_each(|(rank, pieces)| turns.ask(*rank, *pieces));
            let order: Vec<u32> = std::iter::from_fn(|| turns.next_rank()).collect();
            for rank in 0..6 {
                let own: u64 = asked.iter().filter(|(r, _)| *r == rank).map(|(_, n)| n).sum();
                let at: Vec<usize> = (0..order.len()).filter(|i| order[*i] == rank).collect();
                prop_assert_eq!(at.len() as u64, own);
                for pair in at.windows(2) {
                    let between = &order[pair[0] + 1..pair[1]];
                    prop_assert!(between.iter().all(|r| between.iter().filter(|o| *o == r).count() == 1));
                }
            }
        }
    }
}
