//! What the star encoding costs.
//!
//! Data: network and arithmetic rates -> [`StarCost`] -> time of a group's encoding.
//!
//! In each of `m` rounds every node sends a block to another one, which multiplies and adds. All
//! groups work at once, so the time does not depend on the size of the job.
//!
//! Invariants:
//! - A block is never larger than the checkpoint.

use crate::bounds::{at_least_one, non_negative, positive};
use crate::error::Result;

/// Cost constants of the star encoding between two nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StarCost {
    latency_s: f64,
    transfer_s_per_byte: f64,
    multiply_s_per_byte: f64,
}

impl StarCost {
    /// Network latency, network rate, and the rate of one multiplication or addition.
    pub fn new(latency_s: f64, network_bps: f64, multiply_bps: f64) -> Result<Self> {
        Ok(Self {
            latency_s: non_negative("latency_s", latency_s)?,
            transfer_s_per_byte: 1.0 / positive("network_bps", network_bps)?,
            multiply_s_per_byte: 1.0 / positive("multiply_bps", multiply_bps)?,
        })
    }

    /// Encoding time: `m` rounds over every block, each one message, one product, one sum.
    pub fn time_s(&self, bytes: f64, shards: u64, block_bytes: f64) -> Result<f64> {
        let bytes = positive("bytes", bytes)?;
        let block = positive("block_bytes", block_bytes)?.min(bytes);
        at_least_one("m", shards)?;
        let blocks = (bytes / block * (1.0 - 1e-12)).ceil();
        let per_byte = self.transfer_s_per_byte + 2.0 * self.multiply_s_per_byte;
        Ok(shards as f64 * blocks * (self.latency_s + per_byte * block))
    }
}

#[cfg(test)]
mod tests;
