//! Page hashes: the name by which a page is found again and later verified.
//!
//! Data: pages in, digests of [`PageHasher::bytes`] bytes out, laid end to end.
//!
//! Every hash is keyed with the job's 32-byte key, so that equal pages of two jobs have
//! unrelated names and nobody without the key can prepare colliding pages:
//!
//! | kind | digest |
//! |---|---|
//! | xxh3 | XXH3 with 128 bits, canonical (big-endian) bytes; its 192-byte secret is BLAKE3's extended output in key-derivation mode, context [`SECRET_CONTEXT`], of the key |
//! | blake3 | BLAKE3 keyed hash, 32 bytes |
//! | sha1 | SHA-1 of the key followed by the page, 20 bytes |
//!
//! Known answers for other implementations are in `tests/vectors/hash.txt`.
//!
//! Invariant: a digest depends on kind, key and bytes alone, not on processor, alignment or
//! whether pages were hashed one by one or together.

mod xxh3;

use std::sync::Arc;

use sha1::{Digest, Sha1};
use standfast_format::HashKind;

use xxh3::{SECRET_BYTES, xxh3_128};

/// Key-derivation context of the XXH3 secret: part of the format.
pub const SECRET_CONTEXT: &str = "standfast v1 page hash: xxh3 secret";

/// Hashes pages with one algorithm and one key.
#[derive(Clone)]
pub struct PageHasher {
    state: State,
}

#[derive(Clone)]
enum State {
    Xxh3(Arc<[u8; SECRET_BYTES]>),
    Blake3([u8; 32]),
    Sha1([u8; 32]),
}

impl PageHasher {
    /// A hasher of this kind for the job with this key.
    pub fn new(kind: HashKind, key: &[u8; 32]) -> Self {
        let state = match kind {
            HashKind::Xxh3 => State::Xxh3(Arc::new(expand_secret(key))),
            HashKind::Blake3 => State::Blake3(*key),
            HashKind::Sha1 => State::Sha1(*key),
        };
        PageHasher { state }
    }

    /// The algorithm.
    pub fn kind(&self) -> HashKind {
        match self.state {
            State::Xxh3(_) => HashKind::Xxh3,
            State::Blake3(_) => HashKind::Blake3,
            State::Sha1(_) => HashKind::Sha1,
        }
    }

    /// Length of one digest.
    pub fn bytes(&self) -> usize {
        self.kind().bytes()
    }

    /// Writes the digest of `page` to `out`, whose length must be [`bytes`](Self::bytes).
    pub fn hash(&self, page: &[u8], out: &mut [u8]) {
        assert_eq!(out.len(), self.bytes(), "room for one digest");
        match &self.state {
            State::Xxh3(secret) => {
                out.copy_from_slice(&xxh3_128(page, secret).to_be_bytes());
            }
            State::Blake3(key) => {
                out.copy_from_slice(blake3::keyed_hash(key, page).as_bytes());
            }
            State::Sha1(key) => {
                out.copy_from_slice(&Sha1::new().chain_update(key).chain_update(page).finalize());
            }
        }
    }

    /// Writes the digests of many pages of `page_bytes` each, laid end to end, one after the
    /// other to `out`. The same digests as those of [`hash`](Self::hash).
    pub fn hash_pages(&self, pages: &[u8], page_bytes: usize, out: &mut [u8]) {
        assert!(page_bytes > 0 && pages.len().is_multiple_of(page_bytes), "whole pages");
        let digest_bytes = self.bytes();
        assert_eq!(out.len(), pages.len() / page_bytes * digest_bytes, "room for the digests");
        for (page, digest) in pages.chunks_exact(page_bytes).zip(out.chunks_exact_mut(digest_bytes))
        {
            self.hash(page, digest);
        }
    }
}

impl std::fmt::Debug for PageHasher {
    // The key stays out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageHasher").field("kind", &self.kind()).finish_non_exhaustive()
    }
}

fn expand_secret(key: &[u8; 32]) -> [u8; SECRET_BYTES] {
    let mut secret = [0; SECRET_BYTES];
    blake3::Hasher::new_derive_key(SECRET_CONTEXT).update(key).finalize_xof().fill(&mut secret);
    secret
}
