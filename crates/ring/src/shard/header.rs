//! Whose shard a file is.

use standfast_format::{AttemptId, JobId, Version};

use crate::code::{Family, PIECES_MAX};
use crate::error::Result;
use crate::frame::{FRAME_BYTES, Sort};
use crate::topology::{GroupId, Piece};

/// Least and most bytes of a block.
pub const BLOCK_BYTES_MIN: u32 = 1 << 10;
/// Most bytes of a block.
pub const BLOCK_BYTES_MAX: u32 = 1 << 26;

const BODY_BYTES_MAX: usize = 128 + 10 * PIECES_MAX;

/// Longest header.
pub const HEADER_BYTES_MAX: usize = BODY_BYTES_MAX + FRAME_BYTES;

const HEADER: Sort =
    Sort { mark: *b"SFSHARD\0", what: "shard header", body_bytes_max: BODY_BYTES_MAX };

/// Which checkpoint bytes belong to; pieces of different stamps are never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stamp {
    /// The job's store.
    pub job: JobId,
    /// The checkpoint.
    pub version: Version,
    /// The attempt at it.
    pub attempt: AttemptId,
}

/// Whose shard a file is, and how to read it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Header {
    /// Of which checkpoint.
    pub stamp: Stamp,
    /// Of which group.
    pub group: GroupId,
    /// Which row of the code, from 0.
    pub row: u32,
    /// Shards of the group.
    pub m: u32,
    /// The code.
    pub family: Family,
    /// Bytes of a block; the last one is shorter.
    pub block_bytes: u32,
    /// Bytes of every member, by place.
    pub member_bytes: Vec<u64>,
}

impl Header {
    /// Members of the group.
    pub fn k(&self) -> usize {
        self.member_bytes.len()
    }

    /// Which piece of the group this is.
    pub fn piece(&self) -> Piece {
        Piece { group: self.group, index: self.k() as u32 + self.row }
    }

    /// Bytes of the shard: as many as the longest member has.
    pub fn body_bytes(&self) -> u64 {
        self.member_bytes.iter().copied().max().unwrap_or(0)
    }

    /// Blocks of the shard.
    pub fn blocks(&self) -> u64 {
        self.body_bytes().div_ceil(u64::from(self.block_bytes))
    }

    /// Bytes of the table behind the body.
    pub fn table_bytes(&self) -> u64 {
        super::table::frame_bytes(self.k(), self.blocks())
    }

    /// The bytes to store.
    pub fn encode(&self) -> Vec<u8> {
        HEADER.seal_fields(self)
    }

    /// Reads stored bytes, all of which must be the header.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let header: Self = HEADER.open_fields(bytes)?;
        let fault = header.fault();
        fault.map_or(Ok(header), |why| Err(HEADER.corrupt(why)))
    }

    /// Length of the header that starts with these bytes.
    pub(super) fn frame_bytes(prefix: &[u8]) -> Result<usize> {
        HEADER.frame_bytes(prefix)
    }

    fn fault(&self) -> Option<&'static str> {
        let pieces = 1..=PIECES_MAX;
        if !pieces.contains(&self.k()) || !pieces.contains(&(self.m as usize)) {
            return Some("no code has so many pieces");
        }
        if self.row >= self.m {
            return Some("its row is beyond the code");
        }
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&self.block_bytes) {
            return Some("blocks have 1 KiB to 64 MiB");
        }
        (self.body_bytes() > i64::MAX as u64).then_some("its members are longer than a file")
    }
}
