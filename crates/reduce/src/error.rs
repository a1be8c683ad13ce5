//! What can go wrong while blocks are made and undone.
//!
//! Making a block cannot fail. Undoing one meets bytes from disk and can; so can a codec named
//! in a configuration.

use standfast_format::{CodecKind, Kind};

/// Result of decoding a block or of reading a setting.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a block or a setting was refused. The caller adds which block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The compressed bytes are not what their codec writes.
    #[error("block does not decode as {codec}: {why}")]
    Damaged {
        /// The codec that the block's record names.
        codec: CodecKind,
        /// What the codec found.
        why: String,
    },
    /// The block decodes, but to another length than its record says.
    #[error("block decodes as {codec} to {found} bytes, its record says {expected}")]
    Length {
        /// The codec that the block's record names.
        codec: CodecKind,
        /// Bytes the record promises.
        expected: usize,
        /// Bytes there are.
        found: usize,
    },
    /// The record asks for more memory than any block of this store may need.
    #[error("block claims {raw_bytes} raw bytes, the largest block here has {block_bytes_max}")]
    TooLarge {
        /// Bytes the record claims.
        raw_bytes: usize,
        /// The bound.
        block_bytes_max: usize,
    },
    /// A setting names no codec, no filter or a level out of range.
    #[error("{what} {text:?} is not known: allowed are {allowed}")]
    Setting {
        /// codec or filter.
        what: &'static str,
        /// What was written.
        text: String,
        /// What may be written.
        allowed: &'static str,
    },
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Damaged { .. } | Error::Length { .. } | Error::TooLarge { .. } => Kind::Corrupt,
            Error::Setting { .. } => Kind::Invalid,
        }
    }
}
