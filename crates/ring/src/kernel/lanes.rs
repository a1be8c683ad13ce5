//! One pass in vectors, for any width and any way to multiply.
//!
//! Why a trait: the loop over sources and rows is the same for all; only loading, multiplying and
//! storing differ. Everything here is inlined into a function that enables the instructions.

use std::ops::Range;

use super::{COLUMNS, Pass, ROWS};
use crate::field::multiply;

/// Products of one factor with all low, then with all high halves of a byte.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Shuffle {
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
}

impl From<u8> for Shuffle {
    fn from(factor: u8) -> Self {
        Self {
            low: std::array::from_fn(|half| multiply(factor, half as u8)),
            high: std::array::from_fn(|half| multiply(factor, (half << 4) as u8)),
        }
    }
}

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

/// `R` rows of a pass, `U` vectors at a time.
///
/// Why one source apart: its factors stay in registers. Why a single row starts where its output
/// is aligned: a store across two cache lines costs two. The bytes in front, and those behind the
/// last whole vector, are vectors of their own that overlap their neighbours: computed before
/// anything is stored, put in place last.
///
/// # Safety
/// The processor has the instructions of `L`. `factors` holds `sources.len()` cells at every
/// multiple of `stride`, `R` times. Sources and outputs have `bytes` bytes, a vector at least.
#[inline(always)]
pub(super) unsafe fn rows<L: Lanes, const R: usize, const U: usize>(
    factors: &[L::Factor],
    stride: usize,
    sources: &[*const u8],
    out: &[*mut u8; R],
    bytes: usize,
    add: bool,
) {
    let aligned = if R == 1 { out[0].align_offset(L::BYTES) } else { 0 };
    let head = if bytes - L::BYTES >= aligned { aligned } else { 0 };
    let behind = !(bytes - head).is_multiple_of(L::BYTES);
    let end = bytes - L::BYTES;
    // SAFETY: as promised by the caller; there is a whole vector at 0 and one before the end.
    unsafe {
        // No closures here: they would be compiled without the instructions.
        let mut first = [[L::zero(); 1]; R];
        if head > 0 {
            first = sums::<L, _, R, 1>(factors, stride, sources.iter(), out, 0, add);
        }
        let mut last = [[L::zero(); 1]; R];
        if behind {
            last = sums::<L, _, R, 1>(factors, stride, sources.iter(), out, end, add);
        }
        stretch::<L, R, U>(factors, stride, sources, out, head..bytes, add);
        if head > 0 {
            store(&first, out, 0);
        }
        if behind {
            store(&last, out, end);
        }
    }
}

/// # Safety
/// As [`rows`], for a part of the bytes.
#[inline(always)]
unsafe fn stretch<L: Lanes, const R: usize, const U: usize>(
    factors: &[L::Factor],
    stride: usize,
    sources: &[*const u8],
    out: &[*mut u8; R],
    bytes: Range<usize>,
    add: bool,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        match *sources {
            [one] => through::<L, _, R, U>(factors, stride, [one].iter(), out, bytes, add),
            _ => through::<L, _, R, U>(factors, stride, sources.iter(), out, bytes, add),
        }
    }
}

/// # Safety
/// As [`stretch`].
#[inline(always)]
unsafe fn through<'a, L: Lanes, S, const R: usize, const U: usize>(
    factors: &[L::Factor],
    stride: usize,
    sources: S,
    out: &[*mut u8; R],
    bytes: Range<usize>,
    add: bool,
) where
    S: Iterator<Item = &'a *const u8> + Clone,
{
    let mut at = bytes.start;
    // SAFETY: as promised by the caller; `at` plus the vectors taken never exceeds the end.
    unsafe {
        while at + U * L::BYTES <= bytes.end {
            let sums = sums::<L, S, R, U>(factors, stride, sources.clone(), out, at, add);
            store(&sums, out, at);
            at += U * L::BYTES;
        }
        while at + L::BYTES <= bytes.end {
            let sums = sums::<L, S, R, 1>(factors, stride, sources.clone(), out, at, add);
            store(&sums, out, at);
            at += L::BYTES;
        }
    }
}

