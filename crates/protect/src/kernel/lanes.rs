//! One pass in vectors, for any width and any way to multiply.
//!
//! Why a trait: the loop over sources and rows is the same for all; only loading, multiplying and
//! storing differ. Everything here is inlined into a function that enables the instructions.

/// A vector of bytes and how to multiply it.
pub(super) trait Lanes: Copy {
    /// Bytes of a vector.
    const BYTES: usize;
    /// A cell of the matrix.
    type Factor;
    /// A source's vector, made ready once for all rows.
    type Source: Copy;

    /// All zero.
    ///
    /// # Safety
    /// The processor has the instructions; so for all functions here.
    unsafe fn zero() -> Self;

    /// # Safety
    /// `BYTES` readable bytes, anywhere.
    unsafe fn load(at: *const u8) -> Self;

    /// # Safety
    /// `BYTES` writable bytes, anywhere.
    unsafe fn store(self, at: *mut u8);

    /// # Safety
    /// The instructions are there.
    unsafe fn source(self) -> Self::Source;

    /// This vector plus the product.
    ///
    /// # Safety
    /// The instructions are there.
    unsafe fn add_product(self, source: Self::Source, factor: &Self::Factor) -> Self;
}

/// `R` rows of a pass over as many whole vectors as fit, `U` at a time.
///
/// # Safety
/// The processor has the instructions of `L`. `factors` holds `sources.len()` cells at every
/// multiple of `stride`, `R` times. Sources and outputs have `bytes` bytes.
#[inline(always)]
pub(super) unsafe fn rows<L: Lanes, const R: usize, const U: usize>(
    factors: &[L::Factor],
    stride: usize,
    sources: &[*const u8],
    out: &[*mut u8; R],
    bytes: usize,
    add: bool,
) {
    let mut at = 0;
    // SAFETY: as promised by the caller; `at` plus the vectors taken never exceeds `bytes`.
    unsafe {
        while at + U * L::BYTES <= bytes {
            vectors::<L, R, U>(factors, stride, sources, out, at, add);
            at += U * L::BYTES;
        }
        while at + L::BYTES <= bytes {
            vectors::<L, R, 1>(factors, stride, sources, out, at, add);
            at += L::BYTES;
        }
    }
}

/// # Safety
/// As [`rows`], with `U` vectors at `at`.
#[inline(always)]
unsafe fn vectors<L: Lanes, const R: usize, const U: usize>(
    factors: &[L::Factor],
    stride: usize,
    sources: &[*const u8],
    out: &[*mut u8; R],
    at: usize,
    add: bool,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sums = [[L::zero(); U]; R];
        if add {
            for (row, sums) in sums.iter_mut().enumerate() {
                for (unit, sum) in sums.iter_mut().enumerate() {
                    *sum = L::load(out[row].add(at + unit * L::BYTES));
                }
            }
        }
        for (column, source) in sources.iter().enumerate() {
            let mut loaded = [L::zero().source(); U];
            for (unit, loaded) in loaded.iter_mut().enumerate() {
                *loaded = L::load(source.add(at + unit * L::BYTES)).source();
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let factor = factors.get_unchecked(row * stride + column);
                for (sum, loaded) in sums.iter_mut().zip(&loaded) {
                    *sum = sum.add_product(*loaded, factor);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (unit, sum) in sums.iter().enumerate() {
                sum.store(out[row].add(at + unit * L::BYTES));
            }
        }
    }
}
