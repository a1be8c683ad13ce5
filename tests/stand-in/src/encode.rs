//! Codecs of a device by their CPU references.

use standfast_gpu::deflate::CHUNK_BYTES;
use standfast_gpu::float::parse;
use standfast_gpu::memory::Encoding;
use standfast_gpu::{Packed, Result};

use crate::float;

/// The chunks of bytes that are encoded together; Deflate's as `deflate` makes them.
pub(crate) fn chunks_of(
    raw: &[u8],
    encoding: Encoding,
    deflate: impl Fn(&[u8]) -> Vec<u8>,
) -> Result<Vec<Vec<u8>>> {
    Ok(match encoding {
        Encoding::Raw => vec![raw.to_vec()],
        Encoding::Float(element) => {
            let stream = float::encode(raw, element);
            let parsed = parse(&stream)?;
            parsed.packed.ranges().map(|range| parsed.payload[range].to_vec()).collect()
        }
        Encoding::Deflate => raw.chunks(CHUNK_BYTES).map(deflate).collect(),
    })
}

/// Chunks as a device leaves them.
pub(crate) fn pack(chunks: &[Vec<u8>]) -> (Packed, Vec<u8>) {
    let packed = Packed::new(chunks.iter().map(|chunk| chunk.len() as u32).collect());
    let mut bytes = vec![0; packed.bytes()];
    for (range, chunk) in packed.ranges().zip(chunks) {
        bytes[range].copy_from_slice(chunk);
    }
    (packed, bytes)
}
