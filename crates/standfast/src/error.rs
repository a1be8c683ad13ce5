//! What a job's calls can fail with.

use standfast_comm::{Failure, Fault, Lost};
use standfast_format::{Kind, Rank, Version};

/// Result of a job's call, or of what a rank does by itself.
pub type Result<T> = std::result::Result<T, Error>;
/// Outcome of what all ranks do together: a rank's own failure is none before the others know it.
pub(crate) type Phase<T> = standfast_comm::Phase<T, Error>;
/// Why a phase ended.
pub(crate) type Stop = standfast_comm::Stop<Error>;

/// Why a call failed. The text says what and why; [`Error::kind`] says what sort.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is wrong.
    #[error("configuration: {0}")]
    Config(String),
    /// The store failed.
    #[error("{0}")]
    Store(#[source] std::sync::Arc<standfast_store::Error>),
    /// A region cannot be protected or is not.
    #[error(transparent)]
    Region(#[from] standfast_capture::Error),
    /// The memory of a device cannot be used.
    #[error(transparent)]
    Device(#[from] standfast_capture::DeviceError),
    /// Writing a checkpoint failed.
    #[error(transparent)]
    Pack(#[from] standfast_write::Error),
    /// The node agent failed, or is gone.
    #[error(transparent)]
    Agent(#[from] standfast_agent::Error),
    /// An image refers to slots that a segment cannot have.
    #[error("an image refers to slots that segment {segment} cannot have; please report it")]
    Beyond {
        /// Which segment.
        segment: standfast_format::SegmentId,
    },
    /// Reading a checkpoint failed.
    #[error(transparent)]
    Restart(#[from] standfast_restart::Error),
    /// Shards could not be made or used.
    #[error("the ring: {0}")]
    Ring(std::sync::Arc<standfast_ring::Error>),
    /// Nobody knows what global storage has.
    #[error("global storage {place} does not tell what it has of this job: {why}")]
    Global {
        /// Where it is.
        place: String,
        /// What sort of failure it was.
        kind: Kind,
        /// What it said.
        why: String,
    },
    /// Global storage holds another job of that name.
    #[error(
        "{place} holds another job of the same name: set global to another place, or give the job another name"
    )]
    OtherJob {
        /// Where it is.
        place: String,
    },
    /// The local store may not take what a checkpoint may need, and nothing in it can go.
    #[error(
        "local store full (limit {}): {} of it cannot be freed now, and a checkpoint may need {}; raise the size in keep", crate::human_bytes(*.bound), crate::human_bytes(*.used), crate::human_bytes(*.need)
    )]
    NoRoom {
        /// What it may take, in bytes.
        bound: u64,
        /// What it holds.
        used: u64,
        /// What the checkpoint may need.
        need: u64,
    },
    /// There is nothing to restart from.
    #[error("job {job:?} has no checkpoint yet")]
    NoCheckpoint {
        /// The job.
        job: String,
    },
    /// Checkpoints exist, but none of them is whole.
    #[error("none of the {} checkpoints of job {job:?} can be restored; the newest: {}", .reasons.len(), .reasons.first().map_or("none", |(_, reason)| reason.as_str()))]
    NoneRestorable {
        /// The job.
        job: String,
        /// Every checkpoint with the reason, newest first.
        reasons: Vec<(String, String)>,
    },
    /// A protected region is not in the checkpoint, or has another size there.
    #[error("checkpoint {version} does not fit the program: {why}")]
    Unfit {
        /// Which checkpoint.
        version: Version,
        /// The difference.
        why: String,
    },
    /// Safe Rust code holds a guard of this region's memory.
    #[error("region {region:?} is borrowed: drop its guards before checkpoint or restart")]
    Borrowed {
        /// Which region.
        region: String,
    },
    /// The checkpoint is not one that this job made or found.
    #[error("checkpoint {version} is not known to this job")]
    UnknownVersion {
        /// Which one.
        version: Version,
    },
    /// The level is not reached by this job's configuration.
    #[error("checkpoint {version} ends at level {reached}: level {wanted} is not configured")]
    Unreachable {
        /// Which checkpoint.
        version: Version,
        /// The last level it reaches.
        reached: standfast_format::Level,
        /// The level asked for.
        wanted: standfast_format::Level,
    },
    /// An earlier checkpoint failed after its call had returned, and no call has told it yet.
    #[error("checkpoint {version} failed: {source}")]
    Earlier {
        /// Which one.
        version: Version,
        /// Why.
        source: Box<Error>,
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
    /// A rank refers to a page that no rank has stored.
    #[error("no rank has sealed segment {segment}, which this one refers to; please report it")]
    Unsealed {
        /// Which segment.
        segment: standfast_format::SegmentId,
    },
    /// Another rank did not hand out the pages that it keeps for this one.
    #[error("rank {owner} could not read the pages that it keeps for this rank")]
    NoPages {
        /// Which one.
        owner: usize,
    },
    /// Memory went before its state was taken in.
    #[error("{0}; call unprotect before memory is given back, unmapped or moved")]
    Lost(#[from] standfast_capture::Lost),
    /// The ranks called with different arguments or have different settings.
    #[error("the ranks of the job do not agree: {0}")]
    Disagree(String),
    /// The ranks could not talk to each other.
    #[error(transparent)]
    Comm(#[from] standfast_comm::Error),
    /// Version 0 is kept for "choose one for me".
    #[error("checkpoint versions start at 1")]
    VersionZero,
    /// A check of Standfast's own logic failed; stderr has the place.
    #[error("Standfast is broken: {what} the checkpoint panicked; please report it")]
    Broken {
        /// What it was doing.
        what: &'static str,
    },
    /// The system gives no random numbers.
    #[error("the operating system gives no random numbers: {0}")]
    Random(String),
}

impl Error {
    /// Whether other ranks could not be reached. Then nothing can be agreed any more: whoever finds
    /// that out goes, so that those who wait for it find it out, too.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        use standfast_comm::Error as Comm;
        matches!(self, Error::Comm(why) if !matches!(why, Comm::NoRank { .. }))
    }

    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Store(source) => source.kind(),
            Error::Region(source) => source.kind(),
            Error::Device(source) => source.kind,
            Error::Pack(source) => source.kind(),
            Error::Agent(source) => source.kind(),
            Error::Earlier { source, .. } => source.kind(),
            Error::Restart(source) => source.kind(),
            Error::Ring(source) => source.kind(),
            Error::OtherRank { kind, .. } | Error::Global { kind, .. } => *kind,
            Error::Comm(source) => source.kind(),
            Error::NoCheckpoint { .. } | Error::UnknownVersion { .. } => Kind::Missing,
            Error::NoneRestorable { .. } | Error::NoPages { .. } => Kind::Corrupt,
            Error::Config(_)
            | Error::Unfit { .. }
            | Error::Borrowed { .. }
            | Error::OtherJob { .. }
            | Error::Lost(_)
            | Error::Disagree(_)
            | Error::VersionZero => Kind::Invalid,
            Error::Unreachable { .. } => Kind::Unsupported,
            Error::NoRoom { .. } => Kind::Full,
            Error::Random(_) => Kind::Io,
            Error::Broken { .. } | Error::Unsealed { .. } | Error::Beyond { .. } => Kind::Bug,
        }
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

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        stop.into_error()
    }
}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        Error::Comm(lost.into())
    }
}

impl From<standfast_checkpoint::Error> for Error {
    fn from(source: standfast_checkpoint::Error) -> Self {
        match source {
            standfast_checkpoint::Error::Unsealed { segment } => Error::Unsealed { segment },
            standfast_checkpoint::Error::Beyond { segment } => Error::Beyond { segment },
            standfast_checkpoint::Error::Store(source) => Error::Store(source),
        }
    }
}

impl From<standfast_checkpoint::Unreadable> for Error {
    fn from(source: standfast_checkpoint::Unreadable) -> Self {
        Error::Restart(source.into())
    }
}

impl From<standfast_ring::Error> for Error {
    fn from(source: standfast_ring::Error) -> Self {
        Error::Ring(std::sync::Arc::new(source))
    }
}

impl From<standfast_restart::Failed<standfast_capture::DeviceError>> for Error {
    fn from(failed: standfast_restart::Failed<standfast_capture::DeviceError>) -> Self {
        match failed {
            standfast_restart::Failed::Source(error) => error.into(),
            standfast_restart::Failed::Sink(error) => error.into(),
        }
    }
}

impl From<standfast_store::Error> for Error {
    fn from(source: standfast_store::Error) -> Self {
        Error::Store(std::sync::Arc::new(source))
    }
}
