//! Encrypted objects: chunks, each with a tag, then a tail.
//!
//! ```text
//! chunk 0 | chunk 1 | ... | last chunk, shorter | tail, 64 bytes
//! ```
//! Why the salt is in a tail and not in a header: the tail also proves the length, so whoever opens an
//! object learns with one read that it is whole. And chunks lie where direct I/O wants them.
//!
//! This module knows lengths and places. Keys and ciphers are the store's.

use zerocopy::byteorder::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Error, Result};
use crate::id::Fingerprint;

const WHAT: &str = "encrypted object";
const MARK: [u8; 8] = *b"SFCRYPT\0";
const VERSION: u16 = 1;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
/// A chunk as it is stored, its tag included.
pub const CHUNK_BYTES: usize = 64 << 10;
/// What a chunk holds.
pub const CHUNK_PLAIN_BYTES: usize = CHUNK_BYTES - TAG_BYTES;
/// The end of every encrypted object.
pub const TAIL_BYTES: usize = 64;

/// The last bytes of an encrypted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncryptedTail {
    /// Of the key it was encrypted with.
    pub fingerprint: Fingerprint,
    /// What makes the key of this object another than that of every other.
    pub salt: [u8; 24],
    /// Proves the other fields and the object's length.
    pub tag: [u8; TAG_BYTES],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct TailRecord {
    mark: [u8; 8],
    version: U16,
    zero: [u8; 6],
    fingerprint: [u8; 8],
    salt: [u8; 24],
    tag: [u8; TAG_BYTES],
}

impl EncryptedTail {
    /// The last [`TAIL_BYTES`] of the object.
    pub fn encode(&self) -> [u8; TAIL_BYTES] {
        let record = TailRecord {
            mark: MARK,
            version: VERSION.into(),
            zero: [0; 6],
            fingerprint: self.fingerprint.0,
            salt: self.salt,
            tag: self.tag,
        };
        zerocopy::transmute!(record)
    }

    /// Reads the end of an object. Its tag is still to be checked.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let (expected, found) = (TAIL_BYTES as u64, bytes.len() as u64);
        let (_, record) = TailRecord::ref_from_suffix(bytes).map_err(|_| Error::Truncated {
            what: WHAT,
            expected,
            found,
        })?;
        if record.mark != MARK {
            return Err(Error::Magic { what: WHAT });
        }
        let found = record.version.get();
        if found != VERSION {
            return Err(Error::Version { what: WHAT, found, supported: VERSION });
        }
        if record.zero != [0; 6] {
            return Err(Error::Malformed {
                what: WHAT,
                why: "its tail has bytes that must be zero",
            });
        }
        let fingerprint = Fingerprint(record.fingerprint);
        Ok(Self { fingerprint, salt: record.salt, tag: record.tag })
    }

    /// What the tag proves: the tail without the tag, and the length of what the object holds.
    pub fn proven(&self, plain_bytes: u64) -> [u8; TAIL_BYTES - TAG_BYTES + 8] {
        let mut proven = [0; TAIL_BYTES - TAG_BYTES + 8];
        let (tail, length) = proven.split_at_mut(TAIL_BYTES - TAG_BYTES);
        tail.copy_from_slice(&self.encode()[..TAIL_BYTES - TAG_BYTES]);
        length.copy_from_slice(&plain_bytes.to_le_bytes());
        proven
    }
}

/// Length of an encrypted object that holds so many bytes.
pub fn encrypted_bytes(plain_bytes: u64) -> u64 {
    let chunks = plain_bytes.div_ceil(CHUNK_PLAIN_BYTES as u64);
    plain_bytes.saturating_add(chunks.saturating_mul(TAG_BYTES as u64) + TAIL_BYTES as u64)
}

/// What an encrypted object of this length holds; `None` if no object has it.
pub fn plain_bytes(encrypted_bytes: u64) -> Option<u64> {
    let chunks_bytes = encrypted_bytes.checked_sub(TAIL_BYTES as u64)?;
    let last = chunks_bytes % CHUNK_BYTES as u64;
    let tags = chunks_bytes.div_ceil(CHUNK_BYTES as u64) * TAG_BYTES as u64;
    (last == 0 || last > TAG_BYTES as u64).then(|| chunks_bytes - tags)
}

#[cfg(test)]
mod tests;
