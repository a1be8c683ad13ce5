//! Reed-Solomon codes over GF(2^8) on the device: parity of shards, and lost shards back.
//!
//! Data: `k` data shards -> [`Code::parity`] times them -> `m` parity shards; any `k` of the
//! `k + m` -> [`Code::rebuild`] times them -> those that are lost. Codes, matrices and the products
//! on the CPU are those of `crates/ring`; the device gives the same bytes: [`DeviceErasure`] from
//! and to device memory, [`HostErasure`] from and to host memory. [`DeviceArithmetic`] multiplies for
//! a whole star, whose pieces lie in host memory or on the device ([`PlacedPieces`]).
//!
//! Why the device takes any matrix: encoding, rebuilding and the partial sums of a star all are
//! one product.

mod device;
mod host;
mod lane;
mod star;

pub use device::DeviceErasure;
#[cfg(test)]
pub(crate) use device::KERNELS;
pub use host::{HostErasure, Input, Output, Room};
pub use lane::Lane;
pub use standfast_ring::Matrix;
pub use standfast_ring::code::{Code, Family, PIECES_MAX};
pub use star::{DeviceArithmetic, PlacedPieces, STAR_BLOCK_BYTES, There};

use standfast_ring::kernel::Combine;

/// The matrix times the shards, on the CPU. Panics unless there are as many shards as columns,
/// all of one length.
pub fn multiply(matrix: &Matrix, shards: &[&[u8]]) -> Vec<Vec<u8>> {
    let bytes = shards.first().map_or(0, |shard| shard.len());
    let mut out = vec![vec![0; bytes]; matrix.rows()];
    let mut rows: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    Combine::new(matrix).set(&mut rows, shards);
    out
}

#[cfg(test)]
mod tests;
