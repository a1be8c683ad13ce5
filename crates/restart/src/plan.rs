//! The plan: which blocks to read, in which order, for which pages. Pure: no I/O.
//!
//! Data: an image's runs and the indexes of its segments -> [`Extent`]s: stretches of a segment
//! file that are read in one go, each with the blocks in it and the pages they give.
//!
//! Why by place in the file and not by place in memory: a disk is fastest read forwards in large
//! pieces, and a block is decoded once however many pages of the region lie in it.
//!
//! Invariants:
//! - Every stored page of the wanted regions is in exactly one [`Piece`].
//! - Extents of a segment do not overlap and are at most [`EXTENT_BYTES_MAX`] long, unless one
//!   block alone is longer.

use standfast_format::{Image, Run};
use standfast_write::SegmentReader;

/// Longest stretch that is read at once: a buffer of this size has huge pages, which direct I/O
/// is fastest with.
pub const EXTENT_BYTES_MAX: u64 = 2 << 20;
/// Unneeded bytes between two blocks that are cheaper to read than to skip.
const GAP_BYTES_MAX: u64 = 64 << 10;

/// Pages of one block that go to consecutive pages of one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The block.
    pub block: u32,
    /// First page within the block.
    pub first: u32,
    /// Number of pages.
    pub pages: u32,
    /// Region in the image.
    pub region: u32,
    /// First page of the region.
    pub page: u32,
}

/// A stretch of a segment file and what to make of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Segment in the image's table.
    pub segment: u32,
    /// Where it starts in the file.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// What it gives, block by block.
    pub pieces: Vec<Piece>,
}

/// Plans the reading of some regions of an image. Segments without a reader are left out: their
/// pages come from elsewhere.
pub fn plan(
    image: &Image,
    readers: &[Option<SegmentReader>],
    wanted: impl Fn(usize) -> bool,
) -> Vec<Extent> {
    let mut pieces: Vec<Vec<Piece>> = vec![Vec::new(); readers.len()];
    for (number, region) in image.regions.iter().enumerate() {
        if !wanted(number) {
            continue;
        }
        let mut page = 0;
        for run in &region.runs {
            if let Run::Stored { pages, segment, slot } = *run {
                let own = &mut pieces[segment as usize];
                if let Some(reader) = &readers[segment as usize] {
                    own.extend(cut_run(reader, number as u32, page, slot, pages));
                }
            }
            page += run.pages();
        }
    }
    let mut extents = Vec::new();
    for (segment, mut pieces) in pieces.into_iter().enumerate() {
        let Some(reader) = &readers[segment] else { continue };
        pieces.sort_unstable_by_key(|piece| (reader.block(piece.block).offset, piece.first));
        join(reader, segment as u32, pieces, &mut extents);
    }
    extents
}

/// Plans the reading of a whole segment, for checking it.
pub fn plan_all(reader: &SegmentReader) -> Vec<Extent> {
    let blocks = &reader.index().blocks;
    let mut pieces: Vec<Piece> = blocks
        .iter()
        .zip(0..)
        .map(|(block, number)| Piece {
            block: number,
            first: 0,
            pages: block.pages,
            region: 0,
            page: reader.first_slot(number),
        })
        .collect();
    pieces.sort_unstable_by_key(|piece| reader.block(piece.block).offset);
    let mut extents = Vec::new();
    join(reader, 0, pieces, &mut extents);
    extents
}

/// Cuts a run at the borders of blocks.
fn cut_run(
    reader: &SegmentReader,
    region: u32,
    mut page: u32,
    mut slot: u32,
    pages: u32,
) -> impl Iterator<Item = Piece> {
    let end = slot + pages;
    std::iter::from_fn(move || {
        if slot == end {
            return None;
        }
        let block = reader.block_of(slot);
        let first = slot - reader.first_slot(block);
        let pages = (reader.block(block).pages - first).min(end - slot);
        let piece = Piece { block, first, pages, region, page };
        slot += pages;
        page += pages;
        Some(piece)
    })
}

/// Joins pieces, which lie in the order of the file, to extents.
fn join(reader: &SegmentReader, segment: u32, pieces: Vec<Piece>, extents: &mut Vec<Extent>) {
    let mut current: Option<Extent> = None;
    for piece in pieces {
        let block = reader.block(piece.block);
        let (start, end) = (block.offset, block.offset + u64::from(block.stored_bytes));
        if let Some(extent) = &mut current {
            let near = start <= extent.offset + extent.bytes + GAP_BYTES_MAX;
            let inside = end <= extent.offset + extent.bytes;
            if inside || (near && end - extent.offset <= EXTENT_BYTES_MAX) {
                extent.bytes = extent.bytes.max(end - extent.offset);
                extent.pieces.push(piece);
                continue;
            }
            extents.extend(current.take());
        }
        let bytes = u64::from(block.stored_bytes);
        current = Some(Extent { segment, offset: start, bytes, pieces: vec![piece] });
    }
    extents.extend(current);
}
