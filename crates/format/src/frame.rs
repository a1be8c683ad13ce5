//! The envelope of every metadata file: mark, format version, length, body, digest.
//!
//! ```text
//! 0   8  mark of the sort of file
//! 8   2  format version, little endian
//! 10  6  zero
//! 16  8  length of the body, little endian
//! 24  n  body
//! .. 32  BLAKE3 of everything before
//! ```
//! Why the digest is checked before the version: the envelope itself never changes, so a flipped
//! bit in the version field is reported as corruption, not as "use a newer Standfast".
//!
//! Invariants:
//! - Every byte of a frame is covered by its digest.
//! - Opening never allocates; the body is a slice of the input.

use crate::error::{Error, Result};
use crate::id::Digest;

/// Format version written by this build, and the newest it reads.
pub const FORMAT_VERSION: u16 = 5;

const HEAD_BYTES: usize = 24;
const DIGEST_BYTES: usize = 32;
/// What a frame adds to its body.
pub const FRAME_BYTES: usize = HEAD_BYTES + DIGEST_BYTES;

/// A sort of framed file: its mark and the word for it in messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sort {
    pub(crate) mark: [u8; 8],
    pub(crate) what: &'static str,
}

/// A frame that was checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened<'a> {
    /// The contents.
    pub(crate) body: &'a [u8],
    /// The format version it was written in.
    pub(crate) version: u16,
    /// The digest that closes the frame.
    pub(crate) digest: Digest,
    /// Bytes of the whole frame; anything behind them belongs to somebody else.
    pub(crate) bytes: usize,
}

/// Wraps a body.
pub(crate) fn seal(sort: Sort, body: &[u8]) -> Vec<u8> {
    seal_version(sort, FORMAT_VERSION, body)
}

/// Wraps a body under another format version, to test what readers do with it.
pub(crate) fn seal_version(sort: Sort, version: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = begin(sort, body.len());
    bytes[8..10].copy_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(body);
    end(&mut bytes);
    bytes
}

/// Starts a frame for a body of so many bytes, which the caller appends before [`end`].
pub(crate) fn begin(sort: Sort, body_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FRAME_BYTES + body_bytes);
    bytes.extend_from_slice(&sort.mark);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 6]);
    bytes.extend_from_slice(&(body_bytes as u64).to_le_bytes());
    bytes
}

/// Ends a frame: its digest is appended and returned.
pub(crate) fn end(bytes: &mut Vec<u8>) -> Digest {
    let digest = Digest::of(bytes);
    bytes.extend_from_slice(&digest.0);
    digest
}

/// Checks a frame at the start of `bytes`; more bytes may follow.
pub(crate) fn open_prefix(sort: Sort, bytes: &[u8]) -> Result<Opened<'_>> {
    let truncated =
        |expected: u64| Error::Truncated { what: sort.what, expected, found: bytes.len() as u64 };
    let head = bytes.get(..HEAD_BYTES).ok_or_else(|| truncated(FRAME_BYTES as u64))?;
    if head[..8] != sort.mark {
        return Err(Error::Magic { what: sort.what });
    }
    let body_bytes = u64::from_le_bytes(head[16..24].try_into().expect("8 bytes"));
    let total = body_bytes.saturating_add(FRAME_BYTES as u64);
    if total > bytes.len() as u64 {
        return Err(truncated(total));
    }
    let covered = &bytes[..total as usize - DIGEST_BYTES];
    let digest = Digest::of(covered);
    if digest.0 != bytes[covered.len()..total as usize] {
        return Err(Error::Checksum { what: sort.what });
    }
    let version = u16::from_le_bytes([head[8], head[9]]);
    if version > FORMAT_VERSION {
        return Err(Error::Version { what: sort.what, found: version, supported: FORMAT_VERSION });
    }
    Ok(Opened { body: &covered[HEAD_BYTES..], version, digest, bytes: total as usize })
}

/// Checks a frame that must be all of `bytes`.
pub(crate) fn open(sort: Sort, bytes: &[u8]) -> Result<Opened<'_>> {
    let opened = open_prefix(sort, bytes)?;
    if opened.bytes != bytes.len() {
        return Err(Error::Malformed { what: sort.what, why: "bytes follow its end" });
    }
    Ok(opened)
}

/// Decodes a body that must be used up.
pub(crate) fn decode<'a, T: serde::Deserialize<'a>>(sort: Sort, body: &'a [u8]) -> Result<T> {
    let (value, rest) = decode_prefix(sort, body)?;
    if !rest.is_empty() {
        return Err(Error::Malformed { what: sort.what, why: "bytes follow its fields" });
    }
    Ok(value)
}

/// Decodes the fields at the start of a body; gives back what follows.
pub(crate) fn decode_prefix<'a, T: serde::Deserialize<'a>>(
    sort: Sort,
    body: &'a [u8],
) -> Result<(T, &'a [u8])> {
    postcard::take_from_bytes(body)
        .map_err(|_| Error::Malformed { what: sort.what, why: "its fields cannot be read" })
}

/// Encodes fields; they are our own, so this cannot fail.
pub(crate) fn encode<T: serde::Serialize>(fields: &T) -> Vec<u8> {
    postcard::to_stdvec(fields).expect("fields of metadata can always be encoded")
}

#[cfg(test)]
mod tests;
