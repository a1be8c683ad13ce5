//! Codecs behind one trait: none, LZ4, Zstandard, Deflate, Float.
//!
//! Data: a filtered block in, a shorter one out, and back. One object per thread: it keeps the
//! codec's tables and contexts, so that blocks do not pay for setting them up.
//!
//! Every codec passes the one suite in `tests/suite/codec.rs`.
//!
//! Invariants:
//! - What `compress` wrote, `decompress` of any object of the same kind turns back, at any level.
//! - `decompress` meets bytes from disk: whatever they are, it returns an error or fills `dst`
//!   with something; it never panics and never asks for memory that the bytes dictate.

mod deflate;
mod float;
mod lz4;
mod none;
mod spec;
mod zstandard;

use standfast_format::CodecKind;

use crate::error::{Error, Result};

pub use spec::{CodecChoice, CodecSpec};

/// A compressor and its inverse.
///
/// # Contract
///
/// `src` and `dst` may have any length. Neither call keeps anything of one block for the next:
/// the same input gives the same output.
pub trait Codec: Send {
    /// The number that goes into the block's record.
    fn kind(&self) -> CodecKind;

    /// Compresses `src` into the head of `dst` and returns the length, or `None` where it does
    /// not fit (`dst` then holds anything).
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize>;

    /// Decompresses `src` to fill `dst` exactly; anything else is an error.
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<()>;
}

/// The codec for this setting. A level outside the codec's range means its nearest end.
pub fn codec(spec: CodecSpec) -> Box<dyn Codec> {
    match spec.kind {
        CodecKind::None => Box::new(none::None),
        CodecKind::Lz4 => Box::new(lz4::Lz4::new()),
        CodecKind::Zstd => Box::new(zstandard::Zstd::new(spec.level_clamped())),
        CodecKind::Deflate => Box::new(deflate::Deflate::new(spec.level_clamped())),
        CodecKind::Float => Box::new(float::Float),
    }
}

fn damaged(codec: CodecKind, why: impl ToString) -> Error {
    Error::Damaged { codec, why: why.to_string() }
}

/// The last step of every `decompress`: as many bytes as promised, or an error.
fn filled(codec: CodecKind, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { codec, expected, found }) }
}
