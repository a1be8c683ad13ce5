//! The kernels of x86-64.
//!
//! Shuffles: a product is the sum of the products of both halves of a byte, each looked up among
//! sixteen. Bits: multiplying by a constant is linear, so it is a matrix of 8 by 8 bits, which
//! GFNI applies to every byte in one instruction, whatever the field's polynomial.

use std::arch::x86_64::*;

use super::lanes::{Lanes, Shuffle, kernel};
use crate::field::multiply;

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

/// How vectors of a width are made, loaded and stored.
macro_rules! moves {
    ($bytes:literal, $zero:ident, $load:ident, $store:ident) => {
        const BYTES: usize = $bytes;

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: the caller has the instructions.
            Self(unsafe { $zero() })
        }

        #[inline(always)]
        unsafe fn load(at: *const u8) -> Self {
            // SAFETY: the caller has the instructions, and so many bytes there.
            Self(unsafe { $load(at.cast()) })
        }

        #[inline(always)]
        unsafe fn store(self, at: *mut u8) {
            // SAFETY: the caller has the instructions, and so many bytes there.
            unsafe { $store(at.cast(), self.0) }
        }
    };
}

#[derive(Clone, Copy)]
struct Shuffled32(__m256i);

impl Lanes for Shuffled32 {
    moves!(32, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_storeu_si256);
    type Factor = Shuffle;
    type Source = (__m256i, __m256i);

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
    moves!(64, _mm512_setzero_si512, _mm512_loadu_si512, _mm512_storeu_si512);
    type Factor = Shuffle;
    type Source = (__m512i, __m512i);

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
    moves!(64, _mm512_setzero_si512, _mm512_loadu_si512, _mm512_storeu_si512);
    type Factor = Bits;
    type Source = __m512i;

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

kernel!(avx2, Shuffled32, Shuffle, 1, "avx2", |cell: &Shuffle| cell.low[1]);
kernel!(avx512, Shuffled64, Shuffle, 1, "avx512f,avx512bw", |cell: &Shuffle| cell.low[1]);
kernel!(gfni, Affine64, Bits, 2, "avx512f,avx512bw,gfni", factor_of);

/// The factor of a matrix of bits: what it makes of 1.
fn factor_of(cell: &Bits) -> u8 {
    (0..8).fold(0, |factor, to| factor | ((cell.0 >> ((7 - to) * 8) & 1) as u8) << to)
}
