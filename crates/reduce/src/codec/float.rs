//! Byte planes of numbers, entropy-coded ([`crate::float`]): what devices write.
//!
//! The stream names the size of its numbers. Nothing is compressed here: devices do that, and no
//! setting offers it.

use standfast_format::CodecKind;

use super::Codec;
use crate::error::Result;
use crate::float;

pub(super) struct Float;

impl Codec for Float {
    fn kind(&self) -> CodecKind {
        CodecKind::Float
    }

    fn compress(&mut self, _: &[u8], _: &mut [u8]) -> Option<usize> {
        None
    }

    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        float::decode_into(src, dst)
    }
}
