//! Pledges: what one node has made durable of an attempt that is not committed yet.
//!
//! Where nodes have stores of their own, a checkpoint is committed when the parts of all of them
//! are durable. A node's agent writes its pledge after its segments; from then on its part needs
//! no rank any more. If the ranks die before they have written the manifest, the next opening finds
//! the pledges, and if together they cover every rank, writes what is missing from them.
//!
//! The images in a pledge are not placed: pages of this attempt stand in them by *stream*, and the
//! pledges of all nodes together tell where the streams are.

use crate::error::{Error, Result};
use crate::frame::{self, Sort};
use crate::id::{AttemptId, JobId, Rank, SegmentId, Version};
use crate::image::SegmentRef;
use crate::manifest::Stats;
use crate::profile::Writes;

const SORT: Sort = Sort { mark: *b"SFPLEDG\0", what: "pledge" };

/// Where the pages of a stream are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PledgedStream {
    /// The stream.
    pub stream: SegmentId,
    /// Its segment's place among the pledge's.
    pub segment: u32,
    /// The slot of its first page.
    pub first_slot: u32,
}

/// One rank's part.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PledgedPart {
    /// Whose part.
    pub rank: Rank,
    /// The bytes of its image, in which streams of this attempt stand by their ids.
    pub image: Vec<u8>,
    /// Streams of this attempt that the image refers to, of any rank.
    pub streams: Vec<SegmentId>,
    /// Its figures.
    pub stats: Stats,
    /// How it was written.
    pub writes: Writes,
}

/// What one node has of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pledge {
    /// The store it belongs to.
    pub job: JobId,
    /// The checkpoint.
    pub version: Version,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its place in the order of commits.
    pub sequence: u64,
    /// When it was captured, nanoseconds since 1970.
    pub taken_ns: u64,
    /// Ranks of the job, on all nodes.
    pub ranks: u32,
    /// Name of the node.
    pub node: String,
    /// The node's segments of this attempt.
    pub segments: Vec<SegmentRef>,
    /// The streams in them.
    pub streams: Vec<PledgedStream>,
    /// The parts of the node's ranks, in order.
    pub parts: Vec<PledgedPart>,
}

impl Pledge {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        frame::seal(SORT, &frame::encode(self))
    }

    /// Reads and checks the bytes of the file.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let pledge: Self = frame::decode(SORT, frame::open(SORT, bytes)?.body)?;
        let refuse = |why| Err(Error::Malformed { what: SORT.what, why });
        if pledge.version.0 == 0 {
            return refuse("version 0 does not exist");
        }
        let ordered = pledge.parts.windows(2).all(|pair| pair[0].rank < pair[1].rank);
        if !ordered || pledge.parts.iter().any(|part| part.rank.0 >= pledge.ranks) {
            return refuse("its parts are not one per rank, in order");
        }
        if pledge.streams.iter().any(|stream| stream.segment as usize >= pledge.segments.len()) {
            return refuse("a stream is in no segment");
        }
        Ok(pledge)
    }
}

#[cfg(test)]
mod tests {
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
}
