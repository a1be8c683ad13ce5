//! Bytes of messages: little-endian numbers, read with every length checked.

use standfast_comm::{Error, Result};
use standfast_format::SegmentId;

/// Length of a segment's id.
const ID_BYTES: usize = 16;

/// Appends a number.
pub(super) fn put(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

/// Appends ids, after their count.
pub(super) fn put_ids(bytes: &mut Vec<u8>, ids: &[SegmentId]) {
    put(bytes, count(ids.len()));
    for id in ids {
        bytes.extend_from_slice(&id.0);
    }
}

/// Candidates and segments are counted in 32 bits: 16 TiB of 4 KiB pages in a rank.
pub(super) fn count(items: usize) -> u32 {
    u32::try_from(items).expect("a rank has fewer than 2^32 candidates and segments")
}

/// What is left of a message, and who is to blame for it.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    rank: usize,
    from: usize,
}

impl<'a> Reader<'a> {
    /// The start of a message that `rank` received.
    pub(super) fn new(bytes: &'a [u8], rank: usize, from: usize) -> Self {
        Self { bytes, rank, from }
    }

    /// Why this message is refused.
    pub(super) fn refuse(&self, why: &'static str) -> Error {
        Error::Message { rank: self.rank, from: self.from, why }
    }

    /// Nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let cut = self.bytes.split_at_checked(count);
        let (taken, rest) = cut.ok_or_else(|| self.refuse("it is cut off"))?;
        self.bytes = rest;
        Ok(taken)
    }

    /// The next number.
    pub(super) fn number(&mut self) -> Result<u32> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    /// The next number, which must be below a bound.
    pub(super) fn below(&mut self, bound: usize, why: &'static str) -> Result<u32> {
        let number = self.number()?;
        if (number as usize) < bound { Ok(number) } else { Err(self.refuse(why)) }
    }

    /// Ids after their count.
    pub(super) fn ids(&mut self) -> Result<Vec<SegmentId>> {
        let count = self.number()? as usize;
        let length = count.checked_mul(ID_BYTES).ok_or_else(|| self.refuse("it is cut off"))?;
        let ids = self.bytes(length)?.chunks_exact(ID_BYTES);
        Ok(ids.map(|id| SegmentId(id.try_into().expect("an id's bytes"))).collect())
    }

    /// The message must end here.
    pub(super) fn finish(self) -> Result<()> {
        if self.bytes.is_empty() { Ok(()) } else { Err(self.refuse("it is too long")) }
    }
}
