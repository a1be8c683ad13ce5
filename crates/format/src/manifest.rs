//! Manifests: the commit record of a checkpoint at one level.
//!
//! Written last, by an atomic replacement: before it nothing of the checkpoint exists for a
//! reader, after it everything does. It names every image with its digest and every segment that
//! must be kept, so that pruning needs no other file.
//!
//! Why a sequence besides the version: versions are chosen by the program and may go back when a
//! run was restarted from an older checkpoint. *Newest* means last committed: largest sequence.
//!
//! Format 1 had no write profile and format 2 no nodes: their fields end before, and a reader finds
//! none.

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

/// A list without entries: write profile or nodes of a manifest that has none.
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
            NODES_SINCE.. => frame::decode(SORT, opened.body)?,
            WRITES_SINCE => frame::decode(SORT, &[opened.body, &[NOTHING]].concat())?,
            _ => frame::decode(SORT, &[opened.body, &[NOTHING, NOTHING]].concat())?,
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
        Ok(manifest)
    }

    /// The image of a rank.
    pub fn image(&self, rank: Rank) -> Option<&ImageRef> {
        let at = self.images.binary_search_by_key(&rank, |image| image.rank).ok()?;
        Some(&self.images[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SegmentId;
    use proptest::prelude::*;

    fn some_writes(rank: u32) -> Writes {
        let mut writes = Writes::of(Rank(rank));
        writes.pieces.add(131_072, 40_000);
        writes.writes.add(2 << 20, 900_000);
        writes
    }

    fn some_manifest(ranks: u32) -> Manifest {
        let image = |rank| ImageRef { rank: Rank(rank), file_bytes: 99, digest: Digest([4; 32]) };
        Manifest {
            job: JobId([1; 16]),
            version: Version(7),
            sequence: 12,
            attempt: AttemptId([2; 8]),
            level: Level::Local,
            taken_ns: 1_800_000_000_000_000_000,
            ranks,
            images: (0..ranks).map(image).collect(),
            segments: vec![SegmentRef {
                id: SegmentId([5; 16]),
                rank: Rank(0),
                slots: 10,
                file_bytes: 50_000,
                index: Digest([6; 32]),
            }],
            stats: Stats { captured_bytes: 40960, pages: 10, new_pages: 10, ..Stats::default() },
            writes: (0..ranks).map(some_writes).collect(),
            nodes: vec![Node { name: "n0".into(), ranks: (0..ranks).map(Rank).collect() }],
        }
    }

    #[test]
    fn images_out_of_order_are_refused() {
        let mut manifest = some_manifest(3);
        manifest.images.swap(0, 2);
        assert!(Manifest::decode(&manifest.encode()).is_err());
        let mut manifest = some_manifest(3);
        manifest.ranks = 2;
        assert!(Manifest::decode(&manifest.encode()).is_err());
    }

    #[test]
    fn older_formats_have_no_nodes_and_no_write_profile() {
        let second = Manifest { nodes: Vec::new(), ..some_manifest(3) };
        let first = Manifest { writes: Vec::new(), ..second.clone() };
        for (version, manifest, missing) in [(1, first, 2), (2, second, 1)] {
            let body = frame::encode(&manifest);
            let older = frame::seal_version(SORT, version, &body[..body.len() - missing]);
            assert_eq!(Manifest::decode(&older), Ok(manifest));
            let longer = frame::seal_version(SORT, version, &body);
            assert!(Manifest::decode(&longer).is_err(), "bytes behind the fields of {version}");
        }
    }

    #[test]
    fn nodes_with_ranks_out_of_order_are_refused() {
        for ranks in [&[1, 0][..], &[3], &[0, 0]] {
            let ranks = ranks.iter().map(|rank| Rank(*rank)).collect();
            let nodes = vec![Node { name: "n0".into(), ranks }];
            let manifest = Manifest { nodes, ..some_manifest(3) };
            assert!(Manifest::decode(&manifest.encode()).is_err());
        }
    }

    #[test]
    fn a_profile_of_ranks_that_do_not_exist_is_refused() {
        let mut manifest = some_manifest(3);
        manifest.writes[2].rank = Rank(3);
        assert!(Manifest::decode(&manifest.encode()).is_err());
    }

    proptest! {
        #[test]
        fn manifests_lead_back(ranks in 1u32..40, version in 1u64.., sequence: u64) {
            let manifest = Manifest { version: Version(version), sequence, ..some_manifest(ranks) };
            prop_assert_eq!(&Manifest::decode(&manifest.encode()).unwrap(), &manifest);
            prop_assert!(manifest.image(Rank(ranks - 1)).is_some());
            prop_assert!(manifest.image(Rank(ranks)).is_none());
        }

        #[test]
        fn sealed_garbage_never_panics(body: Vec<u8>) {
            let _ = Manifest::decode(&frame::seal(SORT, &body));
        }
    }
}
