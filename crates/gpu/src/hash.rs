//! Page hashes on the device, the same digests as [`standfast_reduce::PageHasher`]'s XXH3.
//!
//! Data: pages in device memory -> one digest of 16 bytes and one mark (zero? changed?) a page,
//! also in device memory.
//!
//! Why zero and changed are found in the same pass: hashing reads every byte anyway, and reading
//! is all it costs.

use standfast_reduce::SECRET_CONTEXT;

use crate::device::{Args, DeviceSlice, Shape, Stream};
use crate::error::{Error, Result};
use crate::kernels::{HASH, Kernel};

/// Bytes of one digest.
pub const DIGEST_BYTES: usize = 16;
/// Bit of a mark: the page holds nothing but zeros.
pub const MARK_ZERO: u8 = 1;
/// Bit of a mark: the digest differs from the one before.
pub const MARK_CHANGED: u8 = 2;

const HASH_PAGES: Kernel = Kernel::new(&HASH, "hash_pages");
#[cfg(test)]
pub(crate) const KERNELS: &[Kernel] = &[HASH_PAGES];

const SECRET_BYTES: usize = 192;
/// Where the algorithm reads the secret apart from whole words: last stripe, low half, high half.
const UNALIGNED: [usize; 3] = [SECRET_BYTES - 64 - 7, 11, SECRET_BYTES - 64 - 11];

const THREADS: u32 = 256;
const WARPS: u64 = THREADS as u64 / 32;

/// Hashes pages with the job's key on the device.
#[derive(Clone)]
pub struct DeviceHasher {
    /// The secret as the kernel reads it: 24 words, then eight words each from `UNALIGNED`.
    keys: [u64; 48],
}

impl DeviceHasher {
    /// A hasher for the job with this key: the device's twin of
    /// `PageHasher::new(HashKind::Xxh3, key)`.
    pub fn new(key: &[u8; 32]) -> Self {
        let mut secret = [0; SECRET_BYTES];
        blake3::Hasher::new_derive_key(SECRET_CONTEXT).update(key).finalize_xof().fill(&mut secret);
        let word = |at: usize| {
            u64::from_le_bytes(*secret[at..].first_chunk().expect("eight bytes of the secret"))
        };
        let aligned = (0..24).map(|i| word(8 * i));
        let unaligned = UNALIGNED.iter().flat_map(|at| (0..8).map(move |i| at + 8 * i)).map(word);
        let mut keys = [0; 48];
        keys.iter_mut().zip(aligned.chain(unaligned)).for_each(|(key, word)| *key = word);
        DeviceHasher { keys }
    }

    /// Queues hashing `pages`. `digests` takes 16 bytes a page, `marks` one. Without `before`
    /// every page counts as changed. `before` must not be `digests`.
    pub fn queue(
        &self,
        stream: &Stream,
        pages: DeviceSlice<'_>,
        page_bytes: usize,
        before: Option<DeviceSlice<'_>>,
        digests: DeviceSlice<'_>,
        marks: DeviceSlice<'_>,
    ) -> Result<()> {
        check_page_bytes(page_bytes)?;
        if !pages.bytes().is_multiple_of(page_bytes) {
            return Err(Error::invalid(format!("{} bytes are not whole pages", pages.bytes())));
        }
        let count = pages.bytes() / page_bytes;
        assert!(digests.bytes() >= count * DIGEST_BYTES, "room for the digests");
        assert!(marks.bytes() >= count, "room for the marks");
        assert!(before.is_none_or(|before| before.bytes() >= count * DIGEST_BYTES), "old digests");
        let args = Args::new()
            .slice(pages)
            .word(count as u64)
            .half(page_bytes as u32)
            .words(&self.keys)
            .slice(digests)
            .word(before.map_or(0, DeviceSlice::address))
            .slice(marks);
        // Enough blocks to fill the device several times; each warp takes page after page.
        let blocks_max = u64::from(stream.gpu().multiprocessors()) * 32;
        let blocks = (count as u64).div_ceil(WARPS).min(blocks_max);
        // SAFETY: the kernel's arguments in order; lengths checked above; freeing waits.
        unsafe { stream.launch(HASH_PAGES, Shape::blocks(blocks, THREADS), args) }
    }
}

impl std::fmt::Debug for DeviceHasher {
    // The key stays out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceHasher").finish_non_exhaustive()
    }
}

pub(crate) fn check_page_bytes(page_bytes: usize) -> Result<()> {
    if page_bytes.is_power_of_two() && (1 << 10..=1 << 20).contains(&page_bytes) {
        return Ok(());
    }
    Err(Error::invalid(format!("pages of {page_bytes} bytes: 1 KiB to 1 MiB, a power of two")))
}

#[cfg(test)]
mod tests;
