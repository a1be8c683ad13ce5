//! What can go wrong between sealed segments and a manifest.

use standfast_format::{Kind, SegmentId};

/// Result of publishing or pruning.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an image or a manifest could not be written, or a file not be removed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error("{0}")]
    Store(#[source] std::sync::Arc<standfast_store::Error>),
    /// An image refers to a page that nobody has stored.
    #[error("nobody has sealed segment {segment}, which an image refers to; please report it")]
    Unsealed {
        /// Which segment.
        segment: SegmentId,
    },
    /// An image refers to a slot beyond the end of a segment.
    #[error("an image refers to slots that segment {segment} cannot have; please report it")]
    Beyond {
        /// Which segment.
        segment: SegmentId,
    },
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Store(source) => source.kind(),
            Error::Unsealed { .. } | Error::Beyond { .. } => Kind::Bug,
        }
    }
}

impl From<standfast_store::Error> for Error {
    fn from(source: standfast_store::Error) -> Self {
        Error::Store(std::sync::Arc::new(source))
    }
}
