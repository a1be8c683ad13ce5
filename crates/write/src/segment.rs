//! A segment in the making: blocks in, in any order; a sealed file out.
//!
//! Data: encoders call [`OpenSegment::append`] with finished blocks -> store object
//! `segments/<id>` -> [`OpenSegment::seal`] writes index and footer and makes it durable.
//!
//! Pieces and writes are counted on the way: the write profile of the manifest.
//!
//! Invariants:
//! - The file is created with the first block: a checkpoint with nothing new writes no segment.
//! - Sealing needs every block from 0 to the last; a missing one is a bug and stops the program.
//! - After a failure nothing of it becomes visible.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use standfast_format::{
    Block, CodecKind, FilterKind, JobId, Rank, SegmentFooter, SegmentHeader, SegmentId,
    SegmentIndex, SegmentRef, Tally, name,
};
use standfast_reduce::Encoded;
use standfast_store::{ObjectWriter, OwnedBytes, Store};

use crate::error::{Error, Result};
use crate::storing::Progress;

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
    fn bytes(&self) -> usize {
        match self {
            Stored::Encoded(encoded) => encoded.bytes.len(),
            Stored::Raw(buf) => (**buf).as_ref().len(),
        }
    }

    fn codec(&self) -> CodecKind {
        match self {
            Stored::Encoded(encoded) => encoded.codec,
            Stored::Raw(_) => CodecKind::None,
        }
    }

    fn filter(&self) -> FilterKind {
        match self {
            Stored::Encoded(encoded) => encoded.filter,
            Stored::Raw(_) => FilterKind::None,
        }
    }
}

#[derive(Default)]
struct Body {
    writer: Option<Box<dyn ObjectWriter>>,
    blocks: Vec<Option<Block>>,
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

    pub(crate) fn id(&self) -> SegmentId {
        self.header.id
    }

    /// Length of its pages' hashes.
    pub(crate) fn hash_bytes(&self) -> usize {
        self.header.hash.bytes()
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

    /// Adds a block; its number says which slots it holds.
    pub(crate) fn append(&self, number: u32, pages: u32, stored: Stored<'_>) -> Result<()> {
        self.append_to(&mut self.lock(), number, pages, stored)
    }

    /// Adds a block behind those that are there; returns its number.
    pub(crate) fn append_next(&self, pages: u32, stored: Stored<'_>) -> Result<u32> {
        let mut body = self.lock();
        let number = body.blocks.len() as u32;
        self.append_to(&mut body, number, pages, stored)?;
        Ok(number)
    }

    /// Hands what was appended to the medium, and waits for it.
    pub(crate) fn flush(&self) -> Result<()> {
        let mut body = self.lock();
        match &mut body.writer {
            Some(writer) => Ok(writer.flush()?),
            None => Ok(()),
        }
    }

    fn append_to(
        &self,
        body: &mut Body,
        number: u32,
        pages: u32,
        stored: Stored<'_>,
    ) -> Result<()> {
        if body.failed.is_some() {
            return Err(Error::Failed);
        }
        let Body { writer, blocks, pieces, .. } = body;
        let writer = match writer {
            Some(writer) => writer,
            None => writer.insert(self.create()?),
        };
        let block = Block {
            offset: writer.written(),
            stored_bytes: stored.bytes() as u32,
            pages,
            codec: stored.codec(),
            filter: stored.filter(),
        };
        let started = Instant::now();
        match stored {
            Stored::Encoded(encoded) => writer.append(encoded.bytes)?,
            Stored::Raw(buf) => writer.append_owned(buf)?,
        }
        pieces.add(u64::from(block.stored_bytes), started.elapsed().as_nanos() as u64);
        let at = number as usize;
        if blocks.len() <= at {
            blocks.resize(at + 1, None);
        }
        assert!(blocks[at].replace(block).is_none(), "a block number is used once");
        Ok(())
    }

    /// Waits until what was appended has reached the medium, but for what waits for company.
    pub(crate) fn settle(&self) {
        let settled = match &mut self.lock().writer {
            Some(writer) => writer.settle(),
            None => Ok(()),
        };
        if let Err(error) = settled {
            self.fail(error.into());
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

    /// Writes index and footer and makes the segment durable. `None` if it has no blocks.
    pub(crate) fn seal(&self, hashes: &[u8]) -> Result<Option<SealedSegment>> {
        self.seal_ordered(None, hashes)
    }

    /// As [`OpenSegment::seal`], with the blocks' slots in this order of their numbers.
    pub(crate) fn seal_ordered(
        &self,
        order: Option<&[u32]>,
        hashes: &[u8],
    ) -> Result<Option<SealedSegment>> {
        self.check()?;
        let mut body = self.lock();
        let Some(mut writer) = body.writer.take() else {
            assert!(hashes.is_empty(), "slots without blocks");
            return Ok(None);
        };
        let blocks: Vec<Block> =
            body.blocks.drain(..).map(|block| block.expect("every block was written")).collect();
        let mut pieces = std::mem::take(&mut body.pieces);
        drop(body);
        let blocks = match order {
            None => blocks,
            Some(order) => {
                assert_eq!(order.len(), blocks.len(), "every block has its place");
                order.iter().map(|number| blocks[*number as usize]).collect()
            }
        };
        let compressed_bytes = blocks.iter().map(|block| u64::from(block.stored_bytes)).sum();
        let SegmentHeader { id, page_bytes, hash, .. } = self.header;
        let (bytes, digest) = SegmentIndex::encode_parts(id, page_bytes, hash, &blocks, hashes);
        let footer = SegmentFooter {
            id: self.header.id,
            index_offset: writer.written(),
            index_bytes: bytes.len() as u64,
        };
        let started = Instant::now();
        writer.append(&bytes)?;
        writer.append(&footer.encode())?;
        pieces.add(bytes.len() as u64, started.elapsed().as_nanos() as u64);
        let meter = writer.meter();
        let file_bytes = writer.seal()?;
        let writes = meter.map_or_else(|| pieces.clone(), |meter| meter.tally());
        let reference = SegmentRef {
            id,
            rank: self.rank,
            slots: (hashes.len() / hash.bytes()) as u32,
            file_bytes,
            index: digest,
        };
        Ok(Some(SealedSegment { reference, compressed_bytes, pieces, writes }))
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
