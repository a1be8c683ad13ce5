//! Why something could not be done with a store: what and why, never what next.

use std::io;
use std::path::PathBuf;

use standfast::{Kind, Version};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why it could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] standfast_store::Error),
    /// What it holds could not be read.
    #[error(transparent)]
    Read(#[from] standfast_restart::Error),
    /// A segment of it could not be read.
    #[error(transparent)]
    Segment(#[from] standfast_write::Error),
    /// A drain ended early.
    #[error(transparent)]
    Drain(#[from] standfast_drain::Error),
    /// Settings or the store of a job were refused.
    #[error(transparent)]
    Job(#[from] standfast::Error),
    /// The operating system refused.
    #[error("cannot {verb} {what}: {source}")]
    Os {
        /// What was tried.
        verb: &'static str,
        /// On what.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// A place cannot be looked into.
    #[error("cannot look into {place}: {source}")]
    Unreadable {
        /// Which.
        place: String,
        /// Why not.
        source: io::Error,
    },
    /// A place without any job.
    #[error("{store} holds no job")]
    NoJobs {
        /// Which place.
        store: String,
        /// Parent and name, if the place itself is one job's store.
        is_job: Option<(PathBuf, String)>,
    },
    /// A place without the job that is asked for.
    #[error("{store} holds no job {job:?}")]
    NoSuchJob {
        /// Which place.
        store: String,
        /// Which job.
        job: String,
        /// Those that are there.
        others: Vec<String>,
    },
    /// No name was given, and the place has several jobs.
    #[error("{store} holds several jobs: {}", jobs.join(", "))]
    SeveralJobs {
        /// Which place.
        store: String,
        /// The jobs there.
        jobs: Vec<String>,
    },
    /// None of the places of several nodes has a store.
    #[error("no store of a job in {0}")]
    NoStores(String),
    /// Stores that do not belong together.
    #[error("{one} and {other} are of different runs")]
    DifferentRuns {
        /// The one.
        one: String,
        /// The other.
        other: String,
    },
    /// A pattern that stands for nothing.
    #[error("--stores {pattern}: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A store inside another program's memory.
    #[error("a memory: store lives and dies inside its program; there is nothing to look at")]
    InMemory,
    /// No checkpoint at all, or none that can be read.
    #[error("job {0:?} has no checkpoint that can be read")]
    NoCheckpoint(String),
    /// Two checkpoints that cannot be compared.
    #[error("region {0:?} was captured with different page sizes or hashes")]
    CapturedDifferently(String),
    /// Something that shall not be replaced.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The newest checkpoint is not removed by name.
    #[error("checkpoint {0} is the newest: a job goes on from it")]
    Newest(Version),
    /// Several checkpoints have the version.
    #[error(
        "several checkpoints have version {version}: name one as 'standfast ls' does, such as {version}.{attempt}"
    )]
    Ambiguous {
        /// The version.
        version: Version,
        /// The attempt of one of them.
        attempt: standfast_format::AttemptId,
    },
    /// A plan that is out of date.
    #[error("the store changed since the plan was made")]
    Changed,
    /// A checkpoint that no other node protects.
    #[error("checkpoint {0} has not reached level ring: no other node holds any of it")]
    NoRing(Version),
    /// A record of the ring that is of another job.
    #[error("the record of the ring is of {of} ranks, the checkpoint of {ranks}")]
    RingRanks {
        /// Ranks of the record.
        of: usize,
        /// Ranks of the checkpoint.
        ranks: u32,
    },
    /// Neither an option nor a setting names global storage.
    #[error("nobody says where to {0}")]
    NoGlobal(&'static str),
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
}

impl From<standfast_restart::Unreadable> for Error {
    fn from(error: standfast_restart::Unreadable) -> Self {
        Self::Read(error.into())
    }
}

impl Error {
    /// What sort of failure.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Read(error) => error.kind(),
            Self::Segment(error) => error.kind(),
            Self::Drain(error) => error.kind(),
            Self::Job(error) => error.kind(),
            Self::Os { source, .. } | Self::Unreadable { source, .. } => Kind::of_io(source),
            Self::NoJobs { .. }
            | Self::NoSuchJob { .. }
            | Self::NoStores(_)
            | Self::NoCheckpoint(_)
            | Self::NoRing(_) => Kind::Missing,
            Self::SeveralJobs { .. }
            | Self::DifferentRuns { .. }
            | Self::Pattern { .. }
            | Self::InMemory
            | Self::Newest(_)
            | Self::Ambiguous { .. }
            | Self::Exists(_)
            | Self::NoGlobal(_) => Kind::Invalid,
            Self::CapturedDifferently(_) => Kind::Unsupported,
            Self::Changed => Kind::Busy,
            Self::RingRanks { .. } => Kind::Corrupt,
            Self::Stopped => Kind::Io,
        }
    }

    /// A failure of the operating system.
    pub(crate) fn os(verb: &'static str, what: impl std::fmt::Display, source: io::Error) -> Self {
        Self::Os { verb, what: what.to_string(), source }
    }
}
