//! The kernel of AArch64, by shuffles as on x86-64: a product is the sum of the products of both
//! halves of a byte, each looked up among sixteen.

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8,
};

use super::lanes::{Lanes, Shuffle, kernel};

#[derive(Clone, Copy)]
struct Shuffled16(uint8x16_t);

// Every processor of this kind has the instructions; some compilers ask for `unsafe` all the same.
#[allow(unused_unsafe)]
impl Lanes for Shuffled16 {
    const BYTES: usize = 16;
    type Factor = Shuffle;
    type Source = (uint8x16_t, uint8x16_t);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has NEON.
        Self(unsafe { vdupq_n_u8(0) })
    }

    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller has NEON and 16 bytes there.
        Self(unsafe { vld1q_u8(at) })
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: the caller has NEON and 16 bytes there.
        unsafe { vst1q_u8(at, self.0) }
    }

    #[inline(always)]
    unsafe fn source(self) -> Self::Source {
        // SAFETY: the caller has NEON.
        unsafe { (vandq_u8(self.0, vdupq_n_u8(0x0f)), vshrq_n_u8::<4>(self.0)) }
    }

    #[inline(always)]
    unsafe fn add_product(self, (low, high): Self::Source, factor: &Shuffle) -> Self {
        // SAFETY: the caller has NEON; both tables have 16 bytes.
        unsafe {
            let low = vqtbl1q_u8(vld1q_u8(factor.low.as_ptr()), low);
            let high = vqtbl1q_u8(vld1q_u8(factor.high.as_ptr()), high);
            Self(veorq_u8(self.0, veorq_u8(low, high)))
        }
    }
}

kernel!(neon, Shuffled16, Shuffle, 2, "neon", |cell: &Shuffle| cell.low[1]);
