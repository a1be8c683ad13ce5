//! Counting the sets of failed nodes that a ring of groups survives.
//!
//! Data: group size, shards, degree -> [`Transfer`] -> power -> trace.
//!
//! Why a transfer matrix: neighbouring groups share nodes, so their fates depend on each other.
//! The trace of the matrix's power counts exactly the sets of `f` failed nodes that survive, for
//! a hundred thousand nodes as fast as for ten.
//!
//! Invariants:
//! - Entries are polynomials cut at `degree`; all counts are exact up to rounding.

/// Counts of failure sets: rows are the checkpoints lost in a group, columns those lost in the
/// next one, entries polynomials whose power is the number of failed nodes.
#[derive(Clone)]
pub(super) struct Transfer {
    side: usize,
    degree: usize,
    cells: Vec<f64>,
}

impl Transfer {
    fn zero(side: usize, degree: usize) -> Self {
        let cells = vec![0.0; side * side * (degree + 1)];
        Self { side, degree, cells }
    }

    fn one(side: usize, degree: usize) -> Self {
        let mut matrix = Self::zero(side, degree);
        for row in 0..side {
            matrix.cell(row, row)[0] = 1.0;
        }
        matrix
    }

    fn cell(&mut self, row: usize, column: usize) -> &mut [f64] {
        let start = (row * self.side + column) * (self.degree + 1);
        &mut self.cells[start..=start + self.degree]
    }

    fn get(&self, row: usize, column: usize) -> &[f64] {
        let start = (row * self.side + column) * (self.degree + 1);
        &self.cells[start..=start + self.degree]
    }

    /// Entering a group of `size` nodes, `keepers` of which keep the previous group's shards.
    pub(super) fn of_group(size: u64, keepers: u64, degree: usize) -> Self {
        let side = (keepers as usize).min(degree) + 1;
        let mut matrix = Self::zero(side, degree);
        for before in 0..side as u64 {
            for shards in 0..=keepers {
                // A group that lost nothing does not need its shards.
                if before > 0 && before + shards > keepers {
                    continue;
                }
                for others in 0..=(size - keepers) {
                    let lost = shards + others;
                    if lost as usize >= side {
                        break;
                    }
                    let ways = choose(keepers, shards) * choose(size - keepers, others);
                    matrix.cell(before as usize, lost as usize)[lost as usize] += ways;
                }
            }
        }
        matrix
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        let mut product = Self::zero(self.side, self.degree);
        for row in 0..self.side {
            for column in 0..self.side {
                for middle in 0..self.side {
                    let (a, b) = (self.get(row, middle), other.get(middle, column));
                    let cell = product.cell(row, column);
                    for (i, &x) in a.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                        for (j, &y) in b[..=self.degree - i].iter().enumerate() {
                            cell[i + j] += x * y;
                        }
                    }
                }
            }
        }
        product
    }

    pub(super) fn power(&self, mut exponent: u64) -> Self {
        let mut result = Self::one(self.side, self.degree);
        let mut square = self.clone();
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(&square);
            }
            exponent >>= 1;
            if exponent > 0 {
                square = square.times(&square);
            }
        }
        result
    }

    pub(super) fn trace(&self, power: usize) -> f64 {
        (0..self.side).map(|row| self.get(row, row)[power]).sum()
    }
}

/// Binomial coefficient.
pub fn choose(n: u64, k: u64) -> f64 {
    (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}
