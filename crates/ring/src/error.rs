//! What can go wrong while shards are made or used.

use standfast_format::Kind;

use crate::topology::{GroupId, Piece};

/// Result of this crate's work.
pub type Result<T> = std::result::Result<T, Error>;

/// What a source or a sink reports; it knows the file, this crate does not.
pub type Outside = Box<dyn std::error::Error + Send + Sync>;

/// Why shards could not be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's shape, job or option cannot be.
    #[error("{why}")]
    Invalid {
        /// What is wrong.
        why: String,
    },
    /// Ranks could not talk to each other.
    #[error(transparent)]
    Comm(#[from] standfast_comm::Error),
    /// A rank sent something that was not agreed.
    #[error("rank {from} sent a message that cannot be used: {why}")]
    Message {
        /// The sender.
        from: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Bytes of a shard, header, table or topology are damaged or not what they say.
    #[error("a {what} is damaged: {why}")]
    Corrupt {
        /// The sort of object.
        what: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// An object of a newer version of the format.
    #[error("a {what} has format version {found}; this build reads up to {supported}")]
    Version {
        /// The sort of object.
        what: &'static str,
        /// Its version.
        found: u16,
        /// The newest that can be read.
        supported: u16,
    },
    /// The caller's source could not be read.
    #[error("cannot read {piece}: {why}")]
    Source {
        /// What was read.
        piece: Piece,
        /// What the source says.
        why: Outside,
    },
    /// The caller's sink did not take what was made.
    #[error("cannot write {piece}: {why}")]
    Sink {
        /// What was written.
        piece: Piece,
        /// What the sink says.
        why: Outside,
    },
    /// A piece could not be made because another rank failed to give its part.
    #[error("{piece} could not be made: rank {rank} failed to give its part")]
    Peer {
        /// What is missing.
        piece: Piece,
        /// Who failed.
        rank: usize,
    },
    /// More is lost than the shards that are left can bring back.
    #[error(
        "{group}: the bytes of {} are lost and {shards} of its {m} shards are left; {} more of \
         what its nodes held must come back", ranks(lost), lost.len().saturating_sub(*shards).max(1)
    )]
    NotEnough {
        /// Whose members.
        group: GroupId,
        /// The ranks whose bytes are lost, more than there are shards.
        lost: Vec<usize>,
        /// Shards that can be used.
        shards: usize,
        /// Shards that there were.
        m: usize,
    },
    /// A rebuilt piece is not what was encoded.
    #[error("{piece} was rebuilt and is not what was encoded")]
    Mismatch {
        /// What was rebuilt.
        piece: Piece,
    },
}

/// "rank 3", "ranks 3, 4 and 9".
fn ranks(all: &[usize]) -> String {
    match all {
        [one] => format!("rank {one}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(usize::to_string).collect();
            format!("ranks {} and {last}", first.join(", "))
        }
        [] => "no rank".into(),
    }
}

impl Error {
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid { why: why.into() }
    }

    /// What sort of failure this is.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Invalid { .. } => Kind::Invalid,
            Error::Comm(source) => source.kind(),
            Error::Message { .. } | Error::Corrupt { .. } | Error::Mismatch { .. } => Kind::Corrupt,
            Error::Version { .. } => Kind::Unsupported,
            Error::Source { .. } | Error::Sink { .. } | Error::Peer { .. } => Kind::Io,
            Error::NotEnough { .. } => Kind::Missing,
        }
    }
}
