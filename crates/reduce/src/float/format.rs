//! Layout of streams and chunks; see docs/GPU.md. All numbers little-endian.

use super::packed::{Packed, aligned};
use super::{Element, Stream, damaged};
use crate::error::Result;

/// Raw bytes of a full chunk.
pub const CHUNK_BYTES: usize = SEGMENTS * SEGMENT_BYTES;
/// Bytes before a chunk's tables.
pub const CHUNK_HEADER_BYTES: usize = 64;
/// Bytes before the sizes of the chunks.
pub const STREAM_HEADER_BYTES: usize = 16;

/// Parts of a chunk that are coded side by side.
pub const SEGMENTS: usize = 8;
pub const SEGMENT_BYTES: usize = 32768;
pub const LANES: usize = 32;
pub const SYMBOLS: usize = 256;
pub const FREQUENCIES_BYTES: usize = 2 * SYMBOLS;
pub const STATES_BYTES: usize = 4 * LANES;

pub const PROBABILITY_BITS: u32 = 11;
pub const PROBABILITY: u32 = 1 << PROBABILITY_BITS;
pub const STATE_MIN: u32 = 1 << 15;

/// Number of words of a segment that is stored as it is.
pub const ESCAPED: u32 = u32::MAX;

const MAGIC: [u8; 4] = *b"SFF1";

/// What became of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Stored = 0,
    Coded = 1,
}

/// What is done to the numbers before they are cut into planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Rotated by one bit: the exponent fills the top, the sign is last.
    Rotate = 0,
    /// Difference to the number before as an integer, its sign last.
    Delta = 1,
}

/// What became of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    Raw,
    Constant(u8),
    Coded,
}

/// What a chunk starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub mode: Mode,
    pub transform: Transform,
    pub element: Element,
    pub elements: usize,
    pub planes: [Plane; 8],
    pub tail: Vec<u8>,
    pub words: [u32; SEGMENTS],
}

impl Header {
    /// Numbers in a segment.
    pub fn segment_elements(&self, segment: usize) -> usize {
        let most = SEGMENT_BYTES / self.element.bytes();
        self.elements.saturating_sub(segment * most).min(most)
    }

    fn planes_like(&self, matches: impl Fn(&Plane) -> bool) -> usize {
        self.planes[..self.element.bytes()].iter().filter(|plane| matches(plane)).count()
    }

    pub fn raw_planes(&self) -> usize {
        self.planes_like(|plane| *plane == Plane::Raw)
    }

    pub fn coded_planes(&self) -> usize {
        self.planes_like(|plane| *plane == Plane::Coded)
    }

    /// Length of a segment in the chunk.
    pub fn segment_bytes(&self, segment: usize) -> usize {
        let count = self.segment_elements(segment);
        if self.words[segment] == ESCAPED {
            return aligned(count * self.element.bytes());
        }
        let coded = match self.coded_planes() {
            0 => 0,
            _ => STATES_BYTES + aligned(2 * self.words[segment] as usize),
        };
        self.raw_planes() * aligned(count) + coded
    }

    /// Length of a coded chunk.
    pub fn coded_bytes(&self) -> usize {
        let segments: usize = (0..SEGMENTS).map(|segment| self.segment_bytes(segment)).sum();
        CHUNK_HEADER_BYTES + self.coded_planes() * FREQUENCIES_BYTES + segments
    }

    pub fn to_bytes(&self) -> [u8; CHUNK_HEADER_BYTES] {
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        bytes[0] = self.mode as u8;
        bytes[1] = self.transform as u8;
        bytes[2] = self.element.bytes() as u8;
        bytes[3] = self.tail.len() as u8;
        bytes[4..8].copy_from_slice(&(self.elements as u32).to_le_bytes());
        for (at, plane) in self.planes.iter().enumerate() {
            (bytes[8 + at], bytes[16 + at]) = match plane {
                Plane::Raw => (0, 0),
                Plane::Constant(value) => (1, *value),
                Plane::Coded => (2, 0),
            };
        }
        bytes[24..24 + self.tail.len()].copy_from_slice(&self.tail);
        for (to, words) in bytes[32..].chunks_exact_mut(4).zip(self.words) {
            to.copy_from_slice(&words.to_le_bytes());
        }
        bytes
    }

