//! A heat solver: what the demonstration kills and restarts.
//!
//! A laser goes round on a square plate; heat flows by the five-point stencil, explicit in time.
//! The state is one field of temperatures and the number of the step. The conductivity never
//! changes: smooth in the upper half, uniform in the lower. So every kind of page occurs: zeros
//! where no heat has come yet, duplicates in the uniform half, old pages in what does not change,
//! new ones behind the laser.
//!
//! Invariants:
//! - A step depends on field, conductivity and step number alone, in one fixed order of
//!   operations: the same start gives the same bits.

pub(crate) mod message;
pub(crate) mod worker;

/// Temperature under the laser.
const HOT: f64 = 1000.0;
/// Rounds the laser makes over the whole run.
const ROUNDS: f64 = 1.5;

/// Conductivity of every cell, times time step over cell size squared: stable below 0.25.
pub(crate) fn fill_conductivity(field: &mut [f64], size: usize) {
    for (at, value) in field.iter_mut().enumerate() {
        let (x, y) = ((at % size) as f64 / size as f64, (at / size) as f64 / size as f64);
        *value = if y < 0.5 { 0.12 + 0.1 * (7.0 * x).sin() * (9.0 * y).cos() } else { 0.2 };
    }
}

/// Steps through time, with two rows of memory beside the field.
pub(crate) struct Solver {
    size: usize,
    steps: u64,
    above: Vec<f64>,
    here: Vec<f64>,
}

impl Solver {
    /// A solver for a plate of `size` by `size` cells over so many steps.
    pub(crate) fn new(size: usize, steps: u64) -> Self {
        Self { size, steps, above: vec![0.0; size], here: vec![0.0; size] }
    }

    /// One step: heat flows, then the laser heats its spot. The rim stays cold.
    pub(crate) fn step(&mut self, step: u64, field: &mut [f64], conductivity: &[f64]) {
        let size = self.size;
        self.above.copy_from_slice(&field[..size]);
        for y in 1..size - 1 {
            let (upper, lower) = field.split_at_mut((y + 1) * size);
            let row = &mut upper[y * size..];
            self.here.copy_from_slice(row);
            flow(row, &self.above, &self.here, &lower[..size], &conductivity[y * size..][..size]);
            std::mem::swap(&mut self.above, &mut self.here);
        }
        self.shine(step, field);
    }

    fn shine(&self, step: u64, field: &mut [f64]) {
        let size = self.size as f64;
        let angle = std::f64::consts::TAU * ROUNDS * step as f64 / self.steps as f64;
        let (x, y) = (size * (0.5 + 0.28 * angle.cos()), size * (0.5 + 0.28 * angle.sin()));
        let radius = (size / 48.0).max(1.0);
        for row in (y - radius) as usize..=(y + radius) as usize {
            for column in (x - radius) as usize..=(x + radius) as usize {
                let (dx, dy) = (column as f64 - x, row as f64 - y);
                if dx * dx + dy * dy <= radius * radius {
                    field[row * self.size + column] = HOT;
                }
            }
        }
    }
}

/// The stencil on one row; all rows have the same length.
fn flow(row: &mut [f64], above: &[f64], here: &[f64], below: &[f64], conductivity: &[f64]) {
    let last = row.len() - 1;
    let (left, middle, right) = (&here[..last - 1], &here[1..last], &here[2..]);
    let (above, below, conductivity) = (&above[1..last], &below[1..last], &conductivity[1..last]);
    for (x, value) in row[1..last].iter_mut().enumerate() {
        let around = above[x] + below[x] + left[x] + right[x];
        *value = middle[x] + conductivity[x] * (around - 4.0 * middle[x]);
    }
}

#[cfg(test)]
mod tests;
