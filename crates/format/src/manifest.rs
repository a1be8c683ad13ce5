//! Manifests: the commit record of a checkpoint at one level.
//!
//! Written last, by an atomic replacement: before it nothing of the checkpoint exists for a
//! reader, after it everything does. It names every image with its digest and every segment that
//! must be kept, so that pruning needs no other file.
//!
//! Why a sequence besides the version: versions are chosen by the program and may go back when a
//! run was restarted from an older checkpoint. *Newest* means last committed: largest sequence.
//!
//! Why a manifest tells what its line has abandoned: a run that went back to an older checkpoint and
//! goes on from there leaves newer ones behind. They stay, and what the newest manifest says of them
//! is committed with it, at every level alike.
//!
//! Format 1 had no write profile, format 2 no nodes, and before format 5 nothing was abandoned: their
//! fields end before, and a reader finds none.

use crate::error::{Error, Result};
use crate::frame::{self, Sort};
use crate::id::{AttemptId, Digest, JobId, Rank, Version};
use crate::image::SegmentRef;
use crate::profile::Writes;

const SORT: Sort = Sort { mark: *b"SFMANIF\0", what: "manifest" };

/// How far a checkpoint has come, and so what it survives.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Captured in the pool: the program may go on.
    Memory,
    /// Durable on the node: survives the process and a reboot.
    Local,
    /// Shards durable on other nodes: survives the loss of nodes.
    Ring,
    /// Drained to global storage: survives the loss of the machine.
    Global,
}

impl Level {
    /// Every level, nearest first.
    pub const ALL: &'static [Level] = &[Level::Memory, Level::Local, Level::Ring, Level::Global];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Memory => "memory",
            Level::Local => "local",
            Level::Ring => "ring",
            Level::Global => "global",
        }
    }

    /// What a checkpoint at this level survives, in words.
    pub fn survives(self) -> &'static str {
        match self {
            Level::Memory => "nothing yet: it is being written",
            Level::Local => {
                "the death of the program and a reboot of the node; not the loss of its disk"
            }
            Level::Ring => "the loss of nodes, as far as their shards reach",
            Level::Global => "the loss of the machine",
        }
    }

    /// The level with this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|level| level.name() == name)
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Where one rank's image is and what it must be.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ImageRef {
    /// The rank.
    pub rank: Rank,
    /// Length of the image's file.
    pub file_bytes: u64,
    /// Its digest.
    pub digest: Digest,
}

/// What became of the pages, and what it cost: the figures of the closing block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stats {
    /// Bytes of all protected regions.
    pub captured_bytes: u64,
    /// Pages of all protected regions.
    pub pages: u64,
    /// Pages that were all zero.
    pub zero_pages: u64,
    /// Pages equal to another page that the same rank stores in this checkpoint.
    pub duplicate_pages: u64,
    /// Pages that another rank stores in this checkpoint.
    pub remote_pages: u64,
    /// Pages that an earlier checkpoint had stored.
    pub old_pages: u64,
    /// Pages stored by this checkpoint.
    pub new_pages: u64,
    /// What those pages took after compression.
    pub compressed_bytes: u64,
    /// Length of the segment files of this checkpoint.
    pub segment_bytes: u64,
    /// Length of the images: with the segments' heads and indexes this is the metadata.
    pub image_bytes: u64,
    /// What the rank that stored most has stored, of segments and images.
    pub rank_bytes_max: u64,
    /// Time of finding and hashing what changed.
    pub scan_ns: u64,
    /// Time of agreeing with other ranks on who stores what.
    pub agree_ns: u64,
    /// Time of copying what this checkpoint stores. While nothing is to be agreed, pages are
    /// copied as they are scanned, and it counts there.
    pub copy_ns: u64,
    /// Time the program was stopped.
    pub blocked_ns: u64,
    /// Time from the call until the last segment and image were durable.
    pub total_ns: u64,
}

impl Stats {
    /// The figures of two groups of ranks together: amounts add up, and of times and of the
    /// largest share the larger one counts.
    pub fn join(self, other: Self) -> Self {
        Self {
            captured_bytes: self.captured_bytes.saturating_add(other.captured_bytes),
            pages: self.pages.saturating_add(other.pages),
            zero_pages: self.zero_pages.saturating_add(other.zero_pages),
            duplicate_pages: self.duplicate_pages.saturating_add(other.duplicate_pages),
            remote_pages: self.remote_pages.saturating_add(other.remote_pages),
            old_pages: self.old_pages.saturating_add(other.old_pages),
            new_pages: self.new_pages.saturating_add(other.new_pages),
            compressed_bytes: self.compressed_bytes.saturating_add(other.compressed_bytes),
            segment_bytes: self.segment_bytes.saturating_add(other.segment_bytes),
            image_bytes: self.image_bytes.saturating_add(other.image_bytes),
            rank_bytes_max: self.rank_bytes_max.max(other.rank_bytes_max),
            scan_ns: self.scan_ns.max(other.scan_ns),
            agree_ns: self.agree_ns.max(other.agree_ns),
            copy_ns: self.copy_ns.max(other.copy_ns),
            blocked_ns: self.blocked_ns.max(other.blocked_ns),
            total_ns: self.total_ns.max(other.total_ns),
        }
    }
}

