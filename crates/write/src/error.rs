//! What can go wrong between a captured page and a sealed segment, and on the way back.

use standfast_format::{Kind, SegmentId};

/// Result of packing or reading back.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a segment could not be written or read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed.
    #[error("{0}")]
    Store(#[source] std::sync::Arc<standfast_store::Error>),
    /// The bytes of a segment are not what they claim to be.
    #[error("segment {id}: {source}")]
    Segment {
        /// Which segment.
        id: SegmentId,
        /// What is wrong with it.
        source: standfast_format::Error,
    },
    /// A segment's contents contradict who refers to it.
    #[error("segment {id}: {why}")]
    Mismatch {
        /// Which segment.
        id: SegmentId,
        /// The contradiction.
        why: &'static str,
    },
    /// A block cannot be decoded.
    #[error("segment {id}, block {block}: {why}")]
    Block {
        /// Which segment.
        id: SegmentId,
        /// Which block of it.
        block: u32,
        /// What is wrong with it.
        why: String,
    },
    /// A page changed between being hashed and being copied.
    #[error(
        "memory was written while it was captured: all threads must leave protected regions alone until the checkpoint call returns"
    )]
    MemoryChanged,
    /// Whoever was to write for this process could not.
    #[error("{source}")]
    Elsewhere {
        /// What sort of failure it was.
        kind: Kind,
        /// What it said.
        source: std::sync::Arc<dyn std::error::Error + Send + Sync>,
    },
    /// Something was asked for that cannot be done at this point.
    #[error("{what}: this is a defect of Standfast, please report it")]
    Misused {
        /// What is wrong with it.
        what: &'static str,
    },
    /// An encoder thread panicked.
    #[error("an encoder thread panicked: this is a defect of Standfast, please report it")]
    Panicked,
    /// The checkpoint failed earlier; this is a consequence.
    #[error("the checkpoint failed already")]
    Failed,
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Store(source) => source.kind(),
            Error::Segment { source, .. } => source.kind(),
            Error::Mismatch { .. } | Error::Block { .. } => Kind::Corrupt,
            Error::MemoryChanged => Kind::Invalid,
            Error::Elsewhere { kind, .. } => *kind,
            Error::Panicked | Error::Misused { .. } => Kind::Bug,
            Error::Failed => Kind::Io,
        }
    }
}

impl From<standfast_store::Error> for Error {
    fn from(source: standfast_store::Error) -> Self {
        Error::Store(std::sync::Arc::new(source))
    }
}
