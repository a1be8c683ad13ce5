//! What can keep a checkpoint from coming back.

use std::sync::Arc;

use standfast_capture::DeviceError;
use standfast_checkpoint::Unreadable;
use standfast_comm::{Failure, Fault};
use standfast_format::{Kind, Rank, Version};

use crate::rebuild::Failed;

/// Result of looking at, checking or rebuilding a checkpoint.
pub type Result<T> = std::result::Result<T, Error>;
/// Outcome of what all ranks do together.
pub type Phase<T> = standfast_comm::Phase<T, Error>;
/// Why a phase ended.
pub type Stop = standfast_comm::Stop<Error>;

/// Why a checkpoint could not be read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed.
    #[error("{0}")]
    Store(#[source] Arc<standfast_store::Error>),
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
    /// A protected region is not in the checkpoint, or has another size there.
    #[error("checkpoint {version} does not fit the program: {why}")]
    Unfit {
        /// Which checkpoint.
        version: Version,
        /// The difference.
        why: String,
    },
    /// Another rank did not hand out the pages that it keeps for this one.
    #[error("rank {0} could not read the pages that it keeps for this rank")]
    NoPages(usize),
    /// The memory of a device cannot be filled.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A checkpoint cannot be read now, and is not proven to be damaged: going back to an older one
    /// would lose it.
    #[error("{what} cannot be read: {why}; {}", next_step(*.older))]
    Unread {
        /// The checkpoint or manifest.
        what: String,
        /// What sort of failure it was.
        kind: Kind,
        /// The failure.
        why: String,
        /// The newest checkpoint that it would hide.
        older: Option<Version>,
    },
    /// What the caller provides failed: the ring, or global storage.
    #[error("{source}")]
    Provided {
        /// What sort of failure it was.
        kind: Kind,
        /// The caller's own error.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// Another rank failed, and so the job as a whole.
    #[error("rank {rank} failed: {why}")]
    OtherRank {
        /// Which one.
        rank: Rank,
        /// What sort of failure it was.
        kind: Kind,
        /// What it said.
        why: String,
    },
    /// The ranks could not talk to each other.
    #[error(transparent)]
    Comm(#[from] standfast_comm::Error),
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Store(source) => source.kind(),
            Error::Metadata(source) => source.kind(),
            Error::Page { .. } | Error::Reference { .. } | Error::NoPages(_) => Kind::Corrupt,
            Error::Pack(source) => source.kind(),
            Error::NoRegion { .. } => Kind::Missing,
            Error::Unfit { .. } => Kind::Invalid,
            Error::Device(source) => source.kind,
            Error::Provided { kind, .. }
            | Error::OtherRank { kind, .. }
            | Error::Unread { kind, .. } => *kind,
            Error::Comm(source) => source.kind(),
        }
    }

    /// The same for a user who wants the newest checkpoint: which it is, and what to do. What is wrong
    /// with the program, or with Standfast, stays as it is.
    pub(crate) fn unread(self, version: Version, older: Option<Version>) -> Self {
        let kind = self.kind();
        let is_of_program = matches!(kind, Kind::Invalid | Kind::Bug) || kind.is_proof();
        match self {
            Error::Device(_) | Error::Comm(_) => self,
            own if is_of_program => own,
            own => {
                let (what, why) = (format!("checkpoint {version}"), own.to_string());
                Error::Unread { what, kind, why, older }
            }
        }
    }

    /// Whether a segment, not only metadata, could not be read.
    pub fn is_of_segment(&self) -> bool {
        matches!(self, Error::Pack(_) | Error::Page { .. })
    }
}

/// What to do about a checkpoint that cannot be read.
fn next_step(older: Option<Version>) -> String {
    match older {
        Some(older) => format!(
            "try again when that is mended, or go back on purpose to checkpoint {older}: restart from that version ('standfast run --restart {older}')"
        ),
        None => "try again when that is mended".into(),
    }
}

impl Fault for Error {
    fn kind(&self) -> Kind {
        self.kind()
    }

    fn of_other(failure: Failure) -> Self {
        let kind = failure.kind();
        Error::OtherRank { rank: Rank(failure.rank), kind, why: failure.why }
    }

    fn other(&self) -> Option<Failure> {
        match self {
            Error::OtherRank { rank, kind, why } => Some(Failure::new(rank.0, *kind, why)),
            _ => None,
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
        Error::Store(Arc::new(source))
    }
}

impl From<Failed<DeviceError>> for Error {
    fn from(failed: Failed<DeviceError>) -> Self {
        match failed {
            Failed::Source(error) => error,
            Failed::Sink(error) => error.into(),
        }
    }
}
