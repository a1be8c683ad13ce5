//! Byte planes of numbers, entropy-coded ([`crate::float`]): what devices write.
//!
//! The stream names the size of its numbers. Compressing here takes 8-byte numbers; it is the
//! reference of the device's encoder and no setting offers it.

use standfast_format::CodecKind;

use super::Codec;
use crate::error::Result;
use crate::float::{self, Element};

pub(super) struct Float;

impl Codec for Float {
    fn kind(&self) -> CodecKind {
        CodecKind::Float
    }

    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let stream = float::encode(src, Element::F64);
        dst.get_mut(..stream.len())?.copy_from_slice(&stream);
        Some(stream.len())
    }

    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        float::decode_into(src, dst)
    }
}
