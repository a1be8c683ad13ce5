//! XXH3 with 128 bits and a caller's secret.
//!
//! Data: page and secret in, digest as a number out.
//!
//! Why this crate: it picks its vector width at run time, so a build for the baseline processor
//! hashes at the speed of memory as well.

use twox_hash::XxHash3_128;

/// Length of the secret: the one that XXH3's own implementations are tuned for.
pub(super) const SECRET_BYTES: usize = 192;

/// The digest of `page`.
#[inline]
pub(super) fn xxh3_128(page: &[u8], secret: &[u8; SECRET_BYTES]) -> u128 {
    XxHash3_128::oneshot_with_secret(secret, page).expect("the secret is long enough")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_for_bit_another_crate_for_every_length() {
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
