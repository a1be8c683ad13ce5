//! No compression, for callers that want a codec in any case.

use standfast_format::CodecKind;

use super::{Codec, filled};
use crate::error::Result;

pub(super) struct None;

impl Codec for None {
    fn kind(&self) -> CodecKind {
        CodecKind::None
    }

    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        dst.get_mut(..src.len())?.copy_from_slice(src);
        Some(src.len())
    }

    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        filled(CodecKind::None, dst.len(), src.len())?;
        dst.copy_from_slice(src);
        Ok(())
    }
}
