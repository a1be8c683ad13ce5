//! What can go wrong while a checkpoint is taken.

use standfast_comm::{Failure, Fault};
use standfast_format::Kind;

/// Result of what a rank does by itself.
pub type Result<T> = std::result::Result<T, Error>;
/// Outcome of what all ranks do together: a rank's own failure is none before the others know it.
pub type Phase<T> = standfast_comm::Phase<T, Error>;
/// Why a phase ended.
pub type Stop = standfast_comm::Stop<Error>;

/// Why a checkpoint could not be taken.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Its image could not be made.
    #[error(transparent)]
    Image(#[from] standfast_checkpoint::Error),
    /// It is not in the store, though it was committed.
    #[error(transparent)]
    Unreadable(#[from] standfast_checkpoint::Unreadable),
    /// The memory of a device cannot be used.
    #[error(transparent)]
    Device(#[from] standfast_capture::DeviceError),
    /// Writing it failed.
    #[error(transparent)]
    Write(#[from] standfast_write::Error),
    /// The node's agent failed, or is gone.
    #[error(transparent)]
    Agent(#[from] standfast_agent::Error),
    /// Memory went before its state was taken in.
    #[error(transparent)]
    Lost(#[from] standfast_capture::Lost),
    /// The ranks could not talk to each other.
    #[error(transparent)]
    Comm(#[from] standfast_comm::Error),
    /// Another rank failed, and so the job as a whole.
    #[error("rank {} failed: {}", .0.rank, .0.why)]
    OtherRank(Failure),
    /// A check of Standfast's own logic failed; stderr has the place.
    #[error("{what} the checkpoint panicked; please report it")]
    Broken {
        /// What it was doing.
        what: &'static str,
    },
    /// The system gives no random numbers.
    #[error("the operating system gives no random numbers: {0}")]
    Random(String),
}

impl Fault for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::Image(source) => source.kind(),
            Error::Unreadable(source) => source.kind(),
            Error::Device(source) => source.kind,
            Error::Write(source) => source.kind(),
            Error::Agent(source) => source.kind(),
            Error::Comm(source) => source.kind(),
            Error::OtherRank(failure) => failure.kind(),
            Error::Lost(_) => Kind::Invalid,
            Error::Broken { .. } => Kind::Bug,
            Error::Random(_) => Kind::Io,
        }
    }

    fn of_other(failure: Failure) -> Self {
        Error::OtherRank(failure)
    }

    fn other(&self) -> Option<Failure> {
        match self {
            Error::OtherRank(failure) => Some(failure.clone()),
            _ => None,
        }
    }
}
