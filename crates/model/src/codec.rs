//! Compression on the way to a slow store: commit and restore times, and how fast is enough.
//!
//! Data: a [`Codec`] (what it saves and how fast it runs), bytes and a store's rate -> times.
//!
//! Compressing and writing overlap, so the slower of the two sets the pace. Past
//! [`Codec::saturating_bps`] a faster codec gains nothing.
//!
//! Invariants:
//! - The factor is the share of bytes removed: 0 keeps all, values near 1 keep almost nothing.

use crate::bounds::{non_negative, positive, share_below_one};
use crate::error::Result;

/// A codec as measured on one kind of data, for one node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Codec {
    factor: f64,
    compress_bps: f64,
    decompress_bps: f64,
}

impl Codec {
    /// `factor` is the share of bytes removed; speeds are raw bytes per second.
    pub fn new(factor: f64, compress_bps: f64, decompress_bps: f64) -> Result<Self> {
        Ok(Self {
            factor: share_below_one("codec factor", factor)?,
            compress_bps: positive("compress_bps", compress_bps)?,
            decompress_bps: positive("decompress_bps", decompress_bps)?,
        })
    }

    /// Bytes that remain.
    pub fn stored_bytes(&self, bytes: f64) -> f64 {
        bytes * (1.0 - self.factor)
    }

    /// Time to compress and write, overlapped.
    pub fn commit_s(&self, bytes: f64, write_bps: f64) -> Result<f64> {
        let bytes = non_negative("bytes", bytes)?;
        let write = positive("write_bps", write_bps)?;
        Ok((bytes / self.compress_bps).max(self.stored_bytes(bytes) / write))
    }

    /// Time to read and decompress, overlapped.
    pub fn restore_s(&self, bytes: f64, read_bps: f64) -> Result<f64> {
        let bytes = non_negative("bytes", bytes)?;
        let read = positive("read_bps", read_bps)?;
        Ok((bytes / self.decompress_bps).max(self.stored_bytes(bytes) / read))
    }

    /// The compression speed at which the store, not the codec, becomes the limit.
    pub fn saturating_bps(&self, write_bps: f64) -> Result<f64> {
        Ok(positive("write_bps", write_bps)? / (1.0 - self.factor))
    }

    /// Whole cores of this codec's speed that saturate the store.
    pub fn saturating_cores(&self, write_bps: f64) -> Result<u64> {
        Ok((self.saturating_bps(write_bps)? / self.compress_bps).ceil() as u64)
    }
}

#[cfg(test)]
mod tests;
