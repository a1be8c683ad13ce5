//! The identity of one store among those of a job: ranks that find the same one share the store.
//!
//! The header is the same in all stores of a job; this differs. Written once, never changed.

use crate::error::Result;
use crate::frame::{self, Sort};

const SORT: Sort = Sort { mark: *b"SFIDENT\0", what: "store identity" };

/// Largest file of an identity that a reader accepts.
pub const IDENTITY_BYTES_MAX: u64 = 4096;

/// A random number that no other store has.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct StoreIdentity(pub [u8; 16]);

impl StoreIdentity {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        frame::seal(SORT, &frame::encode(self))
    }

    /// Reads and checks the bytes of the file.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        frame::decode(SORT, frame::open(SORT, bytes)?.body)
    }
}

#[cfg(test)]
mod tests;
