//! Zstandard, one frame a block: the codec for a better ratio.
//!
//! Contexts are made on first use: an encoder never pays for a decoder, nor the reverse. The
//! frame carries no checksum of its own; every page is verified by its hash.

use standfast_format::CodecKind;
use zstd::bulk::{Compressor, Decompressor};

use super::{Codec, damaged, filled};
use crate::error::Result;

pub(super) struct Zstd {
    level: i32,
    compressor: Option<Compressor<'static>>,
    decompressor: Option<Decompressor<'static>>,
}

impl Zstd {
    pub(super) fn new(level: i32) -> Self {
        Zstd { level, compressor: None, decompressor: None }
    }
}

impl Codec for Zstd {
    fn kind(&self) -> CodecKind {
        CodecKind::Zstd
    }

    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if self.compressor.is_none() {
            self.compressor = Compressor::new(self.level).ok();
        }
        self.compressor.as_mut()?.compress_to_buffer(src, dst).ok()
    }

    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        let kind = CodecKind::Zstd;
        let decompressor = match &mut self.decompressor {
            Some(ready) => ready,
            empty => empty.insert(Decompressor::new().map_err(|error| damaged(kind, error))?),
        };
        let found =
            decompressor.decompress_to_buffer(src, dst).map_err(|error| damaged(kind, error))?;
        filled(kind, dst.len(), found)
    }
}
