//! Differences of neighbouring numbers, so that planes of slowly changing ones become quiet.
//!
//! Data: elements of 4 or 8 bytes, read as little-endian integers -> each minus the one before it
//! (the first minus 0), wrapping, and folded so that small differences of either sign become
//! small numbers: 0, -1, 1, -2, ... become 0, 1, 2, 3, ... A tail shorter than an element stays.
//!
//! Why integers also for floats: floats of one sign and exponent are ordered as their bits are, so
//! neighbours of a smooth field differ in their low bits only. Why folding: without it the sign
//! of a noisy difference fills every higher byte with 00 or ff.
//!
//! Invariants:
//! - `undo` after `take` gives the same bytes, for every length and any contents.

macro_rules! delta_of {
    ($take:ident, $undo:ident, $number:ty, $signed:ty) => {
        /// Writes the folded differences of `src` to `dst`, which has its length.
        #[inline(always)]
        fn $take(src: &[u8], dst: &mut [u8]) {
            const BYTES: usize = size_of::<$number>();
            let (elements, tail) = src.as_chunks::<BYTES>();
            let (folded, rest) = dst.as_chunks_mut::<BYTES>();
            rest.copy_from_slice(tail);
            let Some(first) = elements.first() else { return };
            let fold = |now: &[u8; BYTES], before: &[u8; BYTES]| {
                let now = <$number>::from_le_bytes(*now);
                let difference = now.wrapping_sub(<$number>::from_le_bytes(*before)) as $signed;
                let sign = (difference >> (<$signed>::BITS - 1)) as $number;
                (((difference as $number) << 1) ^ sign).to_le_bytes()
            };
            folded[0] = fold(first, &[0; BYTES]);
            // Pairs of neighbours from two slices: nothing depends on the step before.
            for ((out, now), before) in folded[1..].iter_mut().zip(&elements[1..]).zip(elements) {
                *out = fold(now, before);
            }
        }

        /// Turns folded differences back, in place.
        fn $undo(bytes: &mut [u8]) {
            let (elements, _) = bytes.as_chunks_mut::<{ size_of::<$number>() }>();
            let mut last: $number = 0;
            for element in elements {
                let folded = <$number>::from_le_bytes(*element);
                let difference = (folded >> 1) ^ (folded & 1).wrapping_neg();
                last = last.wrapping_add(difference);
                *element = last.to_le_bytes();
            }
        }
    };
}

delta_of!(take4, undo4, u32, i32);
delta_of!(take8, undo8, u64, i64);

/// Writes the folded differences of `src`, elements of `elem` (4 or 8) bytes, to `dst`, which has
/// the same length.
pub(super) fn take(elem: usize, src: &[u8], dst: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { take_avx2(elem, src, dst) };
    }
    take_portable(elem, src, dst);
}

/// The same code, compiled for wider registers.
///
/// # Safety
/// The processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn take_avx2(elem: usize, src: &[u8], dst: &mut [u8]) {
    take_portable(elem, src, dst);
}

#[inline(always)]
fn take_portable(elem: usize, src: &[u8], dst: &mut [u8]) {
    match elem {
        4 => take4(src, dst),
        _ => take8(src, dst),
    }
}

/// Undoes [`take`] in place.
pub(super) fn undo(elem: usize, bytes: &mut [u8]) {
    match elem {
        4 => undo4(bytes),
        _ => undo8(bytes),
    }
}

#[cfg(test)]
mod tests;
