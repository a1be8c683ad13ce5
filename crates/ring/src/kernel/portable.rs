//! The kernel that runs anywhere, and slices too short for the wide ones.

use super::Pass;
use crate::field::{multiply, products};

/// One pass with plain factors.
pub(super) fn pass(cells: &[u8], pass: &Pass<'_, '_>, out: &mut [&mut [u8]]) {
    let stretch = pass.start..pass.start + pass.bytes;
    for (row, out) in out.iter_mut().enumerate() {
        let out = &mut out[stretch.clone()];
        if !pass.add {
            out.fill(0);
        }
        for (column, source) in pass.sources.iter().enumerate() {
            let factor = cells[pass.first + row * pass.stride + column];
            let products = products(factor);
            for (sum, byte) in out.iter_mut().zip(&source[stretch.clone()]) {
                *sum ^= products[usize::from(*byte)];
            }
        }
    }
}

/// A pass over fewer bytes than a vector has; `factor` gives a cell by row and column.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn short(
    pass: &Pass<'_, '_>,
    out: &mut [&mut [u8]],
    factor: impl Fn(usize, usize) -> u8,
) {
    let end = pass.start + pass.bytes;
    for (row, out) in out.iter_mut().enumerate() {
        for at in pass.start..end {
            let before = if pass.add { out[at] } else { 0 };
            let parts = pass.sources.iter().enumerate();
            out[at] = parts.fold(before, |sum, (column, source)| {
                sum ^ multiply(factor(row, column), source[at])
            });
        }
    }
}
