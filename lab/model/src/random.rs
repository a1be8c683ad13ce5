//! Seeded random numbers for the simulators: the same seed gives the same run everywhere.
//!
//! Data: a seed -> uniform, exponential and Weibull numbers.
//!
//! Why our own forty lines: a run must be reproducible from its printed seed for years, and
//! library generators change their streams between versions. The generator is xoshiro256++,
//! seeded through splitmix64.

/// A seeded generator.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Any seed is fine, zero too.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        let state = std::array::from_fn(|_| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Self { state }
    }

    fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in (0, 1): neither end, so that logarithms are finite.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Uniform between two numbers.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform on a logarithmic scale between two positive numbers.
    pub fn log_between(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    /// Uniform count below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((self.unit() * limit as f64) as u64).min(limit - 1)
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }

    /// Weibull with the given shape and scale.
    pub fn weibull(&mut self, shape: f64, scale: f64) -> f64 {
        scale * (-self.unit().ln()).powf(1.0 / shape)
    }

    /// Index drawn by weight; the weights add up to one.
    pub fn pick(&mut self, weights: &[f64]) -> usize {
        let mut left = self.unit();
        for (index, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return index;
            }
        }
        weights.len() - 1
    }
}

#[cfg(test)]
mod tests;
