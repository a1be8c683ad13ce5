//! Homes: every hash belongs to one rank, which sees all its holders.
//!
//! Data: a rank's hashes -> [`Parts`]: a message for each home, and which candidate stands where
//! in it.

/// Which rank is the home of a hash. Hashes are uniform, so homes get equal shares. Other bytes
/// than those of the home's own table: inside one home these are all alike in their upper bits.
pub(super) fn home_of(hash: &[u8], ranks: usize) -> usize {
    let bits = u64::from_le_bytes(hash[8..16].try_into().expect("eight bytes"));
    ((u128::from(bits) * ranks as u128) >> 64) as usize
}

/// A rank's candidates, by home.
pub(super) struct Parts {
    /// Hashes for each home, end to end.
    pub(super) messages: Vec<Vec<u8>>,
    /// Candidate numbers in the order of those hashes.
    pub(super) candidates: Vec<Vec<u32>>,
}

impl Parts {
    pub(super) fn cut(hashes: &[u8], hash_bytes: usize, ranks: usize) -> Self {
        match hash_bytes {
            16 => Self::cut_by::<16>(hashes, ranks),
            20 => Self::cut_by::<20>(hashes, ranks),
            32 => Self::cut_by::<32>(hashes, ranks),
            other => unreachable!("no hash has {other} bytes"),
        }
    }

    /// With the length known, a hash is copied by a few moves instead of a call.
    fn cut_by<const N: usize>(hashes: &[u8], ranks: usize) -> Self {
        let (hashes, rest) = hashes.as_chunks::<N>();
        assert!(rest.is_empty(), "whole hashes");
        let mut counts = vec![0usize; ranks];
        for hash in hashes {
            counts[home_of(hash, ranks)] += 1;
        }
        let mut messages: Vec<Vec<u8>> =
            counts.iter().map(|count| Vec::with_capacity(count * N)).collect();
        let mut candidates: Vec<Vec<u32>> =
            counts.iter().map(|count| Vec::with_capacity(*count)).collect();
        for (candidate, hash) in hashes.iter().enumerate() {
            let home = home_of(hash, ranks);
            messages[home].extend_from_slice(hash);
            candidates[home].push(candidate as u32);
        }
        Self { messages, candidates }
    }
}
