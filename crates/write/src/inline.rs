//! Writing in the program's own time: the two ways that write aggregation is compared with.
//!
//! ```text
//! direct   each piece (consecutive new pages of a region) is a write of its own, as it comes
//! wag      pieces below a threshold are held back in this process's pool and written when the
//!          pool is half full and at the end; larger ones are written as they come
//! ```
//! Both return to the program only when everything is on its way through the file system, and
//! store blocks as they are. A piece grows while it is captured: what came of it before it reached
//! the threshold is held back with the small ones.
//!
//! Invariant: a failure fails the segment; whoever pushes next, or seals, is told.

use std::sync::Arc;

use standfast_format::{CodecKind, FilterKind};
use standfast_reduce::Encoded;

use crate::error::Result;
use crate::packer::Filling;
use crate::segment::{OpenSegment, Stored};

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

/// What is held back of one checkpoint.
pub(crate) struct Inline {
    threshold_bytes: usize,
    page_bytes: usize,
    piece_bytes: usize,
    held: Vec<(Filling, u32)>,
    held_max: usize,
}

impl Inline {
    pub(crate) fn new(writing: Writing, page_bytes: usize, held_max: usize) -> Option<Self> {
        let threshold_bytes = match writing {
            Writing::Behind => return None,
            Writing::Direct => 0,
            Writing::Wag { threshold_bytes } => threshold_bytes,
        };
        let held_max = held_max.max(1);
        Some(Self { threshold_bytes, page_bytes, piece_bytes: 0, held: Vec::new(), held_max })
    }

    pub(crate) fn page_kept(&mut self) {
        self.piece_bytes += self.page_bytes;
    }

    /// Whether the piece so far is written as it is, not held back.
    pub(crate) fn piece_goes_out(&self) -> bool {
        self.piece_bytes > 0 && self.piece_bytes >= self.threshold_bytes
    }

    pub(crate) fn end_piece(&mut self, segment: &OpenSegment) {
        if self.piece_goes_out() {
            fail_with(segment, segment.flush());
        }
        self.piece_bytes = 0;
    }

    pub(crate) fn take(&mut self, block: Filling, number: u32, segment: &Arc<OpenSegment>) {
        if self.piece_goes_out() {
            fail_with(segment, write(block, number, self.page_bytes, segment));
            return;
        }
        self.held.push((block, number));
        if self.held.len() >= self.held_max {
            self.write_held(segment);
        }
    }

    pub(crate) fn write_held(&mut self, segment: &OpenSegment) {
        for (block, number) in self.held.drain(..) {
            fail_with(segment, write(block, number, self.page_bytes, segment));
        }
        fail_with(segment, segment.flush());
    }
}

fn write(block: Filling, number: u32, page_bytes: usize, segment: &OpenSegment) -> Result<()> {
    let bytes = block.pages * page_bytes;
    let pages = block.pages as u32;
    if block.may_lend && bytes == block.buf.len() {
        return segment.append(number, pages, Stored::Raw(Box::new(block.buf)));
    }
    let bytes = &block.buf[..bytes];
    let raw = Encoded { codec: CodecKind::None, filter: FilterKind::None, bytes };
    segment.append(number, pages, Stored::Encoded(raw))
}

fn fail_with(segment: &OpenSegment, outcome: Result<()>) {
    if let Err(error) = outcome {
        segment.fail(error);
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
        let (mut hashes, mut number) = (Vec::new(), 0u8);
        for piece in pieces {
            for _ in 0..*piece {
                number = number.wrapping_add(1);
                let (page, mut hash) = ([number; 4096], [0; 16]);
                hasher.hash(&page, &mut hash);
                batch.push(&page, &hash, 0).unwrap();
                hashes.extend_from_slice(&hash);
            }
            batch.end_piece();
        }
        batch.close_segment(Arc::new(hashes));
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