    /// Reads the header of a chunk of `raw_bytes` bytes of numbers that takes all of `chunk`.
    pub fn parse(chunk: &[u8], element: Element, raw_bytes: usize) -> Result<Header> {
        let bad = |why: &str| Err(damaged(why));
        let Some(bytes) = chunk.first_chunk::<CHUNK_HEADER_BYTES>() else {
            return bad("a chunk is shorter than its header");
        };
        let word = |at: usize| {
            u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes of the header"))
        };
        let mode = match bytes[0] {
            0 => Mode::Stored,
            1 => Mode::Coded,
            _ => return bad("a chunk of unknown mode"),
        };
        let transform = match bytes[1] {
            0 => Transform::Rotate,
            1 => Transform::Delta,
            _ => return bad("a chunk of unknown transform"),
        };
        let Some(planes) = parse_planes(bytes, element) else {
            return bad("a plane of unknown mode");
        };
        let expected = (
            element.bytes() as u8,
            (raw_bytes % element.bytes()) as u8,
            raw_bytes / element.bytes(),
        );
        if (bytes[2], bytes[3], word(4) as usize) != expected {
            return bad("a chunk of other numbers than announced");
        }
        let header = Header {
            mode,
            transform,
            element,
            elements: expected.2,
            planes,
            tail: bytes[24..24 + usize::from(expected.1)].to_vec(),
            words: std::array::from_fn(|segment| word(32 + 4 * segment)),
        };
        let too_many = |words: &u32| *words != ESCAPED && *words as usize > SEGMENT_BYTES;
        if header.words.iter().any(too_many) {
            return bad("a segment of too many words");
        }
        let found = match mode {
            Mode::Stored => CHUNK_HEADER_BYTES + raw_bytes,
            Mode::Coded => header.coded_bytes(),
        };
        if found != chunk.len() {
            return bad("a chunk is longer or shorter than its header says");
        }
        Ok(header)
    }
}

fn parse_planes(bytes: &[u8; CHUNK_HEADER_BYTES], element: Element) -> Option<[Plane; 8]> {
    let mut planes = [Plane::Raw; 8];
    for (at, plane) in planes.iter_mut().enumerate() {
        *plane = match bytes[8 + at] {
            0 => Plane::Raw,
            1 if at < element.bytes() => Plane::Constant(bytes[16 + at]),
            2 if at < element.bytes() => Plane::Coded,
            _ => return None,
        };
    }
    Some(planes)
}

/// Header and sizes, padded: what stands before the chunks.
pub fn stream_header(element: Element, raw_bytes: u64, packed: &Packed) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([element.bytes() as u8, 0, 0, 0]);
    bytes.extend(raw_bytes.to_le_bytes());
    bytes.extend(packed.sizes().iter().flat_map(|size| size.to_le_bytes()));
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

pub fn parse_stream(stream: &[u8]) -> Result<Stream<'_>> {
    let bad = |why: &str| damaged(why);
    let (header, rest) = stream
        .split_first_chunk::<STREAM_HEADER_BYTES>()
        .ok_or_else(|| bad("a stream is shorter than its header"))?;
    if header[..4] != MAGIC || header[5..8] != [0; 3] {
        return Err(bad("not a stream of numbers"));
    }
    let element = Element::of_bytes(header[4]).ok_or_else(|| bad("numbers of unknown size"))?;
    let raw_bytes = u64::from_le_bytes(*header.last_chunk().expect("eight bytes of the header"));
    let chunks = raw_bytes.div_ceil(CHUNK_BYTES as u64);
    let table_bytes = chunks
        .checked_mul(4)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|bytes| aligned(*bytes) <= rest.len())
        .ok_or_else(|| bad("fewer sizes than chunks"))?;
    let (sizes, _) = rest[..table_bytes].as_chunks::<4>();
    let packed = Packed::new(sizes.iter().map(|size| u32::from_le_bytes(*size)).collect());
    Ok(Stream { element, raw_bytes, packed, payload: &rest[aligned(table_bytes)..] })
}
