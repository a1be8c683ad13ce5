//! The file of a segment in the making: blocks in, in any order; a sealed file out.
//!
//! Data: encoders call [`OpenSegment::append`] with finished blocks -> store object
//! `segments/<id>` -> [`OpenSegment::seal`] writes index and footer and makes it durable. The order
//! of the blocks in the index is that of whoever seals ([`crate::segments`]).
//!
//! Pieces and writes are counted on the way: the write profile of the manifest.
//!
//! Invariants:
//! - The file is created with the first block: a checkpoint with nothing new writes no segment.
//! - After a failure nothing of it becomes visible.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use standfast_format::{
    Block, CodecKind, FilterKind, JobId, Rank, SegmentFooter, SegmentHeader, SegmentId,
    SegmentIndex, SegmentRef, Tally, name,
};
use standfast_reduce::Encoded;
use standfast_store::{ObjectWriter, OwnedBytes, Store};
use standfast_sys::Stopwatch;

use crate::error::{Error, Result};
use crate::speed::Progress;

/// A segment that blocks are still written to.
pub(crate) struct OpenSegment {
    store: Arc<dyn Store>,
    header: SegmentHeader,
    rank: Rank,
    size_hint: Option<u64>,
    body: Mutex<Body>,
}

/// A block as it goes to the store.
pub(crate) enum Stored<'a> {
    /// Compressed, or a part of a buffer: copied on its way.
    Encoded(Encoded<'a>),
    /// A whole buffer as it is: handed over, written from where it lies.
    Raw(OwnedBytes),
}

impl Stored<'_> {
    /// Its place in the file, from `offset` on.
    fn block(&self, offset: u64, pages: u32) -> Block {
        let (codec, filter, bytes) = match self {
            Stored::Encoded(encoded) => (encoded.codec, encoded.filter, encoded.bytes.len()),
            Stored::Raw(unit) => (CodecKind::None, FilterKind::None, (**unit).as_ref().len()),
        };
        Block { offset, stored_bytes: bytes as u32, pages, codec, filter }
    }
}

#[derive(Default)]
struct Body {
    writer: Option<Box<dyn ObjectWriter>>,
    /// What was handed to the writer.
    pieces: Tally,
    failed: Option<Error>,
}

/// A segment that is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSegment {
    /// How images refer to it.
    pub reference: SegmentRef,
    /// What its blocks take.
    pub compressed_bytes: u64,
    /// What the store was handed, by size.
    pub pieces: Tally,
    /// What the store wrote, by size; where it does not count, what it was handed.
    pub writes: Tally,
}

