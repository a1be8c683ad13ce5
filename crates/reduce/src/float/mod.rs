//! Codec for arrays of numbers: byte planes, entropy-coded where that pays.
//!
//! Data: f64, f32 or bf16 numbers -> transform (sign last, or difference to the number before) ->
//! byte planes -> rANS for planes with little information, one byte for constant planes, as they
//! are for the rest -> chunks -> a [stream](frame). Devices encode (`crates/gpu`); any processor decodes,
//! here. The encoder's reference on a processor is a test's (`tests/stand-in`).
//!
//! Why not a general codec: numbers repeat in their exponents and leading digits, hardly ever as
//! strings, so looking for matches finds nothing and costs most of the time.
//!
//! Invariants:
//! - A chunk is never longer than its numbers plus [`CHUNK_HEADER_BYTES`].
//! - A chunk decodes without any other.
//! - Damaged bytes give an error, never other numbers with a sound structure silently cut short.

mod decode;
/// The layout, for the reference of the encoder.
#[doc(hidden)]
pub mod format;
mod packed;

use standfast_format::CodecKind;

pub use format::{CHUNK_BYTES, CHUNK_HEADER_BYTES, STREAM_HEADER_BYTES};
pub use packed::{CHUNK_ALIGN, Packed, aligned};

use crate::error::{Error, Result};

/// What the numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// 16 bits: bf16, or halves (f16) with less gain.
    Bf16,
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

impl Element {
    /// All of them.
    pub const ALL: [Element; 3] = [Element::Bf16, Element::F32, Element::F64];

    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            Element::Bf16 => 2,
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }

    fn of_bytes(bytes: u8) -> Option<Self> {
        Element::ALL.into_iter().find(|element| element.bytes() == usize::from(bytes))
    }
}

/// Puts the stream's header before packed chunks, as they come from the device.
pub fn frame(element: Element, raw_bytes: u64, packed: &Packed, payload: &[u8]) -> Vec<u8> {
    assert_eq!(payload.len(), packed.bytes(), "all chunks and nothing else");
    let mut stream = format::stream_header(element, raw_bytes, packed);
    stream.extend(payload);
    stream
}

/// Decodes to as many bytes as the stream says it holds.
pub fn decode(stream: &[u8]) -> Result<Vec<u8>> {
    let parsed = parse(stream)?;
    // Every chunk has spent its header, so this is bounded by what is there.
    let mut raw = vec![0; parsed.raw_bytes as usize];
    decode_chunks(&parsed, &mut raw)?;
    Ok(raw)
}

/// Decodes a stream that must hold exactly as many bytes as there is room for.
pub fn decode_into(stream: &[u8], raw: &mut [u8]) -> Result<()> {
    let parsed = parse(stream)?;
    match usize::try_from(parsed.raw_bytes) {
        Ok(found) if found == raw.len() => decode_chunks(&parsed, raw),
        found => {
            let (expected, found) = (raw.len(), found.unwrap_or(usize::MAX));
            Err(Error::Length { codec: CodecKind::Float, expected, found })
        }
    }
}

fn decode_chunks(parsed: &Stream<'_>, raw: &mut [u8]) -> Result<()> {
    for (range, raw) in parsed.packed.ranges().zip(raw.chunks_mut(CHUNK_BYTES)) {
        decode::decode_chunk(&parsed.payload[range], parsed.element, raw)?;
    }
    Ok(())
}

fn damaged(why: &str) -> Error {
    Error::Damaged { codec: CodecKind::Float, why: why.into() }
}

/// A stream taken apart.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    /// What the numbers are.
    pub element: Element,
    /// Bytes before encoding.
    pub raw_bytes: u64,
    /// The chunks' lengths.
    pub packed: Packed,
    /// The chunks.
    pub payload: &'a [u8],
}

/// Takes a stream apart without decoding it: what the device needs to do that.
pub fn parse(stream: &[u8]) -> Result<Stream<'_>> {
    let parsed = format::parse_stream(stream)?;
    // Every chunk spends at least its header, so the memory for decoding is bounded by what is
    // there.
    if parsed.packed.sizes().iter().any(|size| (*size as usize) < CHUNK_HEADER_BYTES) {
        return Err(damaged("a chunk is shorter than its header"));
    }
    if parsed.payload.len() != parsed.packed.bytes() {
        return Err(damaged("the chunks are longer or shorter than announced"));
    }
    Ok(parsed)
}
