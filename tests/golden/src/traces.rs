//! What files show of how they were made. A writer that quietly stopped using a codec, say, would leave
//! a case that proves nothing.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use standfast_format::{
    CodecKind, FilterKind, HashKind, Image, SEGMENT_FOOTER_BYTES, SegmentFooter, SegmentIndex, name,
};

use crate::archive::files;
use crate::cases::Case;

/// Something that can be seen in the files of a case.
#[derive(Clone, Copy, Debug)]
pub enum Trace {
    /// A block that this codec has made.
    Codec(CodecKind),
    /// A block that this filter has gone over.
    Filter(FilterKind),
    /// A segment with hashes of this kind.
    Hash(HashKind),
    /// A segment with pages of so many bytes.
    Page(u32),
    /// An image that names pages of other ranks by (hash, owner).
    References,
    /// So many segments: with agents one for all ranks of a node, and as many without as ranks.
    Segments(usize),
    /// A file of this name, or in a directory of this name.
    Below(&'static str),
}

/// Fails if a trace of the case is not there.
pub fn check(dir: &Path, case: &Case) -> Result<()> {
    let files = files(dir)?;
    let segments = all(&files, name::SEGMENTS).map(index).collect::<Result<Vec<_>>>()?;
    let images = all(&files, name::IMAGES).map(image).collect::<Result<Vec<_>>>()?;
    for trace in case.traces {
        let is_there = match trace {
            Trace::Codec(codec) => blocks(&segments).any(|block| block.codec == *codec),
            Trace::Filter(filter) => blocks(&segments).any(|block| block.filter == *filter),
            Trace::Hash(hash) => segments.iter().any(|segment| segment.hash == *hash),
            Trace::Page(bytes) => segments.iter().any(|segment| segment.page_bytes == *bytes),
            Trace::References => images.iter().any(has_references),
            Trace::Segments(count) => segments.len() == *count,
            Trace::Below(directory) => all(&files, directory).next().is_some(),
        };
        ensure!(is_there, "it does not show {trace:?}");
    }
    Ok(())
}

/// The files of this name, or in a directory of this name.
pub fn all<'a>(files: &'a [PathBuf], below: &'a str) -> impl Iterator<Item = &'a PathBuf> {
    files.iter().filter(move |file| file.iter().any(|part| part == below))
}

fn blocks(segments: &[SegmentIndex]) -> impl Iterator<Item = &standfast_format::Block> {
    segments.iter().flat_map(|segment| &segment.blocks)
}

fn has_references(image: &Image) -> bool {
    image.references.as_ref().is_some_and(|list| !list.is_empty())
}

fn image(file: &PathBuf) -> Result<Image> {
    let bytes = std::fs::read(file)?;
    Ok(Image::decode(&bytes).with_context(|| file.display().to_string())?.0)
}

fn index(file: &PathBuf) -> Result<SegmentIndex> {
    let bytes = std::fs::read(file)?;
    let short = || format!("{} is too short", file.display());
    let end = bytes.len().checked_sub(SEGMENT_FOOTER_BYTES).with_context(short)?;
    let footer = SegmentFooter::decode(&bytes[end..], bytes.len() as u64)?;
    let index = bytes.get(footer.index_offset as usize..).with_context(short)?;
    let index = index.get(..footer.index_bytes as usize).with_context(short)?;
    Ok(SegmentIndex::decode(index, footer.index_offset)?.0)
}
