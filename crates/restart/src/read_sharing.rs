//! Whether each rank reads a segment itself, or one rank reads it for all.
//!
//! ```text
//! image -> pages wanted of each segment -> summed over all ranks -> shared by ranks, or not
//! ```
//! If many ranks want a page, one reads it and hands it out. If few do, each reads it. A segment that
//! a node's agent has written holds the pages of many ranks side by side, each wanted by one of them:
//! there, one reader for all would send everybody's memory through messages.

use std::collections::BTreeMap;

use standfast_comm::{Collective, collective};
use standfast_format::{Image, SegmentId, SegmentRef};

use crate::error::Phase;
use crate::remote::wanted_pages;

/// How far away a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distance {
    /// In a store of this node, or one that is shared by all.
    Near,
    /// In global storage.
    Far,
}

impl Distance {
    /// A segment is shared if its pages are wanted more often than this, in quarters of its slots.
    /// From global storage reading a quarter more than there is costs less than sending it. What is
    /// near is read several times over in the time that it takes to be sent: with four ranks of one
    /// node that have the same memory, sending took five times as long as four times reading.
    fn quarters(self) -> u64 {
        match self {
            Distance::Near => 4 * 16,
            Distance::Far => 5,
        }
    }
}

/// Pages that all ranks together want of each segment.
pub(crate) struct ReadSharing(BTreeMap<SegmentId, u64>);

impl ReadSharing {
    /// Sums over the images of all ranks; one that has none of its own wants nothing.
    pub(crate) fn sum(ranks: &Collective, own: Option<&Image>) -> Phase<Self> {
        let own: BTreeMap<SegmentId, u64> = own.map(wanted_pages).unwrap_or_default();
        if ranks.size() == 1 {
            return Ok(Self(own));
        }
        let all = collective::all_reduce(ranks.raw(), encode(&own), |lower, upper| {
            let (mut sum, upper) = (decode(lower), decode(upper));
            for (segment, pages) in upper {
                let wanted = sum.entry(segment).or_default();
                *wanted = wanted.saturating_add(pages);
            }
            Ok(encode(&sum))
        })?;
        Ok(Self(decode(&all)))
    }

    /// Whether so many ranks want pages of a segment that one should read it for all.
    pub(crate) fn is_shared(&self, segment: &SegmentRef, distance: Distance) -> bool {
        let wanted = self.0.get(&segment.id).copied().unwrap_or(0);
        wanted.saturating_mul(4) > u64::from(segment.slots) * distance.quarters()
    }
}

fn encode(wanted: &BTreeMap<SegmentId, u64>) -> Vec<u8> {
    postcard::to_allocvec(wanted).expect("plain values can be encoded")
}

/// Nonsense counts as nothing wanted: each rank then reads for itself.
fn decode(bytes: &[u8]) -> BTreeMap<SegmentId, u64> {
    postcard::from_bytes(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests;
