//! Data to measure with: unique and incompressible, smooth and noisy numbers.

use standfast_sys::AlignedBuf;

/// A generator of bits without pattern; fast, seeded, not for secrets.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Bytes that no codec makes smaller; no page twice.
pub(crate) fn random(bytes: usize, seed: u64) -> AlignedBuf {
    let mut buf = AlignedBuf::with_len(bytes);
    let mut noise = Noise::new(seed);
    for word in buf.chunks_exact_mut(8) {
        word.copy_from_slice(&noise.next().to_le_bytes());
    }
    buf
}

/// A smooth f64 field with noise in the last bits, as simulations leave it.
pub(crate) fn field(bytes: usize, noise_share: f64) -> AlignedBuf {
    let mut buf = AlignedBuf::with_len(bytes);
    let mut noise = Noise::new(7);
    for (at, word) in buf.chunks_exact_mut(8).enumerate() {
        let x = at as f64 * 1e-4;
        let jitter = (noise.next() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        let value = 300.0 + 20.0 * x.sin() + 3.0 * (2.7 * x).cos() + noise_share * jitter;
        word.copy_from_slice(&value.to_le_bytes());
    }
    buf
}

/// Changes one word in every `every`-th page.
pub(crate) fn touch_pages(buf: &mut [u8], page_bytes: usize, every: usize, seed: u64) {
    let mut noise = Noise::new(seed);
    for page in buf.chunks_mut(page_bytes).step_by(every) {
        page[..8].copy_from_slice(&noise.next().to_le_bytes());
    }
}
