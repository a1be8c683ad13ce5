//! What can go wrong between a rank and the agent of its node.

use std::path::PathBuf;

use standfast_format::Kind;

/// Result of talking to the agent, or of being one.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the agent cannot be used, or did not do what it was asked for.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory of the socket is not one that only this user can use.
    #[error("the agent's directory {}: {why}", .dir.display())]
    Place {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No agent answers.
    #[error("no agent answers at {}: {why}", .socket.display())]
    None {
        /// Where one was looked for.
        socket: PathBuf,
        /// Why there is none.
        why: String,
    },
    /// An agent could not be started.
    #[error("the agent could not be started with {command:?}: {why}")]
    Start {
        /// The command.
        command: String,
        /// Why.
        why: String,
    },
    /// The agent ended or went silent.
    #[error(
        "the node agent is gone ({0}); what was committed is safe, and checkpoints go on without it"
    )]
    Lost(String),
    /// The agent has not answered in time.
    #[error(
        "the node agent does not answer; it may be stopped, or still at work for ranks that died"
    )]
    Silent,
    /// The agent ends later.
    #[error("the node agent has not ended yet: it still commits or drains, and ends after that")]
    Working,
    /// The agent does not answer, and its process does not end.
    #[error(
        "the node agent, process {0}, does not answer and could not be ended: end it by hand, for it may still write"
    )]
    Stuck(i32),
    /// Bytes that no agent and no rank would send.
    #[error("the other end of the agent's socket does not speak its protocol: {0}")]
    Protocol(&'static str),
    /// The agent was asked and refused.
    #[error("the node agent: {why}")]
    Refused {
        /// What sort of failure it was.
        kind: Kind,
        /// What it said.
        why: String,
    },
    /// The operating system refused something.
    #[error("cannot {what}: {why}")]
    Os {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        why: String,
    },
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Place { .. } => Kind::Denied,
            Error::None { .. } => Kind::Missing,
            Error::Start { .. } => Kind::Unsupported,
            Error::Lost(_) => Kind::Transient,
            Error::Silent | Error::Working | Error::Stuck(_) => Kind::Busy,
            Error::Protocol(_) => Kind::Unsupported,
            Error::Refused { kind, .. } => *kind,
            Error::Os { .. } => Kind::Io,
        }
    }

    pub(crate) fn os<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> Self {
        move |error| Error::Os { what, why: error.to_string() }
    }

    pub(crate) fn lost<E: std::fmt::Display>(error: E) -> Self {
        Error::Lost(error.to_string())
    }
}

impl From<Error> for standfast_write::Error {
    fn from(error: Error) -> Self {
        Self::Elsewhere { kind: error.kind(), source: std::sync::Arc::new(error) }
    }
}
