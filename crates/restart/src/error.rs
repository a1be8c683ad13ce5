//! What can keep a checkpoint from coming back.

use standfast_format::{Kind, Rank, Version};

/// Result of looking at, checking or rebuilding a checkpoint.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a checkpoint could not be read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed.
    #[error("{0}")]
    Store(#[source] std::sync::Arc<standfast_store::Error>),
    /// There is no store where one was expected.
    #[error("there is no Standfast store in {place}")]
    NoStore {
        /// Where it was looked for.
        place: String,
    },
    /// A metadata file is not what it claims to be.
    #[error("{object}: {source}")]
    Object {
        /// Name of the file in the store.
        object: String,
        /// What is wrong with it.
        source: standfast_format::Error,
    },
    /// A metadata file is sound but not the one that belongs there.
    #[error("{object}: {why}")]
    Mismatch {
        /// Name of the file in the store.
        object: String,
        /// The contradiction.
        why: &'static str,
    },
    /// A metadata file may be there or not: writing it failed, and nobody could look.
    #[error("{object}: it may exist or not, for writing it failed: {why}")]
    Uncertain {
        /// Name of the file in the store.
        object: String,
        /// The failure.
        why: String,
    },
    /// Another rank could not read a metadata file.
    #[error("{why}")]
    Told {
        /// What it said.
        why: String,
    },
    /// A segment is damaged or not the one that belongs there.
    #[error(transparent)]
    Pack(#[from] standfast_write::Error),
    /// A page does not have the hash it was stored with.
    #[error("segment {segment}, slot {slot}: the page does not have the hash it was stored with")]
    Page {
        /// Which segment.
        segment: standfast_format::SegmentId,
        /// Which slot of it.
        slot: u32,
    },
    /// A page that an image refers to by hash and owner is another one where its run leads.
    #[error(
        "image of rank {rank} of checkpoint {version}, region {region:?}, page {page}: where rank {owner} stores it there is a page with another hash"
    )]
    Reference {
        /// The checkpoint.
        version: Version,
        /// Whose image.
        rank: Rank,
        /// Which region.
        region: String,
        /// Which page of it.
        page: u64,
        /// The rank that stores it.
        owner: Rank,
    },
    /// The checkpoint does not exist.
    #[error("checkpoint {version} does not exist")]
    NoCheckpoint {
        /// Which one.
        version: Version,
    },
    /// The checkpoint has no image of this rank.
    #[error("checkpoint {version} has no image of rank {rank}")]
    NoRank {
        /// Which checkpoint.
        version: Version,
        /// Which rank.
        rank: Rank,
    },
    /// The checkpoint has no such region.
    #[error("checkpoint {version} has no region {region:?}")]
    NoRegion {
        /// Which checkpoint.
        version: Version,
        /// Which region.
        region: String,
    },
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Store(source) => source.kind(),
            Error::Object { source, .. } => source.kind(),
            Error::Mismatch { .. }
            | Error::Page { .. }
            | Error::Reference { .. }
            | Error::Told { .. } => Kind::Corrupt,
            Error::Uncertain { .. } => Kind::Io,
            Error::Pack(source) => source.kind(),
            Error::NoStore { .. }
            | Error::NoCheckpoint { .. }
            | Error::NoRank { .. }
            | Error::NoRegion { .. } => Kind::Missing,
        }
    }
}

impl From<standfast_store::Error> for Error {
    fn from(source: standfast_store::Error) -> Self {
        Error::Store(std::sync::Arc::new(source))
    }
}
