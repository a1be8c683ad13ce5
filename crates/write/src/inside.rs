//! The sinks of a process that writes for itself.
//!
//! ```text
//! Behind  full blocks go to the encoder threads, while the program goes on
//! InTurn  blocks are written in the caller's time: what aggregation and overlap are compared with
//!   serial   each block is compressed, then stored
//!   direct   each piece (consecutive new pages of a region) is a write of its own, as it comes
//!   wag      pieces below a threshold are held back and written when half of the pool is full and
//!            at the end; larger ones are written as they come
//! ```
//! Direct and wag store blocks as they are. A piece grows while it is captured: what came of it before
//! it reached the threshold is held back with the small ones.
//!
//! Invariant: at most the pool's units are in flight; [`SegmentSink::unit`] waits for a free one.

use std::sync::{Arc, Mutex, PoisonError};

use standfast_reduce::Encoded;

use crate::encode::Encoder;
use crate::error::Result;
use crate::pipeline::Collecting;
use crate::pool::Pool;
use crate::segment::OpenSegment;
use crate::segments::Segments;
use crate::sink::{Filled, Head, SegmentSink, Unsealed};
use crate::unit::Unit;

/// So many full blocks wake the encoders together: woken for every single one, they would change
/// places with the thread that fills the next. Less than this, where the pool is small.
const TOGETHER: usize = 4;

/// When blocks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// By other threads, after the program went on.
    Behind,
    /// Piece by piece, before the program goes on.
    Direct,
    /// Pieces of at least so many bytes as they come, the others at the end, before the program
    /// goes on.
    Wag {
        /// The threshold.
        threshold_bytes: usize,
    },
}

/// Hands blocks to the encoder threads.
pub(crate) struct Behind {
    pub(crate) segments: Segments,
    pub(crate) pool: Pool,
    pub(crate) collecting: Option<Collecting>,
    /// Full blocks that wait for company.
    pub(crate) full: Vec<Filled>,
}

impl Behind {
    fn send_full(&mut self) -> Result<()> {
        self.full.drain(..).try_for_each(|block| self.segments.push(block))
    }
}

impl SegmentSink for Behind {
    /// Before it waits for a unit, every full block is on its way: they are what it waits for.
    fn unit(&mut self) -> Result<Unit> {
        if let Some(unit) = self.pool.try_take() {
            return Ok(unit);
        }
        self.send_full()?;
        Ok(self.pool.take())
    }

    fn put(&mut self, block: Filled, _: bool) -> Result<()> {
        collected(&mut self.collecting, &block);
        self.full.push(block);
        match self.full.len() < TOGETHER.min(self.pool.buffers() / 8) {
            true => Ok(()),
            false => self.send_full(),
        }
    }

    fn takes_encoded(&self) -> bool {
        true
    }

    fn put_encoded(&mut self, head: Head, block: Encoded<'_>) -> Result<()> {
        self.segments.append(head, block)
    }

    fn end_stream(&mut self) -> Result<()> {
        self.send_full()
    }

    fn hand_over(self: Box<Self>) -> Box<dyn Unsealed> {
        Box::new(self.segments)
    }
}

/// Writes blocks in the caller's thread.
pub(crate) struct InTurn {
    pub(crate) segments: Segments,
    pub(crate) pool: Pool,
    pub(crate) collecting: Option<Collecting>,
    pub(crate) encoder: Arc<Mutex<Encoder>>,
    /// Smaller pieces are held back; `None`: every block is written and waited for.
    pub(crate) piece_bytes_min: Option<usize>,
    pub(crate) held: Vec<Filled>,
    /// Where the last block went.
    pub(crate) file: Option<Arc<OpenSegment>>,
}

impl InTurn {
    fn write(&mut self, block: Filled) -> Result<()> {
        let mut encoder = self.encoder.lock().unwrap_or_else(PoisonError::into_inner);
        self.file = Some(self.segments.store(&mut encoder, block)?);
        Ok(())
    }

    fn write_held(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        held.into_iter().try_for_each(|block| self.write(block))?;
        self.end_piece()
    }
}

