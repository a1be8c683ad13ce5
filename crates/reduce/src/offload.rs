//! Blocks that are encoded elsewhere: on a device that several threads, and several ranks, share.

use standfast_format::{CodecKind, FilterKind};

/// Encodes blocks for whoever asks.
///
/// # Contract
/// - What it encodes the block decoder of this crate decodes.
/// - Asked from many threads at once; each waits for its own block.
/// - Where it cannot, whoever asks encodes the block.
pub trait Offload: Send + Sync {
    /// Threads that should ask at a time, to keep it busy.
    fn callers(&self) -> usize;

    /// Encodes a block of this rank into `out`, which is replaced, and tells what undoes it; with
    /// [`CodecKind::None`] the block is stored as it is. `elem` is the size of its numbers, 0 if
    /// unknown. `None`: it is the caller's to encode.
    fn encode(
        &self,
        rank: u32,
        raw: &[u8],
        elem: u8,
        out: &mut Vec<u8>,
    ) -> Option<(CodecKind, FilterKind)>;
}
