//! XXH3 with 128 bits and a caller's secret, at the speed of memory on plain x86-64 builds.
//!
//! Data: page and secret in, digest as a number out.
//!
//! Why own code: the crate picks its vector width when it is compiled, so a build for the
//! baseline processor would hash with half of it. Only the loop over long inputs is here, for
//! AVX2 and chosen at run time; short inputs and other processors go to the crate.
//!
//! Shape of the algorithm: eight 64-bit lanes take in stripes of 64 bytes, each against a part of
//! the secret that moves on by 8 bytes; after as many stripes as the secret allows (a block) the
//! lanes are scrambled. The input's last 64 bytes are always one more stripe. Then lanes and
//! secret are folded into two 64-bit halves.
//!
//! Invariant: bit for bit the crate's result, for every length.

/// Length of the secret: the one that XXH3's own implementations are tuned for.
pub(super) const SECRET_BYTES: usize = 192;

/// The digest of `page`.
#[inline]
pub(super) fn xxh3_128(page: &[u8], secret: &[u8; SECRET_BYTES]) -> u128 {
    #[cfg(target_arch = "x86_64")]
    if page.len() > avx2::SHORT_MAX && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { avx2::xxh3_128_long(page, secret) };
    }
    xxhash_rust::xxh3::xxh3_128_with_secret(page, secret)
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::SECRET_BYTES;

    /// Inputs up to here take XXH3's other, short forms.
    pub(super) const SHORT_MAX: usize = 240;

    const STRIPE: usize = 64;
    /// Bytes by which the secret moves on from stripe to stripe.
    const SECRET_STEP: usize = 8;
    const STRIPES_PER_BLOCK: usize = (SECRET_BYTES - STRIPE) / SECRET_STEP;
    const BLOCK: usize = STRIPE * STRIPES_PER_BLOCK;
    /// How far ahead lines are asked for: the processor's own look-ahead stops at the page's end.
    const AHEAD: usize = 1024;

    const PRIME32_1: u64 = 0x9E37_79B1;
    const PRIME32_2: u64 = 0x85EB_CA77;
    const PRIME32_3: u64 = 0xC2B2_AE3D;
    const PRIME64_1: u64 = 0x9E37_79B1_85EB_CA87;
    const PRIME64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
    const PRIME64_3: u64 = 0x1656_67B1_9E37_79F9;
    const PRIME64_4: u64 = 0x85EB_CA77_C2B2_AE63;
    const PRIME64_5: u64 = 0x27D4_EB2F_1656_67C5;
    const AVALANCHE: u64 = 0x1656_6791_9E37_79F9;

    const LANES_START: [u64; 8] =
        [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1];

    /// Lanes 0 to 3 and 4 to 7.
    type Lanes = [__m256i; 2];

    /// The digest of an input longer than [`SHORT_MAX`].
    #[target_feature(enable = "avx2")]
    pub(super) fn xxh3_128_long(page: &[u8], secret: &[u8; SECRET_BYTES]) -> u128 {
        // The last byte belongs to the extra stripe at the end, also where a block ends with it.
        let (blocks, rest) = page[..page.len() - 1].as_chunks::<BLOCK>();
        let (rest, _) = rest.as_chunks::<STRIPE>();
        let last: &[u8; STRIPE] = page.last_chunk().expect("longer than a stripe");

        let mut lanes = load_lanes(&LANES_START);
        for block in blocks {
            let (stripes, _) = block.as_chunks::<STRIPE>();
            lanes = absorb(lanes, stripes, secret);
            lanes = scramble(lanes, part(secret, SECRET_BYTES - STRIPE));
        }
        lanes = absorb(lanes, rest, secret);
        lanes = accumulate(lanes, last, part(secret, SECRET_BYTES - STRIPE - 7));
        finish(&store_lanes(lanes), secret, page.len() as u64)
    }

    /// Stripes of at most one block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn absorb(mut lanes: Lanes, stripes: &[[u8; STRIPE]], secret: &[u8; SECRET_BYTES]) -> Lanes {
        for (index, stripe) in stripes.iter().enumerate() {
            _mm_prefetch::<_MM_HINT_T0>(stripe.as_ptr().wrapping_add(AHEAD).cast());
            lanes = accumulate(lanes, stripe, part(secret, index * SECRET_STEP));
        }
        lanes
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn accumulate(lanes: Lanes, stripe: &[u8; STRIPE], secret: &[u8; STRIPE]) -> Lanes {
        let (data, keys) = (load(stripe), load(secret));
        let half = |lanes, data, key| {
            let keyed = _mm256_xor_si256(data, key);
            let product = _mm256_mul_epu32(keyed, _mm256_srli_epi64::<32>(keyed));
            let swapped = _mm256_shuffle_epi32::<0b01_00_11_10>(data);
            _mm256_add_epi64(product, _mm256_add_epi64(lanes, swapped))
        };
        [half(lanes[0], data[0], keys[0]), half(lanes[1], data[1], keys[1])]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn scramble(lanes: Lanes, secret: &[u8; STRIPE]) -> Lanes {
        let keys = load(secret);
        let prime = _mm256_set1_epi32(PRIME32_1 as i32);
        let half = |lanes, key| {
            let mixed = _mm256_xor_si256(lanes, _mm256_srli_epi64::<47>(lanes));
            let keyed = _mm256_xor_si256(mixed, key);
            let low = _mm256_mul_epu32(keyed, prime);
            let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(keyed), prime);
            _mm256_add_epi64(low, _mm256_slli_epi64::<32>(high))
        };
        [half(lanes[0], keys[0]), half(lanes[1], keys[1])]
    }

    fn finish(lanes: &[u64; 8], secret: &[u8; SECRET_BYTES], len: u64) -> u128 {
        let low = fold(lanes, part(secret, 11), len.wrapping_mul(PRIME64_1));
        let high_secret = part(secret, SECRET_BYTES - STRIPE - 11);
        let high = fold(lanes, high_secret, !len.wrapping_mul(PRIME64_2));
        u128::from(high) << 64 | u128::from(low)
    }

    fn fold(lanes: &[u64; 8], secret: &[u8; STRIPE], start: u64) -> u64 {
        let (keys, _) = secret.as_chunks::<8>();
        let keyed = |lane: usize| u128::from(lanes[lane] ^ u64::from_le_bytes(keys[lane]));
        let mut sum = start;
        for pair in 0..4 {
            let product = keyed(2 * pair) * keyed(2 * pair + 1);
            sum = sum.wrapping_add(product as u64 ^ (product >> 64) as u64);
        }
        sum ^= sum >> 37;
        sum = sum.wrapping_mul(AVALANCHE);
        sum ^ sum >> 32
    }

    #[inline]
    fn part(secret: &[u8; SECRET_BYTES], at: usize) -> &[u8; STRIPE] {
        secret[at..].first_chunk().expect("a stripe's worth of secret")
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; STRIPE]) -> Lanes {
        let at = bytes.as_ptr().cast::<__m256i>();
        // SAFETY: 64 readable bytes; the load needs no alignment.
        unsafe { [_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))] }
    }

    #[target_feature(enable = "avx2")]
    fn load_lanes(lanes: &[u64; 8]) -> Lanes {
        let at = lanes.as_ptr().cast::<__m256i>();
        // SAFETY: 64 readable bytes; the load needs no alignment.
        unsafe { [_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))] }
    }

    #[target_feature(enable = "avx2")]
    fn store_lanes(lanes: Lanes) -> [u64; 8] {
        let mut out = [0_u64; 8];
        let at = out.as_mut_ptr().cast::<__m256i>();
        // SAFETY: 64 writable bytes; the store needs no alignment.
        unsafe {
            _mm256_storeu_si256(at, lanes[0]);
            _mm256_storeu_si256(at.add(1), lanes[1]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_for_bit_the_crate_for_every_length() {
        let secret: [u8; SECRET_BYTES] = std::array::from_fn(|i| (i * 37 + 11) as u8);
        let bytes: Vec<u8> =
            (0..70_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let lengths = (0..5000).chain([8192, 16384, 65535, 65536, 65537]);
        for len in lengths {
            let page = &bytes[len % 61..][..len];
            let expected = xxhash_rust::xxh3::xxh3_128_with_secret(page, &secret);
            assert_eq!(xxh3_128(page, &secret), expected, "length {len}");
        }
    }
}
