//! How often the pages of each segment are wanted by all ranks together: whether a rank reads a
//! segment itself or asks somebody who reads it for all.
//!
//! ```text
//! image -> pages wanted of each segment -> summed over all ranks -> shared by ranks, or not
//! ```
//! A page that many ranks have is read once and handed out; a few read it each for itself where that
//! is quicker. And a segment that a node's agent has
//! written holds the pages of many ranks side by side, each wanted by one of them: there, one reader
//! for all would carry everybody's memory through messages.

use std::collections::BTreeMap;

use standfast_comm::{Collective, collective};
use standfast_format::{Image, SegmentId, SegmentRef};
use standfast_restart::wanted_pages;

use crate::error::Phase;

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
pub(crate) struct Demand(BTreeMap<SegmentId, u64>);

impl Demand {
    /// Sums over the images of all ranks; one that has none of its own wants nothing.
    pub(crate) fn sum(team: &Collective, own: Option<&Image>) -> Phase<Self> {
        let own: BTreeMap<SegmentId, u64> = own.map(wanted_pages).unwrap_or_default();
        if team.size() == 1 {
            return Ok(Self(own));
        }
        let all = collective::all_reduce(team.raw(), encode(&own), |lower, upper| {
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
mod tests {
    use super::*;
    use standfast_comm::run_threads;
    use standfast_format::{Digest, HashKind, JobId, Rank, RegionImage, Run, Version};

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
                let demand = Demand::sum(&team, Some(&own)).unwrap();
                let is_shared =
                    |distance| [1, 2, 3].map(|id| demand.is_shared(&segment(id), distance));
                (is_shared(Distance::Far), is_shared(Distance::Near))
            });
            let expected = ([false, true, false], [false, near, false]);
            assert!(shared.iter().all(|shared| *shared == expected), "{shared:?}");
        }
    }
}
