//! What can be wrong with bytes that claim to be ours.

use crate::kind::Kind;

/// Result of decoding or checking.
pub type Result<T> = std::result::Result<T, Error>;

/// Why bytes were refused. `what` names the sort of file; the caller adds which one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file does not start with the mark of its sort.
    #[error("not a Standfast {what}: its first bytes are wrong")]
    Magic {
        /// Sort of file expected.
        what: &'static str,
    },
    /// Written by a newer Standfast.
    #[error(
        "this {what} has format version {found}, this Standfast reads up to {supported}: use a newer Standfast"
    )]
    Version {
        /// Sort of file.
        what: &'static str,
        /// Version found in the file.
        found: u16,
        /// Newest version this build reads.
        supported: u16,
    },
    /// Shorter than its own header says.
    #[error("truncated {what}: {found} bytes where {expected} are needed")]
    Truncated {
        /// Sort of file.
        what: &'static str,
        /// Bytes needed.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// Contents do not match their checksum.
    #[error("checksum of this {what} does not match its contents")]
    Checksum {
        /// Sort of file.
        what: &'static str,
    },
    /// Checksums hold, yet the contents contradict themselves.
    #[error("malformed {what}: {why}")]
    Malformed {
        /// Sort of file.
        what: &'static str,
        /// The contradiction.
        why: &'static str,
    },
    /// An algorithm number that this build does not know.
    #[error("unknown {what} number {number}: use a newer Standfast")]
    UnknownAlgorithm {
        /// hash, codec or filter.
        what: &'static str,
        /// The number found.
        number: u8,
    },
    /// A name of a job or region breaks the naming rules.
    #[error("{what} name {name:?} is not allowed: {why}")]
    Name {
        /// job or region.
        what: &'static str,
        /// The offending name, shortened.
        name: String,
        /// The rule.
        why: &'static str,
    },
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Version { .. } | Error::UnknownAlgorithm { .. } => Kind::Unsupported,
            Error::Name { .. } => Kind::Invalid,
            Error::Magic { .. }
            | Error::Truncated { .. }
            | Error::Checksum { .. }
            | Error::Malformed { .. } => Kind::Corrupt,
        }
    }
}
