//! LZ4 block format without a length prefix: the fast codec.
//!
//! The decoder is the variant of `lz4_flex` without unsafe code. The encoder wants room for the
//! worst case before it starts; where `dst` is smaller it writes to a scratch of its own. Short
//! inputs take a table of 16-bit places, others one of 32-bit places: both are kept, since the
//! output depends on the table and must not depend on what was compressed before.

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};
use standfast_format::CodecKind;

use super::{Codec, damaged, filled};
use crate::error::Result;

/// Inputs from here on need the table of 32-bit places.
const SHORT_END: usize = u16::MAX as usize;

pub(super) struct Lz4 {
    short: CompressTable,
    long: CompressTable,
    /// Grows to the worst case of the largest block that met a small `dst`.
    scratch: Vec<u8>,
}

impl Lz4 {
    pub(super) fn new() -> Self {
        let (short, long) = (CompressTable::small(), CompressTable::large());
        Lz4 { short, long, scratch: Vec::new() }
    }
}

impl Codec for Lz4 {
    fn kind(&self) -> CodecKind {
        CodecKind::Lz4
    }

    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let table = if src.len() < SHORT_END { &mut self.short } else { &mut self.long };
        let worst = get_maximum_output_size(src.len());
        if dst.len() >= worst {
            return compress_into_with_table(src, dst, table).ok();
        }
        if self.scratch.len() < worst {
            self.scratch.resize(worst, 0);
        }
        let len = compress_into_with_table(src, &mut self.scratch, table).ok()?;
        dst.get_mut(..len)?.copy_from_slice(&self.scratch[..len]);
        Some(len)
    }

    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        let found = decompress_into(src, dst).map_err(|error| damaged(CodecKind::Lz4, error))?;
        filled(CodecKind::Lz4, dst.len(), found)
    }
}
