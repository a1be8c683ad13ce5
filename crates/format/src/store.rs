//! The store header: what makes a directory (or a prefix of an object store) one job's store.
//!
//! Written once when the store is made, before anything else; never changed. It has copies
//! ([`name::HEADERS`]): without the key that it holds no page can be checked.

use crate::error::Result;
use crate::frame::{self, Sort};
use crate::id::JobId;
use crate::name;

const SORT: Sort = Sort { mark: *b"SFSTORE\0", what: "store header" };

/// Largest store header a reader accepts.
pub const STORE_HEADER_BYTES_MAX: u64 = 4096;

/// Identity of a store and the key of its page hashes.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StoreHeader {
    /// Identity of the job's store; repeated in every file.
    pub id: JobId,
    /// The job's name.
    pub job: String,
    /// Key of the page hashes: pages of different stores never compare.
    pub key: [u8; 32],
    /// When it was made, nanoseconds since 1970.
    pub created_ns: u64,
}

impl std::fmt::Debug for StoreHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key stays out of logs.
        f.debug_struct("StoreHeader").field("id", &self.id).field("job", &self.job).finish()
    }
}

impl StoreHeader {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        frame::seal(SORT, &frame::encode(self))
    }

    /// Reads and checks the bytes of the file.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let header: Self = frame::decode(SORT, frame::open(SORT, bytes)?.body)?;
        name::check_job(&header.job)?;
        Ok(header)
    }
}

#[cfg(test)]
mod tests;
