//! Blocks: the unit that is filtered, compressed and stored.
//!
//! Data: raw block -> [`BlockEncoder`] -> stored bytes and the two small numbers that undo them;
//! those -> [`BlockDecoder`] -> raw block. The encoder writes no header: codec, filter and both
//! lengths go into the block's record in the segment index.
//!
//! Why the raw escape: half of what simulations hold does not compress. Such a block is handed
//! out as it came, without a copy, and costs no decoding when it returns.
//!
//! With the codec `auto` the encoder asks what is best for such a block now, and tells what became of
//! it ([`Adaptive`]).
//!
//! Invariants:
//! - A stored block is never longer than the raw one.
//! - Memory: an encoder or decoder holds a fixed number of buffers of the largest block's size,
//!   plus what its codec needs; no input makes it grow.

use std::sync::Arc;

use standfast_format::{CodecKind, FilterKind};

use crate::adapt::{Adaptive, Choosing, Place};
use crate::codec::{Codec, CodecSpec, codec};
use crate::error::{Error, Result};
use crate::filter::{FilterChoice, apply, undo};
use crate::offload::Offload;
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

/// Who says which codec.
enum Way {
    Fixed(Box<dyn Codec>),
    Auto(Box<Choosing>),
}

/// Turns raw blocks into stored ones; one per compressing thread.
pub struct BlockEncoder {
    way: Way,
    filter: FilterChoice,
    probe: Probe,
    block_bytes_max: usize,
    planes: Vec<u8>,
    packed: Vec<u8>,
    offload: Option<Arc<dyn Offload>>,
    rank: u32,
    /// What the other one has made.
    elsewhere: Vec<u8>,
}

impl BlockEncoder {
    /// Lets another one encode what it takes.
    pub fn offloaded(self, offload: Option<Arc<dyn Offload>>) -> Self {
        Self { offload, ..self }
    }

    /// The blocks to come are this rank's.
    pub fn set_rank(&mut self, rank: u32) {
        self.rank = rank;
    }

    /// An encoder for blocks of up to `block_bytes_max` bytes.
    pub fn new(spec: CodecSpec, filter: FilterChoice, block_bytes_max: usize) -> Self {
        let probe = Probe::new(spec.kind, filter);
        let room = if spec.kind == CodecKind::None { 0 } else { block_bytes_max };
        Self::with(Way::Fixed(codec(spec)), filter, probe, block_bytes_max, room)
    }

    /// An encoder that shares its choices with others.
    pub fn adaptive(adaptive: Arc<Adaptive>, filter: FilterChoice, block_bytes_max: usize) -> Self {
        let way = Way::Auto(Box::new(Choosing::new(adaptive)));
        let probe = Probe::new(CodecKind::Zstd, filter);
        Self::with(way, filter, probe, block_bytes_max, block_bytes_max)
    }

    fn with(
        way: Way,
        filter: FilterChoice,
        probe: Probe,
        block_bytes_max: usize,
        room: usize,
    ) -> Self {
        let packed = vec![0; if room == 0 { 0 } else { packed_bytes_max(room) }];
        BlockEncoder {
            way,
            filter,
            probe,
            block_bytes_max,
            planes: vec![0; room],
            packed,
            offload: None,
            rank: 0,
            elsewhere: Vec::new(),
        }
    }

    /// Encodes one block. `elem_hint` is the size of its numbers where known (4 or 8), else 0.
    ///
    /// Panics if the block is longer than the encoder was made for.
    pub fn encode<'a>(&'a mut self, raw: &'a [u8], elem_hint: u8) -> Encoded<'a> {
        assert!(raw.len() <= self.block_bytes_max, "a block of {} bytes", raw.len());
        let Self { way, filter, probe, planes, packed, offload, rank, elsewhere, .. } = self;
        let there = offload.as_deref().and_then(|other| {
            let mut encode = |elem| {
                let (codec, filter) = other.encode(*rank, raw, elem, elsewhere)?;
                let stored = if codec == CodecKind::None { raw.len() } else { elsewhere.len() };
                Some((codec, filter, stored))
            };
            match way {
                Way::Fixed(_) => encode(elem_hint),
                Way::Auto(choosing) => encode_there(choosing, raw.len(), elem_hint, encode),
            }
        });
        match there {
            Some((CodecKind::None, ..)) => return Encoded::raw(raw),
            Some((codec, filter, _)) => return Encoded { codec, filter, bytes: elsewhere },
            None => {}
        }
        let done = match way {
            Way::Fixed(codec) if codec.kind() == CodecKind::None => None,
            Way::Fixed(codec) => {
                let filter = match filter {
                    FilterChoice::Fixed(filter) => Some(*filter),
                    FilterChoice::Auto => probe.choose(raw, elem_hint),
                };
                filter.and_then(|filter| compress(codec.as_mut(), filter, raw, planes, packed))
            }
            Way::Auto(choosing) => choose(choosing, probe, (raw, elem_hint), planes, packed),
        };
        match done {
            Some((codec, filter, len)) => Encoded { codec, filter, bytes: &packed[..len] },
            None => Encoded::raw(raw),
        }
    }
}

/// Codec, filter and length of an encoded block. `None`: as it is, or not elsewhere.
type Packed = Option<(CodecKind, FilterKind, usize)>;

/// Has a block encoded elsewhere if that is best now.
fn encode_there(
    choosing: &Choosing,
    raw_bytes: usize,
    elem: u8,
    encode: impl FnOnce(u8) -> Packed,
) -> Packed {
    let place = choosing.place(elem, raw_bytes);
    let done = match place {
        Place::Here => return None,
        Place::Numbers => encode(elem),
        Place::Bytes => encode(0),
    };
    choosing.came_back(elem, place, done.map(|(.., stored)| (raw_bytes, stored)));
    done
}

fn choose(
    choosing: &mut Choosing,
    probe: &mut Probe,
    (raw, elem_hint): (&[u8], u8),
    planes: &mut [u8],
    packed: &mut [u8],
) -> Packed {
    let Some(filter) = probe.choose(raw, elem_hint) else {
        choosing.noise(raw.len());
        return None;
    };
    let with = |codec: &mut dyn Codec| compress(codec, filter, raw, planes, packed);
    choosing.compress(raw.len(), with, |(.., len)| *len)
}

fn compress(
    codec: &mut dyn Codec,
    filter: FilterKind,
    raw: &[u8],
    planes: &mut [u8],
    packed: &mut [u8],
) -> Packed {
    // Until the codec fills it, its room serves the filter.
    let planes = apply(filter, raw, planes, packed);
    let len = codec.compress(planes, packed)?;
    let pays = len + raw.len().div_ceil(SAVING_MIN) <= raw.len();
    pays.then_some((codec.kind(), filter, len))
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
