//! What can go wrong between ranks.

use standfast_format::Kind;

/// Result of a communication.
pub type Result<T> = std::result::Result<T, Error>;

/// Why ranks could not talk to each other.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The transport failed.
    #[error("rank {rank}: cannot {op}: {why}")]
    Transport {
        /// The rank that noticed.
        rank: usize,
        /// The operation, as a verb with its object.
        op: &'static str,
        /// What the transport says.
        why: String,
    },
    /// Another rank has left: it ended, failed or panicked.
    #[error("rank {rank}: cannot {op}: rank {peer} has left the job")]
    Gone {
        /// The rank that noticed.
        rank: usize,
        /// The operation, as a verb with its object.
        op: &'static str,
        /// The rank that is no longer there.
        peer: usize,
    },
    /// A message does not have the shape that was agreed.
    #[error("rank {rank} was sent a message it cannot use by rank {from}: {why}")]
    Message {
        /// The rank that received it.
        rank: usize,
        /// The rank that sent it.
        from: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The ranks are not at the same agreement: they called different things, or one left early.
    #[error(
        "the ranks are at different steps: rank {lower} at {lower_at}, rank {upper} at {upper_at}"
    )]
    Steps {
        /// A rank.
        lower: usize,
        /// Where it is.
        lower_at: String,
        /// Another one.
        upper: usize,
        /// Where that is.
        upper_at: String,
    },
    /// A panic has ended this rank's part in the job.
    #[error("a panic has broken {what}; this rank takes no part any more: please report it")]
    Broken {
        /// What it was doing.
        what: &'static str,
    },
    /// A rank panicked in a conversation, and all of them know: they may go on talking.
    #[error("rank {rank} panicked; its stderr has the place: please report it")]
    Panicked {
        /// The lowest rank that did.
        rank: usize,
    },
    /// The caller named a rank that does not exist.
    #[error("there is no rank {peer}: the communicator has {size}")]
    NoRank {
        /// The number.
        peer: usize,
        /// How many ranks there are.
        size: usize,
    },
}

impl Error {
    /// What sort of failure this is.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Transport { .. } | Error::Gone { .. } => Kind::Io,
            Error::Message { .. } => Kind::Corrupt,
            Error::Steps { .. } | Error::NoRank { .. } => Kind::Invalid,
            Error::Broken { .. } | Error::Panicked { .. } => Kind::Bug,
        }
    }
}
