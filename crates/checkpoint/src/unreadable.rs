//! What can keep a reader from the metadata of a store.

use standfast_format::{Fingerprint, Kind, Rank, Version};

/// Why the header, a manifest or an image could not be read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The store failed.
    #[error("{0}")]
    Store(#[source] std::sync::Arc<standfast_store::Error>),
    /// There is no store where one was expected.
    #[error("there is no Standfast store in {0}")]
    NoStore(String),
    /// It holds checkpoints, but neither their header nor a copy of it.
    #[error(
        "{0} holds checkpoints, but its header is gone: bring the file \"store\" back, or move {0} away to begin anew"
    )]
    NoHeader(String),
    /// It holds images or segments, but all manifests are gone.
    #[error(
        "{0} holds images or segments, but no manifest: bring the directory \"manifests\" back, or move {0} away to begin anew"
    )]
    NoManifests(String),
    /// The store is encrypted, and was opened without a key.
    #[error("{place} is encrypted (key with fingerprint {fingerprint}): set global_key")]
    Encrypted {
        /// Which one.
        place: String,
        /// The key that is needed.
        fingerprint: Fingerprint,
    },
    /// A metadata file is not what it claims to be.
    #[error("{object}: {source}")]
    Object {
        /// Name of the file in the store.
        object: String,
        /// What is wrong with it.
        source: standfast_format::Error,
    },
    /// A metadata file is intact but not the one that belongs there.
    #[error("{object}: {why}")]
    Mismatch {
        /// Name of the file in the store.
        object: String,
        /// The contradiction.
        why: &'static str,
    },
    /// A metadata file may be there or not: writing it failed, and nobody could look.
    #[error("{object}: write failed; whether it exists is unknown: {why}")]
    Uncertain {
        /// Name of the file in the store.
        object: String,
        /// The failure.
        why: String,
    },
    /// Another rank could not read a metadata file.
    #[error("{why}")]
    Told {
        /// What sort of failure it was.
        kind: Kind,
        /// What it said.
        why: String,
    },
    /// The checkpoint does not exist.
    #[error("checkpoint {0} does not exist")]
    NoCheckpoint(Version),
    /// The checkpoint has no image of this rank.
    #[error("checkpoint {version} has no image of rank {rank}")]
    NoRank {
        /// Which checkpoint.
        version: Version,
        /// Which rank.
        rank: Rank,
    },
}

impl Unreadable {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Unreadable::Store(source) => source.kind(),
            Unreadable::Object { source, .. } => source.kind(),
            Unreadable::Mismatch { .. } | Unreadable::NoHeader(_) | Unreadable::NoManifests(_) => {
                Kind::Corrupt
            }
            Unreadable::Told { kind, .. } => *kind,
            Unreadable::Encrypted { .. } => Kind::Denied,
            Unreadable::Uncertain { .. } => Kind::Io,
            Unreadable::NoStore(_) | Unreadable::NoCheckpoint(_) | Unreadable::NoRank { .. } => {
                Kind::Missing
            }
        }
    }
}

impl From<standfast_store::Error> for Unreadable {
    fn from(source: standfast_store::Error) -> Self {
        Unreadable::Store(std::sync::Arc::new(source))
    }
}
