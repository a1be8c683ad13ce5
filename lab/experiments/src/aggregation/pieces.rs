//! Pieces of memory in the sizes that checkpoints of real programs are written in.
//!
//! The profile of 64 processes of NPB LU (class C): six in ten writes are smaller than 4 KiB and
//! make 1.5 % of the data, nearly four in ten lie between and make 20 %, and eight in a thousand are
//! larger than 512 KiB and make 79 %.

/// Writes of one process in the profile, and their bytes.
const PIECES: usize = 975;
const BYTES: usize = 23 << 20;
/// How many are small and how many large; the rest is between.
const SMALL: usize = 585;
const LARGE: usize = 8;

/// A generator of numbers without pattern.
pub(super) struct Noise(pub(super) u64);

impl Noise {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn between(&mut self, least: usize, most: usize) -> usize {
        least + (self.next() as usize) % (most - least)
    }
}

/// The sizes of one rank's pieces, in an order without pattern; `scale` times the profile's bytes,
/// by larger large pieces.
pub(super) fn sizes(rank: usize, scale: f64) -> Vec<usize> {
    let mut noise = Noise(rank as u64 + 1);
    let mut sizes: Vec<usize> = (0..SMALL).map(|_| noise.between(64, 1100)).collect();
    sizes.extend((0..PIECES - SMALL - LARGE).map(|_| noise.between(4 << 10, 20 << 10)));
    let rest = ((BYTES as f64 * scale) as usize).saturating_sub(sizes.iter().sum());
    let large = (rest / LARGE).max(513 << 10);
    sizes.extend((0..LARGE).map(|_| large));
    for at in (1..sizes.len()).rev() {
        sizes.swap(at, noise.next() as usize % (at + 1));
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_that_of_the_paper() {
        let sizes = sizes(3, 1.0);
        let share = |keep: fn(&&usize) -> bool| {
            let kept: Vec<&usize> = sizes.iter().filter(keep).collect();
            let bytes: usize = kept.iter().copied().sum();
            let all: usize = sizes.iter().sum();
            (kept.len() as f64 / sizes.len() as f64, bytes as f64 / all as f64)
        };
        let (count, bytes) = share(|size| **size < 4 << 10);
        assert!((0.59..0.61).contains(&count) && bytes < 0.02, "{count} {bytes}");
        let (count, bytes) = share(|size| **size > 512 << 10);
        assert!(count < 0.01 && (0.75..0.83).contains(&bytes), "{count} {bytes}");
    }
}
