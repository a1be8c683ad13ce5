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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nonsense_is_named() {
        let text = Codec::new(1.0, 1.0, 1.0).unwrap_err().to_string();
        assert!(text.contains("codec factor"), "{text}");
        let codec = Codec::new(0.5, 1e8, 1e9).unwrap();
        let text = codec.commit_s(1e9, 0.0).unwrap_err().to_string();
        assert!(text.contains("write_bps"), "{text}");
    }

    proptest! {
        #[test]
        fn saturating_cores_saturate(factor in 0.0f64..0.99, core in 1e6f64..1e9, write in 1e7f64..1e10) {
            let one = Codec::new(factor, core, 1e12).unwrap();
            let cores = one.saturating_cores(write).unwrap();
            let many = Codec::new(factor, core * cores as f64, 1e12).unwrap();
            let bytes = 1e12;
            let bound = many.stored_bytes(bytes) / write;
            prop_assert!(many.commit_s(bytes, write).unwrap() <= bound * (1.0 + 1e-9));
            if cores > 1 {
                let fewer = Codec::new(factor, core * (cores - 1) as f64, 1e12).unwrap();
                prop_assert!(fewer.commit_s(bytes, write).unwrap() >= bound);
            }
        }
    }
}
