//! Segments: blocks of many pages in one large sequential file.
//!
//! ```text
//! header   4096 bytes: frame with [`SegmentHeader`], then zeros
//! block    stored bytes of block 0
//! block    ...
//! index    frame with one [`BlockRecord`] per block, then one hash per slot
//! footer   64 bytes: where the index is
//! ```
//! A *slot* is the place of one page in a segment: slot 0 is the first page of block 0. Images
//! name pages by (segment, slot); the index turns a slot into a block and gives the page's hash.
//!
//! Why the index is last: blocks stream out before their lengths are known.
//! Why blocks need not lie in the order of their numbers: several threads compress them, and
//! whichever is ready is written; the index keeps the order, nobody waits for it.
//!
//! Invariants:
//! - A sealed segment never changes.
//! - A decoded index has in-bounds blocks and exactly one hash per slot.

use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::algorithm::{CodecKind, FilterKind, HashKind};
use crate::error::{Error, Result};
use crate::frame::{self, Sort};
use crate::id::{Digest, JobId, SegmentId};

const HEADER: Sort = Sort { mark: *b"SFSEGMT\0", what: "segment header" };
const INDEX: Sort = Sort { mark: *b"SFINDEX\0", what: "segment index" };
const FOOTER_MARK: [u8; 8] = *b"SFSEGEND";

/// Where the first block starts: one device page, so that blocks of whole pages stay aligned.
pub const SEGMENT_HEADER_BYTES: usize = 4096;
/// Length of the footer, the last bytes of the file.
pub const SEGMENT_FOOTER_BYTES: usize = 64;
/// Largest raw block; bounds what a decoder allocates.
pub const BLOCK_BYTES_MAX: usize = 16 << 20;
/// Smallest page.
pub const PAGE_BYTES_MIN: u32 = 1 << 10;
/// Largest page.
pub const PAGE_BYTES_MAX: u32 = 1 << 20;

/// Checks that a page size is one this format has.
pub fn check_page_bytes(what: &'static str, page_bytes: u32) -> Result<()> {
    if page_bytes.is_power_of_two() && (PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes) {
        return Ok(());
    }
    Err(Error::Malformed { what, why: "page size is not a power of two from 1 KiB to 1 MiB" })
}

/// What a segment says of itself at its start.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SegmentHeader {
    /// Identity, equal to the name of the file.
    pub id: SegmentId,
    /// The store it belongs to.
    pub job: JobId,
    /// Hash of its pages.
    pub hash: HashKind,
    /// Size of its pages.
    pub page_bytes: u32,
    /// When it was begun, nanoseconds since 1970.
    pub created_ns: u64,
}

impl SegmentHeader {
    /// The first [`SEGMENT_HEADER_BYTES`] of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = frame::seal(HEADER, &frame::encode(self));
        bytes.resize(SEGMENT_HEADER_BYTES, 0);
        bytes
    }

    /// Reads and checks the start of a segment.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let header: Self = frame::decode(HEADER, frame::open_prefix(HEADER, bytes)?.body)?;
        check_page_bytes(HEADER.what, header.page_bytes)?;
        Ok(header)
    }
}

/// Where one block lies and how to undo what was done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Offset of its stored bytes in the file.
    pub offset: u64,
    /// Length of its stored bytes.
    pub stored_bytes: u32,
    /// Pages in it.
    pub pages: u32,
    /// Codec to undo.
    pub codec: CodecKind,
    /// Filter to undo after the codec.
    pub filter: FilterKind,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct BlockRecord {
    offset: U64,
    stored_bytes: U32,
    pages: U32,
    codec: u8,
    filter: u8,
    zero: [u8; 6],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct IndexHead {
    id: [u8; 16],
    page_bytes: U32,
    hash: u8,
    zero: [u8; 3],
    blocks: U32,
    slots: U32,
}

/// Blocks of a segment and the hashes of its pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentIndex {
    /// The segment it belongs to.
    pub id: SegmentId,
    /// Size of its pages.
    pub page_bytes: u32,
    /// Hash of its pages.
    pub hash: HashKind,
    /// Blocks in the order of their slots.
    pub blocks: Vec<Block>,
    /// Hashes of all slots, end to end.
    pub hashes: Vec<u8>,
}

impl SegmentIndex {
    /// Number of slots.
    pub fn slots(&self) -> u32 {
        (self.hashes.len() / self.hash.bytes()) as u32
    }

    /// The hash of the page in a slot.
    pub fn hash_of(&self, slot: u32) -> &[u8] {
        let bytes = self.hash.bytes();
        &self.hashes[slot as usize * bytes..][..bytes]
    }

    /// The framed bytes, and the digest that images use to name this index.
    pub fn encode(&self) -> (Vec<u8>, Digest) {
        Self::encode_parts(self.id, self.page_bytes, self.hash, &self.blocks, &self.hashes)
    }

    /// The same, from parts: the hashes of a large segment are not copied together first.
    pub fn encode_parts(
        id: SegmentId,
        page_bytes: u32,
        hash: HashKind,
        blocks: &[Block],
        hashes: &[u8],
    ) -> (Vec<u8>, Digest) {
        let head = IndexHead {
            id: id.0,
            page_bytes: page_bytes.into(),
            hash: hash as u8,
            zero: [0; 3],
            blocks: (blocks.len() as u32).into(),
            slots: ((hashes.len() / hash.bytes()) as u32).into(),
        };
        let body_bytes =
            size_of::<IndexHead>() + size_of_val(hashes) + blocks.len() * size_of::<BlockRecord>();
        let mut frame = frame::begin(INDEX, body_bytes);
        frame.extend_from_slice(head.as_bytes());
        for block in blocks {
            let record = BlockRecord {
                offset: block.offset.into(),
                stored_bytes: block.stored_bytes.into(),
                pages: block.pages.into(),
                codec: block.codec as u8,
                filter: block.filter as u8,
                zero: [0; 6],
            };
            frame.extend_from_slice(record.as_bytes());
        }
        frame.extend_from_slice(hashes);
        let digest = frame::end(&mut frame);
        (frame, digest)
    }

