//! The kernels of x86-64.
//!
//! Shuffles: a product is the sum of the products of both halves of a byte, each looked up among
//! sixteen. Bits: multiplying by a constant is linear, so it is a matrix of 8 by 8 bits, which
//! GFNI applies to every byte in one instruction, whatever the field's polynomial.

use std::arch::x86_64::*;

use super::lanes::{Lanes, rows};
use super::{Pass, ROWS, portable};
use crate::field::multiply;

/// Products of one factor with all low, then with all high halves of a byte.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Shuffle {
    low: [u8; 16],
    high: [u8; 16],
}

impl From<u8> for Shuffle {
    fn from(factor: u8) -> Self {
        Self {
            low: std::array::from_fn(|half| multiply(factor, half as u8)),
            high: std::array::from_fn(|half| multiply(factor, (half << 4) as u8)),
        }
    }
}

/// Multiplication by one factor as a matrix of bits.
#[derive(Clone, Copy)]
pub(super) struct Bits(u64);

impl From<u8> for Bits {
    fn from(factor: u8) -> Self {
        let mut matrix = 0;
        for from in 0..8 {
            let product = multiply(factor, 1 << from);
            for to in 0..8 {
                // The row of the highest bit comes first.
                matrix |= u64::from(product >> to & 1) << ((7 - to) * 8 + from);
            }
        }
        Self(matrix)
    }
}

#[derive(Clone, Copy)]
struct Shuffled32(__m256i);

impl Lanes for Shuffled32 {
    const BYTES: usize = 32;
    type Factor = Shuffle;
    type Source = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has AVX2.
        Self(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller has AVX2 and 32 bytes there.
        Self(unsafe { _mm256_loadu_si256(at.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: the caller has AVX2 and 32 bytes there.
        unsafe { _mm256_storeu_si256(at.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn source(self) -> Self::Source {
        // SAFETY: the caller has AVX2.
        unsafe {
            let half = _mm256_set1_epi8(0x0f);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), half);
            (_mm256_and_si256(self.0, half), high)
        }
    }

    #[inline(always)]
    unsafe fn add_product(self, (low, high): Self::Source, factor: &Shuffle) -> Self {
        // SAFETY: the caller has AVX2; both tables have 16 bytes.
        unsafe {
            let table = |half: &[u8; 16]| {
                _mm256_broadcastsi128_si256(_mm_loadu_si128(half.as_ptr().cast()))
            };
            let low = _mm256_shuffle_epi8(table(&factor.low), low);
            let high = _mm256_shuffle_epi8(table(&factor.high), high);
            Self(_mm256_xor_si256(self.0, _mm256_xor_si256(low, high)))
        }
    }
}

#[derive(Clone, Copy)]
struct Shuffled64(__m512i);

impl Lanes for Shuffled64 {
    const BYTES: usize = 64;
    type Factor = Shuffle;
    type Source = (__m512i, __m512i);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has AVX-512.
        Self(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller has AVX-512 and 64 bytes there.
        Self(unsafe { _mm512_loadu_si512(at.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: the caller has AVX-512 and 64 bytes there.
        unsafe { _mm512_storeu_si512(at.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn source(self) -> Self::Source {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let half = _mm512_set1_epi8(0x0f);
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(self.0), half);
            (_mm512_and_si512(self.0, half), high)
        }
    }

    #[inline(always)]
    unsafe fn add_product(self, (low, high): Self::Source, factor: &Shuffle) -> Self {
        // SAFETY: the caller has AVX-512; both tables have 16 bytes.
        unsafe {
            let table =
                |half: &[u8; 16]| _mm512_broadcast_i32x4(_mm_loadu_si128(half.as_ptr().cast()));
            let low = _mm512_shuffle_epi8(table(&factor.low), low);
            let high = _mm512_shuffle_epi8(table(&factor.high), high);
            Self(_mm512_ternarylogic_epi64::<0x96>(self.0, low, high))
        }
    }
}

#[derive(Clone, Copy)]
struct Affine64(__m512i);

impl Lanes for Affine64 {
    const BYTES: usize = 64;
    type Factor = Bits;
    type Source = __m512i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has AVX-512.
        Self(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller has AVX-512 and 64 bytes there.
        Self(unsafe { _mm512_loadu_si512(at.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: the caller has AVX-512 and 64 bytes there.
        unsafe { _mm512_storeu_si512(at.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn source(self) -> Self::Source {
        self.0
    }

    #[inline(always)]
    unsafe fn add_product(self, source: Self::Source, factor: &Bits) -> Self {
        // SAFETY: the caller has AVX-512 and GFNI.
        unsafe {
            let matrix = _mm512_set1_epi64(factor.0 as i64);
            Self(_mm512_xor_si512(self.0, _mm512_gf2p8affine_epi64_epi8::<0>(source, matrix)))
        }
    }
}

/// Gives a kernel its entry: a function with the instructions, called for whole vectors, and the
/// tail behind them.
macro_rules! kernel {
    ($name:ident, $lanes:ty, $factor:ty, $units:literal, $features:literal, $cell:expr) => {
        pub(super) fn $name(cells: &[$factor], pass: &Pass<'_, '_>, out: &mut [&mut [u8]]) {
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
                unsafe { rows::<$lanes, R, $units>(cells, stride, sources, out, bytes, add) }
            }
            dispatch(cells, pass, out, |count, cells, sources, out| {
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
            let left = pass.bytes % <$lanes>::BYTES;
            portable::tail(pass, out, left, |row, column| {
                $cell(&cells[pass.first + row * pass.stride + column])
            });
        }
    };
}

kernel!(avx2, Shuffled32, Shuffle, 1, "avx2", |cell: &Shuffle| cell.low[1]);
kernel!(avx512, Shuffled64, Shuffle, 1, "avx512f,avx512bw", |cell: &Shuffle| cell.low[1]);
kernel!(gfni, Affine64, Bits, 2, "avx512f,avx512bw,gfni", factor_of);

/// The factor of a matrix of bits: what it makes of 1.
fn factor_of(cell: &Bits) -> u8 {
    (0..8).fold(0, |factor, to| factor | ((cell.0 >> ((7 - to) * 8) & 1) as u8) << to)
}

/// Checks a pass and takes the addresses of its stretch.
fn dispatch<F>(
    cells: &[F],
    pass: &Pass<'_, '_>,
    out: &mut [&mut [u8]],
    run: impl FnOnce(usize, &[F], &[*const u8], &[*mut u8; ROWS]),
) {
    let count = out.len();
    assert!((1..=ROWS).contains(&count) && pass.sources.len() <= super::COLUMNS);
    let last = pass.first + (count - 1) * pass.stride + pass.sources.len();
    let cells = &cells[pass.first..last];
    let stretch = pass.start..pass.start + pass.bytes;
    let mut sources = [std::ptr::null(); super::COLUMNS];
    for (to, source) in sources.iter_mut().zip(pass.sources) {
        *to = source[stretch.clone()].as_ptr();
    }
    let mut addresses = [std::ptr::null_mut(); ROWS];
    for (to, out) in addresses.iter_mut().zip(out) {
        *to = out[stretch.clone()].as_mut_ptr();
    }
    run(count, cells, &sources[..pass.sources.len()], &addresses);
}
