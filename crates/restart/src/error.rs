//! What can keep a checkpoint from coming back.

use standfast_checkpoint::Unreadable;
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
    /// The header, a manifest or an image could not be read.
    #[error(transparent)]
    Metadata(Unreadable),
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
            Error::Metadata(source) => source.kind(),
            Error::Page { .. } | Error::Reference { .. } => Kind::Corrupt,
            Error::Pack(source) => source.kind(),
            Error::NoRegion { .. } => Kind::Missing,
        }
    }
}

impl From<Unreadable> for Error {
    fn from(source: Unreadable) -> Self {
        match source {
            Unreadable::Store(source) => Error::Store(source),
            other => Error::Metadata(other),
        }
    }
}

impl From<standfast_store::Error> for Error {
    fn from(source: standfast_store::Error) -> Self {
        Error::Store(std::sync::Arc::new(source))
    }
}
