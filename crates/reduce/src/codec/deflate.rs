//! Raw Deflate (RFC 1951): what the seed systems compressed with, and what hardware speaks.
//!
//! Contexts are made on first use: an encoder never pays for a decoder, nor the reverse.

use libdeflater::{CompressionLvl, Compressor, Decompressor};
use standfast_format::CodecKind;

use super::{Codec, damaged, filled};
use crate::error::Result;

pub(super) struct Deflate {
    level: CompressionLvl,
    compressor: Option<Compressor>,
    decompressor: Option<Decompressor>,
}

impl Deflate {
    pub(super) fn new(level: i32) -> Self {
        let level = CompressionLvl::new(level).expect("the setting's range is the library's");
        Deflate { level, compressor: None, decompressor: None }
    }
}

impl Codec for Deflate {
    fn kind(&self) -> CodecKind {
        CodecKind::Deflate
    }

    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let compressor = self.compressor.get_or_insert_with(|| Compressor::new(self.level));
        compressor.deflate_compress(src, dst).ok()
    }

    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        let kind = CodecKind::Deflate;
        let decompressor = self.decompressor.get_or_insert_with(Decompressor::new);
        let found =
            decompressor.deflate_decompress(src, dst).map_err(|error| damaged(kind, error))?;
        filled(kind, dst.len(), found)
    }
}
