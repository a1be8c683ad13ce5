//! A storm crossing a quiet domain: the memory of one rank of a stencil program.
//!
//! The domain is a unit square with height, cut into subdomains of equal numbers of points: more
//! ranks resolve it finer. Six fields of `f64` (wind in three directions, temperature, pressure,
//! moisture), each for two time levels, are computed anew at every step everywhere; outside the
//! storm they come out as the base state again, which depends on the height alone. Beside them:
//! tables that are read only, the same on every rank; scratch memory that is zero; and a map of
//! this rank's part of the ground.
//!
//! The storm is a vortex with a sharp edge: inside its radius every field is disturbed up to some
//! height, outside nothing is.

/// Points of a subdomain along each horizontal axis.
pub(super) const SIDE: usize = 64;
/// Levels of height.
pub(super) const LEVELS: usize = 32;
const LEVEL_POINTS: usize = SIDE * SIDE;
/// Part of the domain that the storm's radius takes: 2.5 % of the area.
const RADIUS: f64 = 0.09;
/// Time between two levels of a field.
const STEP: f64 = 0.004;
const TABLE_POINTS: usize = 800 * 512;
const SCRATCH_POINTS: usize = 408 * 512;

/// A field: its base state by height (0 to 1), the strength of the disturbance, and the height up
/// to which it is disturbed.
struct Field {
    base: fn(f64) -> f64,
    storm: fn(f64, f64, f64) -> f64,
    depth: f64,
}

/// The disturbance takes the place relative to the centre, in radii, and the height.
const FIELDS: [Field; 6] = [
    Field { base: |z| 5.0 + 12.0 * z, storm: |_, y, z| -60.0 * y * (1.0 - z), depth: 0.34 },
    Field { base: |z| -2.0 - 3.0 * z, storm: |x, _, z| 60.0 * x * (1.0 - z), depth: 0.34 },
    Field {
        base: |_| 0.0,
        storm: |x, y, z| 4.0 * (3.0 * x).cos() * (5.0 * y).cos() * z,
        depth: 0.30,
    },
    Field {
        base: |z| 300.0 + 40.0 * z,
        storm: |x, y, z| 9.0 * z * (1.5 - x * x - y * y),
        depth: 0.28,
    },
    Field { base: |z| 1013.0 * (-1.2 * z).exp(), storm: |_, _, z| -70.0 * (1.0 - z), depth: 0.25 },
    Field {
        base: |z| 16.0 * (-4.0 * z).exp(),
        storm: |x, _, z| 3.0 * (1.0 + x) * (1.0 - z),
        depth: 0.20,
    },
];

/// One rank's part of the domain.
#[derive(Clone, Copy)]
pub(super) struct Subdomain {
    /// Ranks along each axis.
    pub(super) grid: (usize, usize),
    /// Place of this one.
    pub(super) at: (usize, usize),
}

impl Subdomain {
    /// The part of a rank, with as square a grid as the number of ranks allows.
    pub(super) fn of(rank: usize, ranks: usize) -> Self {
        let root = (ranks as f64).sqrt() as usize;
        let across = (1..=root).rev().find(|side| ranks.is_multiple_of(*side)).unwrap_or(1);
        Self { grid: (across, ranks / across), at: (rank % across, rank / across) }
    }

    /// Everything that this rank protects at a time, array by array. The flag tells whether the
    /// program writes the array at every step.
    pub(super) fn for_each_array(&self, time: f64, mut each: impl FnMut(&[f64], bool)) {
        let mut values = vec![0.0; LEVELS * LEVEL_POINTS];
        for field in &FIELDS {
            for time in [time - STEP, time] {
                self.fill(field, time, &mut values);
                each(&values, true);
            }
        }
        each(&tables(), false);
        each(&vec![0.0; SCRATCH_POINTS], false);
        let ground: Vec<f64> = (0..LEVEL_POINTS).map(|point| self.ground(point)).collect();
        each(&ground, false);
    }

    fn fill(&self, field: &Field, time: f64, values: &mut [f64]) {
        let (centre_x, centre_y) = (0.2 + 0.6 * time, 0.4 + 0.25 * time);
        for (level, values) in values.chunks_exact_mut(LEVEL_POINTS).enumerate() {
            let height = level as f64 / LEVELS as f64;
            let base = (field.base)(height);
            values.fill(base);
            if height >= field.depth {
                continue;
            }
            for (row, values) in values.chunks_exact_mut(SIDE).enumerate() {
                let y = (self.place(self.at.1, row, self.grid.1) - centre_y) / RADIUS;
                if y.abs() >= 1.0 {
                    continue;
                }
                for (column, value) in values.iter_mut().enumerate() {
                    let x = (self.place(self.at.0, column, self.grid.0) - centre_x) / RADIUS;
                    let inside = 1.0 - x * x - y * y;
                    if inside > 0.0 {
                        *value = base + inside * inside * (field.storm)(x, y, height);
                    }
                }
            }
        }
    }

    fn place(&self, at: usize, point: usize, ranks: usize) -> f64 {
        (at as f64 + (point as f64 + 0.5) / SIDE as f64) / ranks as f64
    }

    /// Height of the ground: different everywhere.
    fn ground(&self, point: usize) -> f64 {
        let x = self.place(self.at.0, point % SIDE, self.grid.0);
        let y = self.place(self.at.1, point / SIDE, self.grid.1);
        40.0 + 30.0 * (7.0 * x).sin() * (5.0 * y).cos() + x
    }
}

/// Coefficients that the program looks up: the same on every rank.
fn tables() -> Vec<f64> {
    (0..TABLE_POINTS).map(|at| (at as f64 * 1e-5).exp().sin()).collect()
}

#[cfg(test)]
mod tests;
