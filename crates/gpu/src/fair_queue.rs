//! Turns on a shared device: fair among the ranks of a node, whatever each asks for.
//!
//! Data: pieces that ranks want compressed -> [`FairQueue`] -> whose piece is next. No I/O and no
//! clock: the decision is a function of what was asked before.
//!
//! The lower level of the paper's spin-round: on one device every waiting rank gets one piece a round.
//! Whoever holds the turns has a piece of look-ahead, so consecutive turns overlap on the device even
//! when they belong to different ranks.
//!
//! Invariants:
//! - Between two pieces of a rank every other rank gets one whose oldest piece fits.
//! - A rank whose oldest piece does not fit now keeps its place in the round.
//! - The pieces of one rank keep their order.

use std::collections::VecDeque;

/// Whose piece is next on one device.
#[derive(Clone, Debug)]
pub(crate) struct FairQueue<T> {
    /// Ranks that wait, each once, with their pieces, oldest first.
    waiting: VecDeque<(u32, VecDeque<T>)>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new() }
    }
}

impl<T> FairQueue<T> {
    /// Nobody waits.
    pub(crate) fn new() -> Self {
        FairQueue::default()
    }

    /// `rank` has one more piece to do.
    pub(crate) fn ask(&mut self, rank: u32, piece: T) {
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == rank) {
            Some((_, pieces)) => pieces.push_back(piece),
            None => self.waiting.push_back((rank, VecDeque::from([piece]))),
        }
    }

    /// The next piece of a rank whose oldest one fits; the rank goes to the end of the round if it
    /// has more.
    pub(crate) fn next_piece(&mut self, fits: impl Fn(&T) -> bool) -> Option<(u32, T)> {
        let fitting = |(_, pieces): &(u32, VecDeque<T>)| pieces.front().is_some_and(&fits);
        let at = self.waiting.iter().position(fitting)?;
        let (rank, mut pieces) = self.waiting.remove(at)?;
        let piece = pieces.pop_front()?;
        if !pieces.is_empty() {
            self.waiting.push_back((rank, pieces));
        }
        Some((rank, piece))
    }

    /// Pieces that wait, of all ranks.
    pub(crate) fn pieces(&self) -> usize {
        self.waiting.iter().map(|(_, pieces)| pieces.len()).sum()
    }
}

#[cfg(test)]
mod tests;
