//! Names of pages that need no contents: hashes made from numbers, uniform and distinct.

use std::collections::HashSet;

/// Length of a hash.
pub(super) const HASH_BYTES: usize = 16;

/// A page's hash, or what stands for it.
pub(super) type Name = [u8; HASH_BYTES];

/// The name of a page with this number.
pub(super) fn name(page: u64) -> Name {
    let mut name = [0; HASH_BYTES];
    name[..8].copy_from_slice(&mix(page).to_le_bytes());
    name[8..].copy_from_slice(&mix(page ^ 0x5851_f42d_4c95_7f2d).to_le_bytes());
    name
}

/// Names of a rank's pages that no other rank has.
pub(crate) fn unique(rank: usize, pages: usize) -> Vec<u8> {
    let first = (rank * pages) as u64;
    (first..first + pages as u64).flat_map(name).collect()
}

/// How many different pages all ranks have together.
pub(super) fn distinct<'a>(ranks: impl IntoIterator<Item = &'a [u8]>) -> usize {
    let names = ranks.into_iter().flat_map(|names| names.as_chunks::<HASH_BYTES>().0);
    names.collect::<HashSet<&Name>>().len()
}

/// One step of SplitMix64: every bit of the number moves half of the result's; none collide.
fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
