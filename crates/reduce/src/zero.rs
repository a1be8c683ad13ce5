//! Zero pages: recognised before anything else looks at a page.
//!
//! Data: one page in, yes or no out. A zero page is neither hashed nor stored.
//!
//! Why own code: the compiler's loop over bytes exits late or not vectorised; this one reads at
//! the speed of memory and gives up within the first bytes of a page that is not zero.
//!
//! Invariant: the answer does not depend on alignment, length or processor.

/// Whether every byte of `page` is zero. Any length, any alignment; true for an empty page.
#[inline]
pub fn is_zero(page: &[u8]) -> bool {
    // Most pages that are not zero say so at once: spare them the call and the set-up.
    if let Some(head) = page.first_chunk::<16>()
        && u128::from_ne_bytes(*head) != 0
    {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { is_zero_avx2(page) };
    }
    is_zero_portable(page)
}

/// Eight words at a time, so that the loop vectorises on any target.
fn is_zero_portable(page: &[u8]) -> bool {
    let (lines, rest) = page.as_chunks::<64>();
    let line_is_zero = |line: &[u8; 64]| {
        let (words, _) = line.as_chunks::<8>();
        words.iter().fold(0, |sum, word| sum | u64::from_ne_bytes(*word)) == 0
    };
    lines.iter().all(line_is_zero) && rest.iter().all(|byte| *byte == 0)
}

/// Bytes between two exits of the AVX2 loop: eight vectors, enough to keep both load ports busy.
#[cfg(target_arch = "x86_64")]
const STEP: usize = 256;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn is_zero_avx2(page: &[u8]) -> bool {
    use std::arch::x86_64::*;
    let (steps, rest) = page.as_chunks::<STEP>();
    for step in steps {
        let base = step.as_ptr();
        let mut sum = _mm256_setzero_si256();
        for offset in (0..STEP).step_by(32) {
            // SAFETY: offset + 32 <= STEP, the length of `step`; the load needs no alignment.
            let lane = unsafe { _mm256_loadu_si256(base.add(offset).cast()) };
            sum = _mm256_or_si256(sum, lane);
        }
        if _mm256_testz_si256(sum, sum) == 0 {
            return false;
        }
    }
    is_zero_portable(rest)
}

#[cfg(test)]
mod tests;
