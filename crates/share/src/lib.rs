//! Sharing: which rank stores a page that several ranks hold.
//!
//! Data: the hashes of each rank's candidate pages -> [`Strategy::assign`] -> an [`Assignment`]:
//! the [`Fate`] of every candidate. The rank copies what is its own, and knows then in which slot
//! of which of its segments each page lies -> [`Strategy::locate`] -> [`Places`]: where the pages
//! lie that others store for it. Only hashes and places travel, never pages.
//!
//! Two strategies:
//! - [`Exact`]: every hash has a *home rank*, chosen by its bits; the home sees all holders of its
//!   hashes and names the owner. All duplicates are found, owners are balanced. With a
//!   [`HomeIndex`] pages of earlier checkpoints, stored by any rank, are found too.
//! - [`TopK`]: recursive doubling over bounded tables of the most frequent hashes
//!   (Nicolae 2013, Algorithms 1 and 2). Logarithmic in the ranks, blind beyond its threshold.
//!
//! Invariants:
//! - The candidates of a rank are distinct; they are numbered from 0 in the order of their hashes.
//! - Every candidate is stored by a rank that holds it, or was stored before; a rank is never
//!   referred to for a page that it does not store.
//! - `assign` and `locate` are collective: every rank calls them, in the same order.
//! - Messages of other ranks are checked before they are believed; what they claim never makes
//!   this rank allocate more than a small multiple of what it received.

mod assignment;
mod exact;
mod places;
mod tally;
#[cfg(test)]
mod tests;
mod top_k;
mod wire;

use standfast_comm::{Comm, Result};
use standfast_format::SegmentId;

pub use assignment::{Assignment, Fate, Location, Places, Shares};
pub use exact::{Exact, HomeIndex};
pub use top_k::{Threshold, TopK};

/// A way to agree on who stores what.
///
/// One checkpoint: `assign`, then `locate`, then `commit` or `abort`. An attempt that goes no
/// further may end after any of them.
pub trait Strategy: Send {
    /// Decides the fate of every candidate. `hashes` are those of this rank's candidates, end to
    /// end; they are distinct. Collective.
    fn assign(&mut self, comm: &dyn Comm, hashes: &[u8]) -> Result<Assignment>;

    /// Learns where others have put the pages that they store for this rank. `place` tells where
    /// this rank has put a candidate whose fate is [`Fate::Mine`], as a number into `segments`.
    /// Collective, once for an assignment.
    fn locate(
        &mut self,
        comm: &dyn Comm,
        assignment: &Assignment,
        segments: &[SegmentId],
        place: &dyn Fn(u32) -> Location,
    ) -> Result<Places>;

    /// The checkpoint was committed: its pages may be referred to from now on.
    fn commit(&mut self) {}

    /// The checkpoint failed: none of its pages exist.
    fn abort(&mut self) {}

    /// These segments are about to be removed: their pages are no longer known. Every rank names
    /// all of them.
    fn forget(&mut self, _gone: &[SegmentId]) {}
}