/// The commit record of a checkpoint at one level.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Manifest {
    /// The store it belongs to.
    pub job: JobId,
    /// The checkpoint.
    pub version: Version,
    /// Order of commits in this store.
    pub sequence: u64,
    /// Which attempt at this version was committed.
    pub attempt: AttemptId,
    /// The level reached.
    pub level: Level,
    /// When it was captured, nanoseconds since 1970.
    pub taken_ns: u64,
    /// Ranks of the job.
    pub ranks: u32,
    /// The images in this store.
    pub images: Vec<ImageRef>,
    /// The segments that those images need.
    pub segments: Vec<SegmentRef>,
    /// What became of the pages.
    pub stats: Stats,
    /// How each rank's bytes were written; empty where nobody counted.
    pub writes: Vec<Writes>,
    /// The nodes of the ranks; empty where nobody told.
    pub nodes: Vec<Node>,
    /// What its line has abandoned, oldest first.
    pub abandoned: Vec<Abandoned>,
}

/// Checkpoints that a run has left behind when it went back to the one before the first of them: a
/// stretch of the order of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Abandoned {
    /// The first sequence.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

impl Abandoned {
    /// Whether a checkpoint of this sequence is among them.
    pub fn has(&self, sequence: u64) -> bool {
        (self.first..=self.last).contains(&sequence)
    }
}

/// A node and its ranks.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its ranks, ascending.
    pub ranks: Vec<Rank>,
}

/// Format from which a manifest has a write profile.
const WRITES_SINCE: u16 = 2;
/// Format from which a manifest has nodes.
const NODES_SINCE: u16 = 3;
/// Format from which a manifest tells what its line has abandoned.
const ABANDONED_SINCE: u16 = 5;

/// A list without entries, for each that a manifest has none of.
const NOTHING: u8 = 0;

impl Manifest {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        frame::seal(SORT, &frame::encode(self))
    }

    /// Reads and checks the bytes of the file.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let opened = frame::open(SORT, bytes)?;
        let manifest: Self = match opened.version {
            ABANDONED_SINCE.. => frame::decode(SORT, opened.body)?,
            NODES_SINCE.. => frame::decode(SORT, &[opened.body, &[NOTHING]].concat())?,
            WRITES_SINCE => frame::decode(SORT, &[opened.body, &[NOTHING; 2]].concat())?,
            _ => frame::decode(SORT, &[opened.body, &[NOTHING; 3]].concat())?,
        };
        let refuse = |why| Err(Error::Malformed { what: SORT.what, why });
        if manifest.version.0 == 0 {
            return refuse("version 0 does not exist");
        }
        let ordered = manifest.images.windows(2).all(|pair| pair[0].rank < pair[1].rank);
        if !ordered || manifest.images.iter().any(|image| image.rank.0 >= manifest.ranks) {
            return refuse("its images are not one per rank, in order");
        }
        let ordered = manifest.writes.windows(2).all(|pair| pair[0].rank < pair[1].rank);
        if !ordered || manifest.writes.iter().any(|writes| writes.rank.0 >= manifest.ranks) {
            return refuse("its write profile is not one entry per rank, in order");
        }
        let ordered = |node: &Node| node.ranks.windows(2).all(|pair| pair[0] < pair[1]);
        let beyond = |node: &Node| node.ranks.iter().any(|rank| rank.0 >= manifest.ranks);
        if manifest.nodes.iter().any(|node| !ordered(node) || beyond(node)) {
            return refuse("its nodes do not have ranks of it, in order");
        }
        let is_past = |left: &Abandoned| left.first <= left.last && left.last < manifest.sequence;
        if !manifest.abandoned.iter().all(is_past) {
            return refuse("what it has abandoned is not older than itself");
        }
        Ok(manifest)
    }

    /// Whether its line has abandoned the checkpoint of a sequence.
    pub fn abandons(&self, sequence: u64) -> bool {
        self.abandoned.iter().any(|left| left.has(sequence))
    }

    /// The image of a rank.
    pub fn image(&self, rank: Rank) -> Option<&ImageRef> {
        let at = self.images.binary_search_by_key(&rank, |image| image.rank).ok()?;
        Some(&self.images[at])
    }
}

#[cfg(test)]
mod tests;
