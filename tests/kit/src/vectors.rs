//! Data to test and measure with: the same on the CPU, in CI and on the device.
//!
//! Seeded, so that a failure can be repeated.

/// A generator of bits without pattern; fast, seeded, not for secrets.
#[derive(Clone, Debug)]
pub struct Noise(u64);

impl Noise {
    /// A generator that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A normally distributed number.
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.unit().max(1e-300), self.unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

fn bytes_of<const N: usize>(bytes: usize, mut next: impl FnMut(usize) -> [u8; N]) -> Vec<u8> {
    let mut raw: Vec<u8> = (0..bytes.div_ceil(N)).flat_map(&mut next).collect();
    raw.truncate(bytes);
    raw
}

/// Bytes that no codec makes smaller.
pub fn random(bytes: usize, seed: u64) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    bytes_of(bytes, |_| noise.bits().to_le_bytes())
}

/// Weights of a network: normally distributed with a scale per row, as bf16.
pub fn bf16_weights(bytes: usize, seed: u64) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    let mut scale = 0.02;
    bytes_of(bytes, |at| {
        if at % 4096 == 0 {
            scale = 0.02 * (0.3 * noise.normal()).exp();
        }
        // Rounding by truncation: what matters is the distribution.
        ((((noise.normal() * scale) as f32).to_bits() >> 16) as u16).to_le_bytes()
    })
}

/// A smooth field with noise in the last digits, as simulations leave it.
pub fn noisy_f64(bytes: usize, seed: u64) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    bytes_of(bytes, |at| {
        let x = at as f64 * 1e-4;
        let value = 300.0 + 20.0 * x.sin() + 3.0 * (2.7 * x).cos() + 1e-3 * (noise.unit() - 0.5);
        value.to_le_bytes()
    })
}

/// The same kind of field in single precision.
pub fn noisy_f32(bytes: usize, seed: u64) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    bytes_of(bytes, |at| {
        let x = at as f64 * 1e-4;
        ((300.0 + 20.0 * x.sin() + 1e-2 * (noise.unit() - 0.5)) as f32).to_le_bytes()
    })
}

/// Records with pointers, counters and names: what matching is good at.
pub fn records(bytes: usize, seed: u64) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    let names: [&[u8; 8]; 4] = [b"particle", b"boundary", b"neighbor", b"exchange"];
    bytes_of(bytes, |at| {
        let mut record = [0; 48];
        record[..8].copy_from_slice(&(0x7f00_0000_0000 + 48 * at as u64).to_le_bytes());
        record[8..16].copy_from_slice(names[(noise.bits() % 4) as usize]);
        record[16..20].copy_from_slice(&(at as u32).to_le_bytes());
        record[24..32].copy_from_slice(&(noise.bits() % 1000).to_le_bytes());
        record[40] = (noise.bits() % 7) as u8;
        record
    })
}

/// Pages as a simulation has them: zeros, copies, numbers, records and noise.
pub fn mixed_pages(bytes: usize, seed: u64) -> Vec<u8> {
    const PAGE: usize = 4096;
    let mut noise = Noise::new(seed);
    let mut raw: Vec<u8> = Vec::with_capacity(bytes.next_multiple_of(PAGE));
    while raw.len() < bytes {
        let draw = noise.bits();
        match draw % 8 {
            0 | 1 => raw.resize(raw.len() + PAGE, 0),
            2 if raw.len() >= PAGE => {
                let from = (draw >> 8) as usize % (raw.len() / PAGE) * PAGE;
                raw.extend_from_within(from..from + PAGE);
            }
            3 => raw.extend(random(PAGE, draw)),
            4 | 5 => raw.extend(noisy_f64(PAGE, draw)),
            _ => raw.extend(records(PAGE, draw)),
        }
    }
    raw.truncate(bytes);
    raw
}

/// Every shape that has tripped a codec before: empty, short, uneven, constant, hostile.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("empty", Vec::new()),
        ("one byte", vec![42]),
        ("five bytes", vec![1, 2, 3, 4, 5]),
        ("a line", b"standfast standfast standfast stand\n".to_vec()),
        ("zeros", vec![0; 300_000]),
        ("a period of 3", (0..100_003).map(|i| (i % 3) as u8).collect()),
        ("a period of 1000", (0..140_000).map(|i| ((i % 1000 * 7) >> 3) as u8).collect()),
        ("random", random(150_001, 5)),
        ("bf16 weights", bf16_weights(600_002, 6)),
        ("noisy f64", noisy_f64(600_004, 7)),
        ("noisy f32", noisy_f32(300_001, 8)),
        ("records", records(200_000, 9)),
        ("mixed pages", mixed_pages(1 << 20, 10)),
        ("calm, then random", [vec![9; 200_000], random(200_000, 11)].concat()),
        ("two symbols", random(70_000, 12).iter().map(|byte| byte & 1).collect()),
        ("all symbols", (0..=255).cycle().take(65_536 * 3).collect()),
    ]
}
