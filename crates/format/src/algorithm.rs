//! Which hash, codec and filter made the bytes: small numbers that are part of the format.
//!
//! The functions behind these names live in the `reduce` crate; here are only their numbers,
//! their words and the length of a page hash. A number, once given, keeps its meaning.

use crate::error::{Error, Result};

/// Longest page hash of any algorithm, in bytes.
pub const HASH_BYTES_MAX: usize = 32;

/// The hash by which pages are recognised and verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
#[serde(rename_all = "lowercase")]
pub enum HashKind {
    /// XXH3 with 128 bits and a secret derived from the job's key: fast, not collision-resistant
    /// against somebody who knows the key.
    Xxh3 = 1,
    /// BLAKE3 keyed with the job's key, 256 bits: cryptographic.
    Blake3 = 2,
    /// SHA-1 of key and page, 160 bits: what seed systems used; kept for comparison.
    Sha1 = 3,
}

/// The algorithm that compressed a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
#[serde(rename_all = "lowercase")]
pub enum CodecKind {
    /// Bytes as they are.
    None = 0,
    /// LZ4 block format without a length prefix.
    Lz4 = 1,
    /// One Zstandard frame.
    Zstd = 2,
    /// Raw Deflate stream (RFC 1951).
    Deflate = 3,
    /// Byte planes of numbers, entropy-coded (docs/GPU.md): what devices write.
    Float = 4,
}

/// The reversible rearrangement done before compressing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
#[serde(rename_all = "lowercase")]
pub enum FilterKind {
    /// Bytes in their order.
    None = 0,
    /// Byte planes of 4-byte elements: all first bytes, then all second bytes, ...
    Shuffle4 = 1,
    /// Byte planes of 8-byte elements.
    Shuffle8 = 2,
    /// Byte planes of what each 4-byte element differs from the one before.
    Delta4 = 3,
    /// Byte planes of what each 8-byte element differs from the one before.
    Delta8 = 4,
}

macro_rules! numbered {
    ($kind:ident, $what:literal, $($variant:ident = $name:literal),+) => {
        impl $kind {
            /// Every algorithm of this sort.
            pub const ALL: &'static [$kind] = &[$($kind::$variant),+];

            /// The word used in configuration and output.
            pub fn name(self) -> &'static str {
                match self { $($kind::$variant => $name),+ }
            }

            /// The algorithm with this number, from stored bytes.
            pub fn from_number(number: u8) -> Result<Self> {
                Self::ALL.iter().copied().find(|kind| *kind as u8 == number).ok_or(
                    Error::UnknownAlgorithm { what: $what, number },
                )
            }

            /// The algorithm with this word, from configuration.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.name() == name)
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

numbered!(HashKind, "hash", Xxh3 = "xxh3", Blake3 = "blake3", Sha1 = "sha1");
numbered!(
    CodecKind,
    "codec",
    None = "none",
    Lz4 = "lz4",
    Zstd = "zstd",
    Deflate = "deflate",
    Float = "float"
);
numbered!(
    FilterKind,
    "filter",
    None = "none",
    Shuffle4 = "shuffle4",
    Shuffle8 = "shuffle8",
    Delta4 = "delta4",
    Delta8 = "delta8"
);

impl HashKind {
    /// Length of one page hash in bytes.
    pub fn bytes(self) -> usize {
        match self {
            HashKind::Xxh3 => 16,
            HashKind::Blake3 => 32,
            HashKind::Sha1 => 20,
        }
    }
}

#[cfg(test)]
mod tests;