impl OpenSegment {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        header: SegmentHeader,
        rank: Rank,
        size_hint: Option<u64>,
    ) -> Self {
        Self { store, header, rank, size_hint, body: Mutex::default() }
    }

    /// The first failure, if any.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.lock().failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Remembers a failure; what was written is discarded.
    pub(crate) fn fail(&self, error: Error) {
        let mut body = self.lock();
        body.writer = None;
        body.failed.get_or_insert(error);
    }

    /// Adds a block; returns where it lies.
    pub(crate) fn append(&self, pages: u32, stored: Stored<'_>) -> Result<Block> {
        let mut body = self.lock();
        if body.failed.is_some() {
            return Err(Error::Failed);
        }
        let Body { writer, pieces, .. } = &mut *body;
        let writer = match writer {
            Some(writer) => writer,
            None => writer.insert(self.create()?),
        };
        let block = stored.block(writer.written(), pages);
        let started = Stopwatch::start();
        match stored {
            Stored::Encoded(encoded) => writer.append(encoded.bytes)?,
            Stored::Raw(unit) => writer.append_owned(unit)?,
        }
        pieces.add(u64::from(block.stored_bytes), started.ns());
        Ok(block)
    }

    /// Hands what was appended to the medium, and waits for it.
    pub(crate) fn flush(&self) -> Result<()> {
        let mut body = self.lock();
        match &mut body.writer {
            Some(writer) => Ok(writer.flush()?),
            None => Ok(()),
        }
    }

    /// Waits until what was appended has reached the medium, but for what waits for company.
    pub(crate) fn settle(&self) -> Result<()> {
        match &mut self.lock().writer {
            Some(writer) => Ok(writer.settle()?),
            None => Ok(()),
        }
    }

    /// How far it has come, with so many raw bytes waiting to be compressed.
    pub(crate) fn progress(&self, ahead_bytes: usize) -> Progress {
        let body = self.lock();
        Progress {
            ahead_bytes: ahead_bytes as u64,
            segment: self.header.id,
            handed_bytes: body.writer.as_ref().map_or(0, |writer| writer.written()),
            handing: Duration::from_nanos(body.pieces.total().ns),
            meter: body.writer.as_ref().and_then(|writer| writer.meter()),
        }
    }

    fn create(&self) -> Result<Box<dyn ObjectWriter>> {
        let mut writer = self.store.create(&name::segment(self.header.id), self.size_hint)?;
        writer.append(&self.header.encode())?;
        Ok(writer)
    }

    /// Writes index and footer and makes the segment durable; the blocks in the order of their slots,
    /// and the hashes of their pages.
    pub(crate) fn seal(&self, blocks: &[Block], hashes: &[u8]) -> Result<SealedSegment> {
        let mut body = self.lock();
        let pieces = std::mem::take(&mut body.pieces);
        let writer = match (body.failed.clone(), body.writer.take()) {
            (Some(error), _) => return Err(error),
            // Nothing was appended: nobody seals that.
            (None, None) => return Err(Error::Failed),
            (None, Some(writer)) => writer,
        };
        drop(body);
        self.write_index(writer, pieces, blocks, hashes)
    }

    fn write_index(
        &self,
        mut writer: Box<dyn ObjectWriter>,
        mut pieces: Tally,
        blocks: &[Block],
        hashes: &[u8],
    ) -> Result<SealedSegment> {
        let compressed_bytes = blocks.iter().map(|block| u64::from(block.stored_bytes)).sum();
        let SegmentHeader { id, page_bytes, hash, .. } = self.header;
        let (bytes, digest) = SegmentIndex::encode_parts(id, page_bytes, hash, blocks, hashes);
        let footer = SegmentFooter {
            id: self.header.id,
            index_offset: writer.written(),
            index_bytes: bytes.len() as u64,
        };
        let started = Stopwatch::start();
        writer.append(&bytes)?;
        writer.append(&footer.encode())?;
        pieces.add(bytes.len() as u64, started.ns());
        let meter = writer.meter();
        // Whoever names a segment that is there must not replace it: checkpoints need its pages.
        let file_bytes = writer.seal_new()?;
        let writes = meter.map_or_else(|| pieces.clone(), |meter| meter.tally());
        let reference = SegmentRef {
            id,
            rank: self.rank,
            slots: (hashes.len() / hash.bytes()) as u32,
            file_bytes,
            index: digest,
        };
        Ok(SealedSegment { reference, compressed_bytes, pieces, writes })
    }

    fn lock(&self) -> MutexGuard<'_, Body> {
        // Whoever panicked while holding it has failed the segment.
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What every segment of a checkpoint has in common.
#[derive(Clone, Copy, Debug)]
pub struct SegmentSettings {
    /// The store they belong to.
    pub job: JobId,
    /// The rank that writes them.
    pub rank: Rank,
    /// Hash of their pages.
    pub hash: standfast_format::HashKind,
    /// Size of their pages.
    pub page_bytes: u32,
    /// When the checkpoint was taken, nanoseconds since 1970.
    pub created_ns: u64,
}

impl SegmentSettings {
    pub(crate) fn header(&self, id: SegmentId) -> SegmentHeader {
        SegmentHeader {
            id,
            job: self.job,
            hash: self.hash,
            page_bytes: self.page_bytes,
            created_ns: self.created_ns,
        }
    }
}
