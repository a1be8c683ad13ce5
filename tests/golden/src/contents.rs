//! What memory holds: a function of case, rank and version, so that readers need no copy of it.
//!
//! Only whole numbers and operations that are exact in binary, no `sin`: every machine computes the same
//! bits.
//!
//! Of the regions' pages (of 4 KiB) every third changes from a version to the next, and every second is
//! the same on all ranks: checkpoints lean on earlier ones, and ranks on each other.

/// Bytes of the stretches that change together.
const STRETCH: usize = 4096;

/// The regions of one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// A smooth field; ends within a page.
    pub field: Vec<f64>,
    /// Numbers that grow slowly; ends a little into a page.
    pub counts: Vec<u32>,
    /// Nothing compresses it.
    pub noise: Vec<u8>,
    /// Two pages that are equal.
    pub twins: Vec<u8>,
    /// Zeros.
    pub zeros: Vec<u8>,
}

impl Contents {
    /// What a rank holds when it takes this version.
    pub fn at(case: &str, scale: usize, rank: usize, version: u64) -> Self {
        let seed = seed(case);
        let of = |page: usize| Origin::of(page, rank, version);
        Self {
            field: (0..2048 * scale - 3).map(|at| field(seed, at, of(at * 8 / STRETCH))).collect(),
            counts: (0..3072 * scale + 5).map(|at| count(seed, at, of(at * 4 / STRETCH))).collect(),
            noise: (0..STRETCH + 200).map(|at| noise(at, rank, version)).collect(),
            twins: (0..2 * STRETCH).map(|at| twin(seed, at % STRETCH)).collect(),
            zeros: vec![0; 10_000],
        }
    }
}

/// Where the bytes of a page come from.
#[derive(Clone, Copy)]
struct Origin {
    /// The rank that has them; 0 where all ranks have the same.
    rank: u64,
    /// The version in which they last changed.
    version: u64,
}

impl Origin {
    fn of(page: usize, rank: usize, version: u64) -> Self {
        let changes = |of: &u64| *of == 1 || (page as u64 + of).is_multiple_of(3);
        let version = (1..=version).rev().find(changes).unwrap_or(1);
        Self { rank: if page.is_multiple_of(2) { 0 } else { rank as u64 }, version }
    }
}

/// A parabola that moves; all terms are multiples of 2^-14, so nothing is rounded.
fn field(seed: u64, at: usize, origin: Origin) -> f64 {
    let x = at as f64 / 64.0;
    0.25 * x * x - origin.version as f64 * x + (origin.rank * 3 + seed % 1000) as f64
}

fn count(seed: u64, at: usize, origin: Origin) -> u32 {
    let at = at as u64;
    (3 * at + ((at * at) >> 7) + 100_000 * origin.version + 7 * origin.rank + seed % 1000) as u32
}

/// The first page stays as it is, the rest changes with every version. It is the same in all cases, or it
/// would be most of what is committed.
fn noise(at: usize, rank: usize, version: u64) -> u8 {
    let version = if at < STRETCH { 0 } else { version };
    let place = (at as u64) << 32 | (rank as u64) << 16 | version;
    (mix(place) >> 24) as u8
}

fn twin(seed: u64, at: usize) -> u8 {
    (at as u64 / 16 + seed) as u8
}

/// FNV-1a: small, and the same for ever.
fn seed(case: &str) -> u64 {
    let step = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    case.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The finaliser of SplitMix64.
fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that no change of this file may change: frozen stores hold them.
    #[test]
    fn contents_are_what_they_were() {
        let contents = Contents::at("mode-all", 1, 2, 3);
        let picked =
            (contents.field[600], contents.counts[1030], contents.noise[5], contents.twins[99]);
        assert_eq!(picked, (637.222_656_25, 212_020, 40, 98));
        assert_eq!(contents.noise.len() % STRETCH, 200);
    }

    #[test]
    fn versions_ranks_and_cases_differ_and_have_much_in_common() {
        let one = Contents::at("a", 1, 0, 1);
        assert_ne!(one, Contents::at("b", 1, 0, 1));
        let (next, other) = (Contents::at("a", 1, 0, 2), Contents::at("a", 1, 1, 1));
        for (field, counts) in [(next.field, next.counts), (other.field, other.counts)] {
            let same = field.iter().zip(&one.field).filter(|(a, b)| a == b).count();
            assert!((512..2045).contains(&same), "{same}");
            assert_ne!(counts, one.counts);
        }
    }
}
