//! Reading a sealed segment back: first its index, then any of its blocks.
//!
//! Data: a [`SegmentRef`] from an image or manifest -> footer, header and index checked against it
//! -> [`SegmentReader`], which turns slots into blocks and reads their bytes.
//!
//! Invariants:
//! - A reader exists only for a segment that is the one referred to: same id, same store, same
//!   length, same index digest. Truncated, swapped and stale files are refused here.
//! - Blocks are only bytes here; whoever decodes them checks every page's hash.

use standfast_format::{
    Block, JobId, Kind, SEGMENT_FOOTER_BYTES, SEGMENT_HEADER_BYTES, SegmentFooter, SegmentHeader,
    SegmentId, SegmentIndex, SegmentRef, name,
};
use standfast_store::{Error as StoreError, ObjectReader, Store, prove_absent};

use crate::error::{Error, Result};

/// A sealed segment, open for reading.
pub struct SegmentReader {
    object: Box<dyn ObjectReader>,
    index: SegmentIndex,
    /// First slot of every block, and behind the last one the number of slots.
    starts: Vec<u32>,
    /// Raw length of the largest block.
    raw_bytes_max: usize,
}

impl SegmentReader {
    /// Opens the segment that is referred to and checks that it is the one.
    pub fn open(store: &dyn Store, job: JobId, wanted: &SegmentRef) -> Result<Self> {
        let id = wanted.id;
        let mismatch = |why| Error::Mismatch { id, why };
        let name = name::segment(id);
        let object = store.open(&name).map_err(|error| prove_absent(store, &name, error))?;
        if object.bytes() != wanted.file_bytes {
            return Err(mismatch("its file has not the length it was committed with"));
        }
        let header = read(&*object, id, 0, SEGMENT_HEADER_BYTES)?;
        let header =
            SegmentHeader::decode(&header).map_err(|source| Error::Segment { id, source })?;
        if header.id != id {
            return Err(mismatch("its file holds another segment"));
        }
        if header.job != job {
            return Err(mismatch("it belongs to another store"));
        }
        let (index, digest) = read_index(&*object, id)?;
        if index.id != id || digest != wanted.index || index.slots() != wanted.slots {
            return Err(mismatch("its index is not the one it was committed with"));
        }
        let mut starts = Vec::with_capacity(index.blocks.len() + 1);
        let (mut next, mut pages_max) = (0, 0);
        for block in &index.blocks {
            starts.push(next);
            next += block.pages;
            pages_max = pages_max.max(block.pages);
        }
        starts.push(next);
        let raw_bytes_max = pages_max as usize * index.page_bytes as usize;
        Ok(Self { object, index, starts, raw_bytes_max })
    }

    /// Its blocks and hashes.
    pub fn index(&self) -> &SegmentIndex {
        &self.index
    }

    /// Gives up the file, keeps the index.
    pub fn into_index(self) -> SegmentIndex {
        self.index
    }

    /// Raw length of the largest block: what a decoder must be made for.
    pub fn raw_bytes_max(&self) -> usize {
        self.raw_bytes_max
    }

    /// Number of the block that holds a slot.
    pub fn block_of(&self, slot: u32) -> u32 {
        (self.starts.partition_point(|start| *start <= slot) - 1) as u32
    }

    /// First slot of a block.
    pub fn first_slot(&self, block: u32) -> u32 {
        self.starts[block as usize]
    }

    /// A block's place and codec.
    pub fn block(&self, block: u32) -> &Block {
        &self.index.blocks[block as usize]
    }

    /// Fills `buf` from `offset` of the file on; the file must be that long.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        fill(&*self.object, self.index.id, offset, buf)
    }

    /// Length of the file.
    pub fn file_bytes(&self) -> u64 {
        self.object.bytes()
    }
}

fn read_index(
    object: &dyn ObjectReader,
    id: SegmentId,
) -> Result<(SegmentIndex, standfast_format::Digest)> {
    let wrong = |source| Error::Segment { id, source };
    let file_bytes = object.bytes();
    let footer_at = file_bytes.saturating_sub(SEGMENT_FOOTER_BYTES as u64);
    let footer = read(object, id, footer_at, SEGMENT_FOOTER_BYTES)?;
    let footer = SegmentFooter::decode(&footer, file_bytes).map_err(wrong)?;
    let bytes = read(object, id, footer.index_offset, footer.index_bytes as usize)?;
    SegmentIndex::decode(&bytes, footer.index_offset).map_err(wrong)
}

fn read(object: &dyn ObjectReader, id: SegmentId, offset: u64, bytes: usize) -> Result<Vec<u8>> {
    // The footer is checked against the file's length first, so this stays below it.
    let mut buf = vec![0; bytes];
    fill(object, id, offset, &mut buf)?;
    Ok(buf)
}

fn fill(object: &dyn ObjectReader, id: SegmentId, offset: u64, buf: &mut [u8]) -> Result<()> {
    // Opened, it was there: that it is gone now proves nothing of what is stored.
    let vanished = |error: StoreError| match error.kind() {
        Kind::Missing => {
            let (object, store) = (name::segment(id), "the store that had it just now".into());
            let (op, kind, source) = ("read", Kind::Transient, Box::new(error));
            StoreError::Backend { op, object, store, kind, source }
        }
        _ => error,
    };
    if object.read_full(offset, buf).map_err(vanished)? != buf.len() {
        return Err(Error::Mismatch { id, why: "its file ends too early" });
    }
    Ok(())
}
