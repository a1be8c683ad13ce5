//! The byte shuffle with AVX2: 32 elements at a time, transposed in registers.
//!
//! A 16-byte half of a register holds 2 (or 4) whole elements. One byte shuffle brings equal
//! bytes of these together; then the registers are a square matrix of 16-bit (or 32-bit) pieces
//! whose transpose is the planes. The lower halves take the first 16 elements and the upper
//! halves the other 16, so that no byte ever has to change halves.
//!
//! Invariant: elements beyond the last whole group are left to the caller.

use std::arch::x86_64::*;

/// Elements that one step moves: one register of each plane.
const GROUP: usize = 32;

/// Shuffles the leading groups of `count` elements; returns how many elements that were.
///
/// # Safety
/// `src` and `dst` must be valid for `count * elem` bytes and must not overlap.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn shuffle(elem: usize, src: *const u8, dst: *mut u8, count: usize) -> usize {
    let done = count - count % GROUP;
    for first in (0..done).step_by(GROUP) {
        // SAFETY: the group's elements end before `done`, and so does its part of each plane.
        unsafe {
            let (from, to) = (src.add(first * elem), dst.add(first));
            match elem {
                4 => store_planes(to, count, transpose4(gather4(load_halves(from)))),
                _ => store_planes(to, count, transpose8(gather8(load_halves(from)))),
            }
        }
    }
    done
}

/// Undoes [`shuffle`] for the leading groups; returns how many elements that were.
///
/// # Safety
/// `src` and `dst` must be valid for `count * elem` bytes and must not overlap.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn unshuffle(elem: usize, src: *const u8, dst: *mut u8, count: usize) -> usize {
    let done = count - count % GROUP;
    for first in (0..done).step_by(GROUP) {
        // SAFETY: the group's elements end before `done`, and so does its part of each plane.
        unsafe {
            let (from, to) = (src.add(first), dst.add(first * elem));
            match elem {
                // Gathering 4 bytes of 4 elements is a transpose: it undoes itself.
                4 => store_halves(to, gather4(transpose4(load_planes(from, count)))),
                _ => store_halves(to, scatter8(transpose8(load_planes(from, count)))),
            }
        }
    }
    done
}

/// Lower halves from the first half of the group, upper halves from the second.
///
/// # Safety
/// `from` must be readable for `32 * N` bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_halves<const N: usize>(from: *const u8) -> [__m256i; N] {
    let mut out = [_mm256_setzero_si256(); N];
    for (index, register) in out.iter_mut().enumerate() {
        // SAFETY: both loads lie within 32 * N bytes and need no alignment.
        *register = unsafe {
            let low = from.add(16 * index);
            _mm256_loadu2_m128i(low.add(16 * N).cast(), low.cast())
        };
    }
    out
}

/// # Safety
/// `to` must be writable for `32 * N` bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_halves<const N: usize>(to: *mut u8, registers: [__m256i; N]) {
    for (index, register) in registers.into_iter().enumerate() {
        // SAFETY: both stores lie within 32 * N bytes and need no alignment.
        unsafe {
            let low = to.add(16 * index);
            _mm256_storeu2_m128i(low.add(16 * N).cast(), low.cast(), register);
        }
    }
}

/// # Safety
/// `from` must be readable for 32 bytes at each of the `N` multiples of `stride`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_planes<const N: usize>(from: *const u8, stride: usize) -> [__m256i; N] {
    let mut out = [_mm256_setzero_si256(); N];
    for (plane, register) in out.iter_mut().enumerate() {
        // SAFETY: promised by the caller; the load needs no alignment.
        *register = unsafe { _mm256_loadu_si256(from.add(plane * stride).cast()) };
    }
    out
}

/// # Safety
/// `to` must be writable for 32 bytes at each of the `N` multiples of `stride`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_planes<const N: usize>(to: *mut u8, stride: usize, registers: [__m256i; N]) {
    for (plane, register) in registers.into_iter().enumerate() {
        // SAFETY: promised by the caller; the store needs no alignment.
        unsafe { _mm256_storeu_si256(to.add(plane * stride).cast(), register) };
    }
}

/// In each half: 4 elements of 4 bytes become 4 pieces of 4 equal-place bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn gather4(registers: [__m256i; 4]) -> [__m256i; 4] {
    let order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let order = _mm256_broadcastsi128_si256(order);
    registers.map(|register| _mm256_shuffle_epi8(register, order))
}

/// In each half: 2 elements of 8 bytes become 8 pieces of 2 equal-place bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn gather8(registers: [__m256i; 8]) -> [__m256i; 8] {
    let order = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    let order = _mm256_broadcastsi128_si256(order);
    registers.map(|register| _mm256_shuffle_epi8(register, order))
}

/// Undoes [`gather8`].
#[inline]
#[target_feature(enable = "avx2")]
fn scatter8(registers: [__m256i; 8]) -> [__m256i; 8] {
    let order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    let order = _mm256_broadcastsi128_si256(order);
    registers.map(|register| _mm256_shuffle_epi8(register, order))
}

/// Transposes, in each half, the 4 by 4 matrix of 32-bit pieces.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose4(r: [__m256i; 4]) -> [__m256i; 4] {
    let low = [_mm256_unpacklo_epi32(r[0], r[1]), _mm256_unpacklo_epi32(r[2], r[3])];
    let high = [_mm256_unpackhi_epi32(r[0], r[1]), _mm256_unpackhi_epi32(r[2], r[3])];
    [
        _mm256_unpacklo_epi64(low[0], low[1]),
        _mm256_unpackhi_epi64(low[0], low[1]),
        _mm256_unpacklo_epi64(high[0], high[1]),
        _mm256_unpackhi_epi64(high[0], high[1]),
    ]
}

/// Transposes, in each half, the 8 by 8 matrix of 16-bit pieces.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose8(r: [__m256i; 8]) -> [__m256i; 8] {
    // Pairs of rows, columns 0 to 3 and 4 to 7.
    let low = [0, 2, 4, 6].map(|row| _mm256_unpacklo_epi16(r[row], r[row + 1]));
    let high = [0, 2, 4, 6].map(|row| _mm256_unpackhi_epi16(r[row], r[row + 1]));
    let [a, b, c, d] = transpose4(low);
    let [e, f, g, h] = transpose4(high);
    [a, b, c, d, e, f, g, h]
}
