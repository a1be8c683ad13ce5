//! What can keep a checkpoint from reaching global storage.

use standfast_format::{Kind, Retry, Version};

/// Result of draining.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a checkpoint did not get there.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One of the stores failed.
    #[error("{0}")]
    Store(#[source] std::sync::Arc<standfast_store::Error>),
    /// Something could not be read, or is damaged.
    #[error(transparent)]
    Read(#[from] standfast_restart::Error),
    /// The target holds another job of that name.
    #[error(
        "{0} holds another job of the same name: drain to another place, or give the job another name"
    )]
    OtherJob(String),
    /// The checkpoint was pruned while it was on its way.
    #[error("checkpoint {0} was pruned while it was on its way")]
    Gone(Version),
    /// What this node has is there; other nodes have not yet brought theirs.
    #[error(
        "what this node has of checkpoint {version} is there; {missing} files are still to come from other nodes"
    )]
    Others {
        /// Which one.
        version: Version,
        /// How many files.
        missing: usize,
    },
    /// A prune of the target took what this checkpoint leans on; it is brought again.
    #[error("{missing} segments of checkpoint {version} were pruned from the target meanwhile")]
    Pruned {
        /// Which one.
        version: Version,
        /// How many segments.
        missing: usize,
    },
    /// At the rate so far it will not arrive in time, and another one may.
    #[error("checkpoint {0} would not arrive in time")]
    TooSlow(Version),
    /// Whoever asked for it said how in words that mean nothing.
    #[error("invalid drain settings: {0}")]
    Manner(String),
    /// The time that was given is over.
    #[error("deadline reached")]
    Deadline,
    /// Whoever started it asked it to stop.
    #[error("asked to stop")]
    Stopped,
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Store(source) => source.kind(),
            Error::Read(source) => source.kind(),
            Error::OtherJob(_) | Error::Manner(_) => Kind::Invalid,
            Error::Gone(_) => Kind::Missing,
            Error::Pruned { .. } => Kind::Transient,
            Error::Others { .. } | Error::TooSlow(_) | Error::Deadline | Error::Stopped => {
                Kind::Busy
            }
        }
    }
}

impl Error {
    /// Whether waiting can help. Mounted file systems tell troubles of their servers as failures of
    /// the device; so those may pass, too.
    pub fn may_pass(&self) -> bool {
        let kind = self.kind();
        kind == Kind::Io || kind.retry() != Retry::Never
    }
}

impl From<standfast_store::Error> for Error {
    fn from(source: standfast_store::Error) -> Self {
        Error::Store(std::sync::Arc::new(source))
    }
}

impl From<standfast_checkpoint::Error> for Error {
    fn from(source: standfast_checkpoint::Error) -> Self {
        match source {
            standfast_checkpoint::Error::Store(source) => Error::Store(source),
            // Only commits say the others, and a drain makes none.
            other => {
                let (kind, why) = (other.kind(), other.to_string());
                Error::Read(standfast_restart::Unreadable::Told { kind, why }.into())
            }
        }
    }
}

impl From<standfast_restart::Unreadable> for Error {
    fn from(source: standfast_restart::Unreadable) -> Self {
        Error::Read(source.into())
    }
}

impl From<standfast_write::Error> for Error {
    fn from(source: standfast_write::Error) -> Self {
        Error::Read(source.into())
    }
}
