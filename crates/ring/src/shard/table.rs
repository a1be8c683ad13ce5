//! Checksums of a group's blocks: of one shard, and of all members.

use twox_hash::XxHash3_64;

use super::Header;
use crate::error::Result;
use crate::frame::{FRAME_BYTES, Sort};

const SUM_BYTES: usize = 8;

const TABLE: Sort = Sort {
    mark: *b"SFSHSUM\0",
    what: "shard table",
    // As long as the header says; checked before anything is read.
    body_bytes_max: isize::MAX as usize,
};

/// The checksum of a block: XXH3 (of a crate that chooses its instructions at run time) with the block's number as seed, so that blocks in another order
/// do not match.
pub fn checksum(block: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(block, bytes)
}

/// Length of the frame of a table.
pub(super) fn frame_bytes(k: usize, blocks: u64) -> u64 {
    blocks.saturating_mul(((k + 1) * SUM_BYTES) as u64).saturating_add(FRAME_BYTES as u64)
}

/// Checksums of every block: the shard's own, then one for each member. Zero where a member has
/// no such block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    k: usize,
    sums: Vec<u64>,
}

impl Table {
    pub(crate) fn new(k: usize) -> Self {
        Self { k, sums: Vec::new() }
    }

    /// Adds a block: the shard's checksum and those of the members.
    pub(crate) fn push(&mut self, shard: u64, members: &[u64]) {
        assert_eq!(members.len(), self.k, "a checksum for each member");
        self.sums.push(shard);
        self.sums.extend_from_slice(members);
    }

    /// Blocks.
    pub fn blocks(&self) -> usize {
        self.sums.len() / (self.k + 1)
    }

    /// The checksum of a block of the shard itself.
    pub fn shard(&self, block: usize) -> u64 {
        self.sums[block * (self.k + 1)]
    }

    /// The checksum of a block of a member.
    pub fn member(&self, block: usize, member: usize) -> u64 {
        assert!(member < self.k, "member {member} of {}", self.k);
        self.sums[block * (self.k + 1) + 1 + member]
    }

    /// The bytes to store.
    pub fn encode(&self) -> Vec<u8> {
        let body: Vec<u8> = self.sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        TABLE.seal(&body)
    }

    /// Reads the table that belongs to a header.
    pub fn decode(bytes: &[u8], header: &Header) -> Result<Self> {
        if bytes.len() as u64 != header.table_bytes() {
            return Err(TABLE.corrupt("it has another length than the header says"));
        }
        let (sums, _) = TABLE.open(bytes)?.as_chunks::<SUM_BYTES>();
        Ok(Self { k: header.k(), sums: sums.iter().map(|sum| u64::from_le_bytes(*sum)).collect() })
    }
}
