//! What can go wrong with a store. Every variant says which object of which store.

use std::io;

use standfast_format::Kind;

use crate::contract::Lock;

/// Result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused or failed an operation.
    #[error("cannot {op} {object} in {store}: {source}")]
    Os {
        /// The operation, as a verb.
        op: &'static str,
        /// Object concerned, or `.` for the store itself.
        object: String,
        /// The store.
        store: String,
        /// The system's own error.
        source: io::Error,
    },
    /// A backend other than the operating system failed an operation.
    #[error("cannot {op} {object} in {store}: {source}")]
    Backend {
        /// The operation, as a verb.
        op: &'static str,
        /// Object concerned, or `.` for the store itself.
        object: String,
        /// The store.
        store: String,
        /// What sort of failure the backend reported.
        kind: Kind,
        /// The backend's own error.
        source: Box<dyn std::error::Error + Send + Sync + 'static>,
    },
    /// No such object.
    #[error("{store} has no {object}")]
    Missing {
        /// Object asked for.
        object: String,
        /// The store.
        store: String,
    },
    /// `put_new` found the object there already.
    #[error("{object} exists already in {store}")]
    Exists {
        /// The object.
        object: String,
        /// The store.
        store: String,
    },
    /// The name breaks the rules of object names.
    #[error("{object:?} cannot name an object in {store}: {why}")]
    Name {
        /// The offending name, shortened.
        object: String,
        /// The store.
        store: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// Something with an object's name is not an object: a symbolic link, a device.
    #[error("{object} in {store} is {what}, not a file that Standfast wrote")]
    Foreign {
        /// The name.
        object: String,
        /// The store.
        store: String,
        /// What was found.
        what: &'static str,
    },
    /// Larger than its reader is ready to hold.
    #[error("{object} in {store} has {bytes} bytes where at most {bytes_max} make sense")]
    TooLarge {
        /// The object.
        object: String,
        /// The store.
        store: String,
        /// Its size.
        bytes: u64,
        /// The reader's limit.
        bytes_max: u64,
    },
    /// The object became shorter while it was open.
    #[error("{object} in {store} ends at byte {found}, it had {expected} when it was opened")]
    Shrunk {
        /// The object.
        object: String,
        /// The store.
        store: String,
        /// Size when opened.
        expected: u64,
        /// Where it ends now.
        found: u64,
    },
    /// An earlier call on this writer failed; nothing of the object was kept.
    #[error("writing {object} to {store} was given up after: {first}")]
    GivenUp {
        /// The object.
        object: String,
        /// The store.
        store: String,
        /// Kind of the first failure.
        kind: Kind,
        /// Text of the first failure.
        first: String,
    },
    /// Somebody else holds the lock.
    #[error("{store} is in use: {lock} is held by {holder}")]
    Locked {
        /// The lock asked for.
        lock: Lock,
        /// The store.
        store: String,
        /// Who holds it, as far as known.
        holder: String,
    },
    /// The location or an option cannot work.
    #[error("cannot open a store at {store:?}: {why}")]
    Location {
        /// The location as given.
        store: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Os { source, .. } => Kind::of_io(source),
            Error::Backend { kind, .. } | Error::GivenUp { kind, .. } => *kind,
            Error::Missing { .. } => Kind::Missing,
            Error::Exists { .. } | Error::Locked { .. } => Kind::Busy,
            Error::Name { .. } | Error::Location { .. } => Kind::Invalid,
            Error::Foreign { .. } | Error::TooLarge { .. } | Error::Shrunk { .. } => Kind::Corrupt,
        }
    }
}
