//! What can go wrong with a store. Every variant says which object of which store.

use std::fmt;
use std::io;
use std::path::PathBuf;

use standfast_format::{Fingerprint, Kind};
use standfast_sys::trust::Distrust;

use crate::contract::Lock;

/// Result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Which object of which store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// The store in words.
    pub store: String,
}

impl Object {
    /// The object of this name in the store of that description.
    pub fn new(name: impl Into<String>, store: impl Into<String>) -> Self {
        Self { name: name.into(), store: store.into() }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.name, self.store)
    }
}

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
    #[error("{} has no {}", .0.store, .0.name)]
    Missing(Object),
    /// `put_new` found the object there already.
    #[error("{} exists already in {}", .0.name, .0.store)]
    Exists(Object),
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
    #[error("{object} is {what}, not a file that Standfast wrote")]
    Foreign {
        /// Which one.
        object: Object,
        /// What was found.
        what: &'static str,
    },
    /// It is somebody else's, or somebody else may write to it.
    #[error("{} is not used: {why}", path.display())]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// Whose it is, and what to do.
        why: Distrust,
    },
    /// Larger than its reader is ready to hold.
    #[error("{object} has {bytes} bytes where at most {bytes_max} make sense")]
    TooLarge {
        /// Which one.
        object: Object,
        /// Its size.
        bytes: u64,
        /// The reader's limit.
        bytes_max: u64,
    },
    /// The object became shorter while it was open.
    #[error("{object} ends at byte {found}, it had {expected} when it was opened")]
    Shrunk {
        /// Which one.
        object: Object,
        /// Size when opened.
        expected: u64,
        /// Where it ends now.
        found: u64,
    },
    /// Another object has the name of one that was being read.
    #[error("{0} was replaced while it was read; try again")]
    Replaced(Object),
    /// The memory to read it into cannot be had.
    #[error("no memory for the {bytes} bytes of {object}")]
    NoMemory {
        /// Which one.
        object: Object,
        /// Its size.
        bytes: u64,
    },
    /// The medium failed to give back what was stored, twice: this copy is damaged.
    #[error("{object} cannot be read any more, tried twice: {source}")]
    Medium {
        /// Which one.
        object: Object,
        /// The system's own error.
        source: io::Error,
    },
    /// The store says that an object is missing and lists it all the same.
    #[error("{} lists {} but does not find it: nobody knows whether it is there", .0.store, .0.name)]
    Contradiction(Object),
    /// An earlier call on this writer failed; nothing of the object was kept.
    #[error("writing {} to {} was aborted after: {first}", object.name, object.store)]
    GivenUp {
        /// Which one.
        object: Object,
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
    /// There is no key, or none that can be used. What was read of it is never told.
    #[error("global_key: {why}")]
    Key {
        /// What sort of failure it was.
        kind: Kind,
        /// What is wrong.
        why: String,
    },
    /// Encrypted with another key than the one given.
    #[error("{object} was encrypted with another key (fingerprint {found}, this is {own})")]
    OtherKey {
        /// Which one.
        object: Object,
        /// The key it was encrypted with.
        found: Fingerprint,
        /// The key that was given.
        own: Fingerprint,
    },
    /// A key was given, and the object has no tail that says how it was encrypted.
    #[error("{0} is not encrypted, or its end is lost")]
    NotEncrypted(Object),
    /// Encrypted bytes are not those that were written there under this name.
    #[error("{object} was damaged or changed: it does not decrypt from byte {at} on")]
    Altered {
        /// Which one.
        object: Object,
        /// Where in what it holds.
        at: u64,
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
            Error::Backend { kind, .. } | Error::GivenUp { kind, .. } | Error::Key { kind, .. } => {
                *kind
            }
            Error::Untrusted { .. } | Error::OtherKey { .. } => Kind::Denied,
            Error::Missing { .. } => Kind::Missing,
            Error::Replaced { .. } => Kind::Transient,
            Error::Exists { .. } | Error::Locked { .. } => Kind::Busy,
            Error::Name { .. } | Error::Location { .. } => Kind::Invalid,
            Error::Foreign { .. }
            | Error::TooLarge { .. }
            | Error::Shrunk { .. }
            | Error::NotEncrypted { .. }
            | Error::Altered { .. }
            | Error::Medium { .. } => Kind::Corrupt,
            Error::Contradiction { .. } => Kind::Transient,
            Error::NoMemory { .. } => Kind::Exhausted,
        }
    }
}
