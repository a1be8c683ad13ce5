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
use crate::manifest::{Abandoned, Stats};
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
    /// What the run had abandoned when it went back, if it did.
    pub abandons: Option<Abandoned>,
}

/// Format from which a pledge tells what its run had abandoned.
const ABANDONS_SINCE: u16 = 5;
/// Nothing, for pledges from before.
const NOTHING: u8 = 0;

impl Pledge {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        frame::seal(SORT, &frame::encode(self))
    }

    /// Reads and checks the bytes of the file.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let opened = frame::open(SORT, bytes)?;
        let pledge: Self = match opened.version {
            ABANDONS_SINCE.. => frame::decode(SORT, opened.body)?,
            _ => frame::decode(SORT, &[opened.body, &[NOTHING]].concat())?,
        };
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
mod tests;
