//! Deflate on the device: the whole codec there, output that every inflater reads.
//!
//! Data: bytes -> chunks of 64 KiB -> filter (byte planes of numbers, or none) -> one raw Deflate
//! stream (RFC 1951) each. [`encode_chunk`] is the reference on the CPU; [`DeviceDeflate`] writes
//! the same bytes. A chunk is what the block decoder of `standfast-reduce` takes as a block with
//! codec Deflate and that filter.
//!
//! Why a stream per chunk: chunks are compressed side by side, and a reader can decompress any of
//! them alone, also side by side. Blocks of several chunks are made of parts that end between two
//! bytes ([`encode_part`]): put together they are one stream.
//!
//! Why not zlib's algorithm: it walks from byte to byte. Here every position of a chunk looks for
//! matches at the same time, at fixed short offsets and where its hash was last seen; only the
//! choice among the matches walks, and only from match to match.
//!
//! Invariant: a chunk never grows by more than 10 bytes.

use standfast_format::FilterKind;

mod code;
mod cpu;
mod device;

pub use cpu::{encode_chunk, encode_part};
pub use device::DeviceDeflate;
#[cfg(test)]
pub(crate) use device::KERNELS;

/// Ends a stream made of parts: an empty stored block, the last one.
pub const END_OF_STREAM: [u8; 5] = [1, 0, 0, 0xff, 0xff];

/// Raw bytes of a full chunk.
pub const CHUNK_BYTES: usize = 65536;

/// Element size of the filter; 1 where bytes stay as they are.
fn element_bytes(filter: FilterKind) -> usize {
    match filter {
        FilterKind::None => 1,
        FilterKind::Shuffle4 => 4,
        FilterKind::Shuffle8 => 8,
        // Chosen by the caller, never read from anywhere.
        FilterKind::Delta4 | FilterKind::Delta8 => panic!("the device has no filter {filter}"),
    }
}

/// A symbol with extra bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Symbol {
    symbol: usize,
    extra_bits: u32,
    extra: u32,
}

/// The symbol of a match length, given less 3.
fn length_symbol(length: u32) -> Symbol {
    match length {
        255 => Symbol { symbol: 285, extra_bits: 0, extra: 0 },
        0..4 => Symbol { symbol: 257 + length as usize, extra_bits: 0, extra: 0 },
        _ => {
            let extra_bits = length.ilog2() - 2;
            let symbol = 261 + 4 * extra_bits + (length >> extra_bits & 3);
            let extra = length & ((1 << extra_bits) - 1);
            Symbol { symbol: symbol as usize, extra_bits, extra }
        }
    }
}

/// The symbol of a match distance, given less 1.
fn distance_symbol(distance: u32) -> Symbol {
    if distance < 2 {
        return Symbol { symbol: distance as usize, extra_bits: 0, extra: 0 };
    }
    let extra_bits = distance.ilog2() - 1;
    let symbol = 2 + 2 * extra_bits + (distance >> extra_bits & 1);
    let extra = distance & ((1 << extra_bits) - 1);
    Symbol { symbol: symbol as usize, extra_bits, extra }
}

#[cfg(test)]
mod tests;