/// The sums of `U` vectors of each row at `at`.
///
/// # Safety
/// As [`rows`], with `U` vectors at `at`.
#[inline(always)]
unsafe fn sums<'a, L: Lanes, S, const R: usize, const U: usize>(
    factors: &[L::Factor],
    stride: usize,
    sources: S,
    out: &[*mut u8; R],
    at: usize,
    add: bool,
) -> [[L; U]; R]
where
    S: Iterator<Item = &'a *const u8>,
{
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
        for (column, source) in sources.enumerate() {
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
        sums
    }
}

/// # Safety
/// As [`sums`].
#[inline(always)]
unsafe fn store<L: Lanes, const R: usize, const U: usize>(
    sums: &[[L; U]; R],
    out: &[*mut u8; R],
    at: usize,
) {
    for (row, sums) in sums.iter().enumerate() {
        for (unit, sum) in sums.iter().enumerate() {
            // SAFETY: as promised by the caller.
            unsafe { sum.store(out[row].add(at + unit * L::BYTES)) };
        }
    }
}

/// Checks a pass and takes the addresses of its stretch.
pub(super) fn dispatch<F>(
    cells: &[F],
    pass: &Pass<'_, '_>,
    out: &mut [&mut [u8]],
    run: impl FnOnce(usize, &[F], &[*const u8], &[*mut u8; ROWS]),
) {
    let count = out.len();
    assert!((1..=ROWS).contains(&count) && pass.sources.len() <= COLUMNS);
    let last = pass.first + (count - 1) * pass.stride + pass.sources.len();
    let cells = &cells[pass.first..last];
    let stretch = pass.start..pass.start + pass.bytes;
    let mut sources = [std::ptr::null(); COLUMNS];
    for (to, source) in sources.iter_mut().zip(pass.sources) {
        *to = source[stretch.clone()].as_ptr();
    }
    let mut addresses = [std::ptr::null_mut(); ROWS];
    for (to, out) in addresses.iter_mut().zip(out) {
        *to = out[stretch.clone()].as_mut_ptr();
    }
    run(count, cells, &sources[..pass.sources.len()], &addresses);
}

/// Gives a kernel its entry: a function with the instructions, called for a vector or more.
macro_rules! kernel {
    ($name:ident, $lanes:ty, $factor:ty, $units:literal, $features:literal, $cell:expr) => {
        pub(super) fn $name(
            cells: &[$factor],
            pass: &$crate::kernel::Pass<'_, '_>,
            out: &mut [&mut [u8]],
        ) {
            /// # Safety
            /// As `rows`, which it calls.
            #[target_feature(enable = $features)]
            unsafe fn enabled<const R: usize>(
                cells: &[$factor],
                stride: usize,
                sources: &[*const u8],
                out: &[*mut u8; R],
                bytes: usize,
                add: bool,
            ) {
                // SAFETY: this function has the instructions; the rest is the caller's promise.
                unsafe {
                    $crate::kernel::lanes::rows::<$lanes, R, $units>(
                        cells, stride, sources, out, bytes, add,
                    )
                }
            }
            if pass.bytes < <$lanes>::BYTES {
                return $crate::kernel::portable::short(pass, out, |row, column| {
                    $cell(&cells[pass.first + row * pass.stride + column])
                });
            }
            $crate::kernel::lanes::dispatch(cells, pass, out, |count, cells, sources, out| {
                macro_rules! each {
                    ($r:literal) => {{
                        let out = out[..$r].try_into().expect("so many rows");
                        let run = enabled::<$r>;
                        // SAFETY: a kernel is made only where the instructions are, and `dispatch`
                        // checked the lengths.
                        unsafe { run(cells, pass.stride, sources, out, pass.bytes, pass.add) }
                    }};
                }
                match count {
                    1 => each!(1),
                    2 => each!(2),
                    3 => each!(3),
                    4 => each!(4),
                    5 => each!(5),
                    6 => each!(6),
                    7 => each!(7),
                    _ => each!(8),
                }
            });
        }
    };
}
pub(super) use kernel;
