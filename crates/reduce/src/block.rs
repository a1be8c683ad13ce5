//! Blocks: the unit that is filtered, compressed and stored.
//!
//! Data: raw block -> [`BlockEncoder`] -> stored bytes and the two small numbers that undo them;
//! those -> [`BlockDecoder`] -> raw block. The encoder writes no header: codec, filter and both
//! lengths go into the block's record in the segment index.
//!
//! Why the raw escape: half of what simulations hold does not compress. Such a block is handed
//! out as it came, without a copy, and costs no decoding when it returns.
//!
//! Invariants:
//! - A stored block is never longer than the raw one.
//! - Memory: an encoder or decoder holds a fixed number of buffers of the largest block's size,
//!   plus what its codec needs; no input makes it grow.

use standfast_format::{CodecKind, FilterKind};

use crate::codec::{Codec, CodecSpec, codec};
use crate::error::{Error, Result};
use crate::filter::{FilterChoice, apply, undo};
use crate::probe::Probe;

/// A compressed block must save at least this part of its length.
const SAVING_MIN: usize = 32;

/// A block as it is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded<'a> {
    /// The codec that undoes it.
    pub codec: CodecKind,
    /// The filter to undo after the codec.
    pub filter: FilterKind,
    /// The bytes to store.
    pub bytes: &'a [u8],
}

impl<'a> Encoded<'a> {
    fn raw(bytes: &'a [u8]) -> Self {
        Encoded { codec: CodecKind::None, filter: FilterKind::None, bytes }
    }
}

/// Turns raw blocks into stored ones; one per compressing thread.
pub struct BlockEncoder {
    codec: Box<dyn Codec>,
    filter: FilterChoice,
    probe: Probe,
    block_bytes_max: usize,
    planes: Vec<u8>,
    packed: Vec<u8>,
}

impl BlockEncoder {
    /// An encoder for blocks of up to `block_bytes_max` bytes.
    pub fn new(spec: CodecSpec, filter: FilterChoice, block_bytes_max: usize) -> Self {
        let working = spec.kind != CodecKind::None;
        BlockEncoder {
            codec: codec(spec),
            filter,
            probe: Probe::new(spec.kind),
            block_bytes_max,
            planes: vec![0; if working { block_bytes_max } else { 0 }],
            packed: vec![0; if working { packed_bytes_max(block_bytes_max) } else { 0 }],
        }
    }

    /// Encodes one block. `elem_hint` is the size of its numbers where known (4 or 8), else 0.
    ///
    /// Panics if the block is longer than the encoder was made for.
    pub fn encode<'a>(&'a mut self, raw: &'a [u8], elem_hint: u8) -> Encoded<'a> {
        assert!(raw.len() <= self.block_bytes_max, "a block of {} bytes", raw.len());
        if self.codec.kind() == CodecKind::None {
            return Encoded::raw(raw);
        }
        let filter = match self.filter {
            FilterChoice::Fixed(filter) => Some(filter),
            FilterChoice::Auto => self.probe.choose(raw, elem_hint),
        };
        let Some(filter) = filter else { return Encoded::raw(raw) };
        let planes = apply(filter, raw, &mut self.planes);
        match self.codec.compress(planes, &mut self.packed) {
            Some(len) if len + raw.len().div_ceil(SAVING_MIN) <= raw.len() => {
                Encoded { codec: self.codec.kind(), filter, bytes: &self.packed[..len] }
            }
            _ => Encoded::raw(raw),
        }
    }
}

/// Room in which every codec takes its fast path: the worst case of LZ4, the largest of them.
fn packed_bytes_max(block_bytes_max: usize) -> usize {
    block_bytes_max + block_bytes_max / 10 + 64
}

/// Turns stored blocks back into raw ones; one per restoring thread.
pub struct BlockDecoder {
    /// In the order of `CodecKind::ALL`, made when first met.
    codecs: [Option<Box<dyn Codec>>; CodecKind::ALL.len()],
    block_bytes_max: usize,
    planes: Vec<u8>,
    raw: Vec<u8>,
}

impl BlockDecoder {
    /// A decoder for blocks of up to `block_bytes_max` raw bytes.
    pub fn new(block_bytes_max: usize) -> Self {
        BlockDecoder {
            codecs: Default::default(),
            block_bytes_max,
            planes: vec![0; block_bytes_max],
            raw: vec![0; block_bytes_max],
        }
    }

    /// Decodes a block that its record says has `raw_bytes` raw bytes. The numbers and bytes may
    /// be hostile; what comes back has the right length and is still to be verified by its hash.
    pub fn decode<'a>(
        &'a mut self,
        codec: CodecKind,
        filter: FilterKind,
        stored: &'a [u8],
        raw_bytes: usize,
    ) -> Result<&'a [u8]> {
        let block_bytes_max = self.block_bytes_max;
        if raw_bytes > block_bytes_max {
            return Err(Error::TooLarge { raw_bytes, block_bytes_max });
        }
        let planes = if codec == CodecKind::None {
            if stored.len() != raw_bytes {
                let (expected, found) = (raw_bytes, stored.len());
                return Err(Error::Length { codec, expected, found });
            }
            stored
        } else {
            let planes = &mut self.planes[..raw_bytes];
            made(&mut self.codecs, codec).decompress(stored, planes)?;
            planes
        };
        Ok(undo(filter, planes, &mut self.raw))
    }
}

fn made(codecs: &mut [Option<Box<dyn Codec>>], kind: CodecKind) -> &mut dyn Codec {
    let place = CodecKind::ALL.iter().position(|known| *known == kind).expect("ALL has every kind");
    codecs[place].get_or_insert_with(|| codec(CodecSpec::usual(kind))).as_mut()
}