    /// Reads and checks an index that lies at `index_offset` of its file.
    pub fn decode(bytes: &[u8], index_offset: u64) -> Result<(Self, Digest)> {
        let opened = frame::open(INDEX, bytes)?;
        let malformed = |why| Error::Malformed { what: INDEX.what, why };
        let (head, rest) = IndexHead::ref_from_prefix(opened.body)
            .map_err(|_| malformed("it is shorter than its head"))?;
        let hash = HashKind::from_number(head.hash)?;
        let page_bytes = head.page_bytes.get();
        check_page_bytes(INDEX.what, page_bytes)?;
        let (records, hashes) =
            <[BlockRecord]>::ref_from_prefix_with_elems(rest, head.blocks.get() as usize)
                .map_err(|_| malformed("it has fewer blocks than it says"))?;
        if hashes.len() != head.slots.get() as usize * hash.bytes() {
            return Err(malformed("it has not one hash per slot"));
        }
        let blocks = records
            .iter()
            .map(|record| read_block(record, page_bytes, index_offset))
            .collect::<Result<Vec<Block>>>()?;
        let pages: u64 = blocks.iter().map(|block| u64::from(block.pages)).sum();
        if pages != u64::from(head.slots.get()) {
            return Err(malformed("its blocks have not as many pages as it has slots"));
        }
        let index =
            Self { id: SegmentId(head.id), page_bytes, hash, blocks, hashes: hashes.to_vec() };
        Ok((index, opened.digest))
    }
}

fn read_block(record: &BlockRecord, page_bytes: u32, index_offset: u64) -> Result<Block> {
    let malformed = |why| Error::Malformed { what: INDEX.what, why };
    let block = Block {
        offset: record.offset.get(),
        stored_bytes: record.stored_bytes.get(),
        pages: record.pages.get(),
        codec: CodecKind::from_number(record.codec)?,
        filter: FilterKind::from_number(record.filter)?,
    };
    let raw_bytes = u64::from(block.pages) * u64::from(page_bytes);
    if block.pages == 0 || raw_bytes > BLOCK_BYTES_MAX as u64 {
        return Err(malformed("a block has no pages or too many"));
    }
    if u64::from(block.stored_bytes) > raw_bytes {
        return Err(malformed("a block is larger than its pages"));
    }
    let end = block.offset.checked_add(u64::from(block.stored_bytes));
    if block.offset < SEGMENT_HEADER_BYTES as u64 || end.is_none_or(|end| end > index_offset) {
        return Err(malformed("a block lies outside of the segment"));
    }
    Ok(block)
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FooterRecord {
    mark: [u8; 8],
    id: [u8; 16],
    index_offset: U64,
    index_bytes: U64,
    zero: [u8; 8],
    check: [u8; 16],
}

/// The last bytes of a segment: where its index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFooter {
    /// The segment it belongs to.
    pub id: SegmentId,
    /// Offset of the index frame.
    pub index_offset: u64,
    /// Length of the index frame.
    pub index_bytes: u64,
}

impl SegmentFooter {
    /// The last [`SEGMENT_FOOTER_BYTES`] of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut record = FooterRecord {
            mark: FOOTER_MARK,
            id: self.id.0,
            index_offset: self.index_offset.into(),
            index_bytes: self.index_bytes.into(),
            zero: [0; 8],
            check: [0; 16],
        };
        record.check = record.expected_check();
        record.as_bytes().to_vec()
    }

    /// Reads and checks the end of a segment whose file has `file_bytes`.
    pub fn decode(bytes: &[u8], file_bytes: u64) -> Result<Self> {
        let what = "segment footer";
        let record = FooterRecord::ref_from_bytes(bytes).map_err(|_| Error::Truncated {
            what,
            expected: SEGMENT_FOOTER_BYTES as u64,
            found: bytes.len() as u64,
        })?;
        if record.mark != FOOTER_MARK {
            return Err(Error::Magic { what });
        }
        if record.check != record.expected_check() {
            return Err(Error::Checksum { what });
        }
        let footer = Self {
            id: SegmentId(record.id),
            index_offset: record.index_offset.get(),
            index_bytes: record.index_bytes.get(),
        };
        let end = footer
            .index_offset
            .checked_add(footer.index_bytes)
            .and_then(|end| end.checked_add(SEGMENT_FOOTER_BYTES as u64));
        if footer.index_offset < SEGMENT_HEADER_BYTES as u64 || end != Some(file_bytes) {
            return Err(Error::Malformed { what, why: "the index does not end where it begins" });
        }
        Ok(footer)
    }
}

impl FooterRecord {
    fn expected_check(&self) -> [u8; 16] {
        let covered = &self.as_bytes()[..SEGMENT_FOOTER_BYTES - 16];
        Digest::of(covered).0[..16].try_into().expect("16 bytes")
    }
}

#[cfg(test)]
mod tests;