impl SegmentSink for InTurn {
    fn unit(&mut self) -> Result<Unit> {
        Ok(self.pool.take())
    }

    fn put(&mut self, block: Filled, at_once: bool) -> Result<()> {
        collected(&mut self.collecting, &block);
        if self.piece_bytes_min.is_none() {
            self.write(block)?;
            // Nothing is collected or compressed while something is on its way to the medium.
            return self.file.as_ref().map_or(Ok(()), |file| file.settle());
        }
        if at_once {
            return self.write(block);
        }
        self.held.push(block);
        match self.held.len() < (self.pool.buffers() / 2).max(1) {
            true => Ok(()),
            false => self.write_held(),
        }
    }

    fn takes_encoded(&self) -> bool {
        true
    }

    fn put_encoded(&mut self, head: Head, block: Encoded<'_>) -> Result<()> {
        self.segments.append(head, block)
    }

    fn piece_bytes_min(&self) -> Option<usize> {
        self.piece_bytes_min
    }

    fn end_piece(&mut self) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.flush())
    }

    fn end_stream(&mut self) -> Result<()> {
        match self.piece_bytes_min {
            Some(_) => self.write_held(),
            None => Ok(()),
        }
    }

    fn hand_over(self: Box<Self>) -> Box<dyn Unsealed> {
        Box::new(self.segments)
    }
}

fn collected(collecting: &mut Option<Collecting>, block: &Filled) {
    if let Some(collecting) = collecting {
        collecting.collected(block.head.pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PackSettings, Packer, Pipeline, SegmentReader, SegmentSettings};
    use standfast_format::{HashKind, JobId, Rank, SegmentId};
    use standfast_reduce::{FilterChoice, PageHasher};
    use standfast_store::{MemoryStore, Store};

    /// Stores pieces of so many pages; the pages come back from the segment in the order of slots.
    fn round_trip(writing: Writing, pieces: &[usize]) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
        let settings = PackSettings {
            pool_bytes: 8 << 14,
            block_bytes: 1 << 14,
            page_bytes: 4096,
            pipeline: Pipeline::Pipelined,
            threads: 1,
            codec: "none".parse().unwrap(),
            filter: FilterChoice::Auto,
        };
        let packer = Packer::new(Arc::clone(&store), settings, hasher.clone());
        let segments = SegmentSettings {
            job: JobId([1; 16]),
            rank: Rank(0),
            hash: HashKind::Xxh3,
            page_bytes: 4096,
            created_ns: 0,
        };
        let mut batch = packer.begin_as(segments, writing);
        batch.open_segment(SegmentId([2; 16]), None);
        let mut number = 0u8;
        for piece in pieces {
            for _ in 0..*piece {
                number = number.wrapping_add(1);
                let (page, mut hash) = ([number; 4096], [0; 16]);
                hasher.hash(&page, &mut hash);
                batch.push(&page, &hash, 0).unwrap();
            }
            batch.end_piece().unwrap();
        }
        batch.close_segment().unwrap();
        let sealed = batch.finish().seal().unwrap();
        let reader = SegmentReader::open(&*store, JobId([1; 16]), &sealed[0].reference).unwrap();
        let mut number = 0u8;
        for block in &reader.index().blocks {
            let mut bytes = vec![0; block.stored_bytes as usize];
            reader.read_at(block.offset, &mut bytes).unwrap();
            for page in bytes.chunks(4096) {
                number = number.wrapping_add(1);
                assert!(page.iter().all(|byte| *byte == number), "page {number}");
            }
        }
        assert_eq!(usize::from(number), pieces.iter().sum::<usize>() % 256);
    }

    #[test]
    fn pieces_of_every_size_come_back() {
        let pieces = [1, 1, 3, 40, 1, 8, 2, 17, 1, 30];
        round_trip(Writing::Direct, &pieces);
        for threshold_bytes in [4096, 1 << 15, 1 << 30] {
            round_trip(Writing::Wag { threshold_bytes }, &pieces);
        }
        round_trip(Writing::Behind, &pieces);
    }
}
