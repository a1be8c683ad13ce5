//! Why a program cannot be started or resumed.

use standfast::{Kind, Version};

/// Result of starting or resuming.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a program was not started or resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store or the job failed.
    #[error(transparent)]
    Job(#[from] standfast::Error),
    /// The checkpoint was taken by something else than the preload library.
    #[error("checkpoint {version} holds no whole program: it was not taken by 'run --preload'")]
    NotAProgram {
        /// Which checkpoint.
        version: Version,
    },
    /// The description of the program is not what this version writes.
    #[error("the description of the program in the checkpoint is unreadable: {0}")]
    Description(&'static str),
    /// A file that the program had mapped has changed since.
    #[error("the program does not match the checkpoint: {path} {what}")]
    Changed {
        /// Which file.
        path: String,
        /// In what way.
        what: String,
    },
    /// There is no library to preload.
    #[error("libstandfast_preload.so is not there; looked at {0}")]
    NoLibrary(String),
    /// The operating system refused.
    #[error("cannot {what}: {source}")]
    Os {
        /// What was tried.
        what: String,
        /// Its answer.
        source: std::io::Error,
    },
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Job(source) => source.kind(),
            Error::NotAProgram { .. } | Error::Changed { .. } => Kind::Invalid,
            Error::Description(_) => Kind::Unsupported,
            Error::NoLibrary(_) => Kind::Missing,
            Error::Os { source, .. } => Kind::of_io(source),
        }
    }

    pub(crate) fn os(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Error::Os { what: what.into(), source }
    }
}
