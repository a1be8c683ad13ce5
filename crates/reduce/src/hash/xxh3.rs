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
mod tests;
