//! Why a communicator cannot be taken over from C.

use standfast_format::Kind;

/// Result of taking over a communicator.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong before there is a communicator; later failures are `standfast_comm`'s.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table cannot be used.
    #[error("the table of communication functions {why}")]
    Table {
        /// What is wrong with it, as the rest of a sentence.
        why: String,
    },
    /// The communicator cannot be used.
    #[error("the communicator cannot be used: {why}")]
    Handed {
        /// What the adapter says.
        why: String,
    },
    /// The adapter cannot be opened as a library.
    #[error("the library of the MPI adapter cannot be used: {why}")]
    Library {
        /// What the loader or MPI says.
        why: String,
    },
}

impl Error {
    /// What sort of failure this is.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Table { .. } | Error::Handed { .. } | Error::Library { .. } => Kind::Invalid,
        }
    }
}
