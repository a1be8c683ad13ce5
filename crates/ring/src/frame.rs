//! The envelope of this crate's metadata, laid out as every frame of the store (docs/FORMAT.md).
//!
//! Invariants:
//! - Every byte of a frame is covered by its digest, which is checked first.
//! - Opening allocates nothing but the decoded fields, which are no larger than the body.

use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Error, Result};

/// Format version written by this build, and the newest it reads.
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 24;
const DIGEST_BYTES: usize = 32;
/// What a frame adds to its body.
pub(crate) const FRAME_BYTES: usize = HEAD_BYTES + DIGEST_BYTES;

/// A sort of framed object: its mark, the word for it, and its largest body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sort {
    pub(crate) mark: [u8; 8],
    pub(crate) what: &'static str,
    pub(crate) body_bytes_max: usize,
}

impl Sort {
    pub(crate) fn corrupt(&self, why: &'static str) -> Error {
        Error::Corrupt { what: self.what, why }
    }

    /// Wraps a body.
    pub(crate) fn seal(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FRAME_BYTES + body.len());
        bytes.extend_from_slice(&self.mark);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(body);
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    /// Wraps fields.
    pub(crate) fn seal_fields<T: Serialize>(&self, fields: &T) -> Vec<u8> {
        self.seal(&postcard::to_stdvec(fields).expect("our own fields can be encoded"))
    }

    /// Length of the whole frame, from its first bytes.
    pub(crate) fn frame_bytes(&self, head: &[u8]) -> Result<usize> {
        let head = head.get(..HEAD_BYTES).ok_or(self.corrupt("it is cut off"))?;
        if head[..8] != self.mark {
            return Err(self.corrupt("its mark is another"));
        }
        let body = u64::from_le_bytes(head[16..24].try_into().expect("8 bytes"));
        if body > self.body_bytes_max as u64 {
            return Err(self.corrupt("it is longer than it can be"));
        }
        Ok(FRAME_BYTES + body as usize)
    }

    /// Checks a frame that is all of `bytes`; its body.
    pub(crate) fn open<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        if self.frame_bytes(bytes)? != bytes.len() {
            return Err(self.corrupt("its length is another"));
        }
        let (covered, digest) = bytes.split_at(bytes.len() - DIGEST_BYTES);
        if blake3::hash(covered).as_bytes() != digest {
            return Err(self.corrupt("its digest does not match"));
        }
        let found = u16::from_le_bytes([bytes[8], bytes[9]]);
        if found > VERSION {
            return Err(Error::Version { what: self.what, found, supported: VERSION });
        }
        Ok(&covered[HEAD_BYTES..])
    }

    /// Checks a frame and decodes its fields, which must use it up.
    pub(crate) fn open_fields<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T> {
        let body = self.open(bytes)?;
        match postcard::take_from_bytes(body) {
            Ok((fields, [])) => Ok(fields),
            _ => Err(self.corrupt("its fields cannot be read")),
        }
    }
}

/// The bytes that every frame begins with: enough to know its length.
pub(crate) const PREFIX_BYTES: usize = HEAD_BYTES;
