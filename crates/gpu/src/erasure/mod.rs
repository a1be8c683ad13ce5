//! Reed-Solomon codes over GF(2^8): parity of shards, and lost shards back.
//!
//! Data: `k` data shards -> [`Code::parity_matrix`] times them -> `m` parity shards; any `k` of
//! the `k + m` -> [`Code::rebuild_matrix`] times them -> those that are lost. The products run in
//! [`multiply`] on the CPU, the reference, and in [`DeviceErasure`] on the device.
//!
//! Field: polynomial 0x11d. Matrix: Cauchy, `1 / ((k + r) + c)` in row `r` and column `c`, so
//! every square part of it can be inverted and any `m` losses are survived.
//!
//! Why the device takes any matrix: encoding, rebuilding and the partial sums of a star all are
//! one product.

mod device;
mod field;

pub use device::DeviceErasure;
#[cfg(test)]
pub(crate) use device::KERNELS;
pub use field::{inverse, multiply as multiply_bytes};

use crate::error::{Error, Result};

/// Most data shards and most parity shards of a code.
pub const SHARDS_MAX: usize = 128;

/// Rows times columns of field elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    cells: Vec<u8>,
}

impl Matrix {
    /// A matrix of the given cells.
    pub fn new(rows: usize, columns: usize, cell: impl Fn(usize, usize) -> u8) -> Self {
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        Matrix { rows, columns, cells: cells.map(|(row, column)| cell(row, column)).collect() }
    }

    /// Number of rows: shards that come out.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: shards that go in.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Row by row.
    pub fn cells(&self) -> &[u8] {
        &self.cells
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[u8] {
        &self.cells[row * self.columns..][..self.columns]
    }

    /// The matrix that undoes this square one; `None` where there is none.
    fn inverted(&self) -> Option<Matrix> {
        assert_eq!(self.rows, self.columns, "a square matrix");
        let n = self.rows;
        // Gauss and Jordan, with the identity beside.
        let mut rows: Vec<Vec<u8>> = (0..n)
            .map(|row| {
                let unit = (0..n).map(|column| u8::from(row == column));
                self.row(row).iter().copied().chain(unit).collect()
            })
            .collect();
        for at in 0..n {
            let pivot = (at..n).find(|&row| rows[row][at] != 0)?;
            rows.swap(at, pivot);
            let scale = inverse(rows[at][at]);
            rows[at].iter_mut().for_each(|cell| *cell = field::multiply(*cell, scale));
            let unit = rows[at].clone();
            for (row, cells) in rows.iter_mut().enumerate() {
                let factor = cells[at];
                if row != at && factor != 0 {
                    field::add_product(cells, &unit, factor);
                }
            }
        }
        Some(Matrix::new(n, n, |row, column| rows[row][n + column]))
    }
}

/// A code with `k` data and `m` parity shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    k: usize,
    m: usize,
}

impl Code {
    /// `k` and `m` from 1 to [`SHARDS_MAX`].
    pub fn new(k: usize, m: usize) -> Result<Self> {
        if (1..=SHARDS_MAX).contains(&k) && (1..=SHARDS_MAX).contains(&m) {
            return Ok(Code { k, m });
        }
        Err(Error::invalid(format!("{k} data and {m} parity shards: 1 to {SHARDS_MAX} each")))
    }

    /// Data shards.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Parity shards.
    pub fn m(&self) -> usize {
        self.m
    }

    /// Data to parity.
    pub fn parity_matrix(&self) -> Matrix {
        Matrix::new(self.m, self.k, |row, column| inverse(((self.k + row) ^ column) as u8))
    }

    /// The `k` shards `present` (data 0 to k-1, parity from k on) to the shards `lost`.
    pub fn rebuild_matrix(&self, present: &[usize], lost: &[usize]) -> Result<Matrix> {
        let known = |shard: &usize| *shard < self.k + self.m;
        let mut distinct = present.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() != self.k || present.len() != self.k {
            return Err(Error::invalid(format!(
                "{} different shards of {}",
                distinct.len(),
                self.k
            )));
        }
        if !present.iter().all(known) || !lost.iter().all(known) {
            return Err(Error::invalid(format!("shards are 0 to {}", self.k + self.m - 1)));
        }
        let all = self.generator();
        let kept = Matrix::new(self.k, self.k, |row, column| all.row(present[row])[column]);
        let to_data = kept.inverted().expect("any k rows of a Cauchy code can be inverted");
        Ok(Matrix::new(lost.len(), self.k, |row, column| {
            let wanted = all.row(lost[row]);
            (0..self.k)
                .map(|i| field::multiply(wanted[i], to_data.row(i)[column]))
                .fold(0, |sum, product| sum ^ product)
        }))
    }

    /// Data to all shards: the identity above the parity matrix.
    fn generator(&self) -> Matrix {
        let parity = self.parity_matrix();
        Matrix::new(self.k + self.m, self.k, |row, column| match row < self.k {
            true => u8::from(row == column),
            false => parity.row(row - self.k)[column],
        })
    }
}

/// The matrix times the shards, on the CPU. Panics unless there are as many shards as columns,
/// all of one length.
pub fn multiply(matrix: &Matrix, shards: &[&[u8]]) -> Vec<Vec<u8>> {
    assert_eq!(shards.len(), matrix.columns(), "a shard per column");
    let bytes = shards.first().map_or(0, |shard| shard.len());
    assert!(shards.iter().all(|shard| shard.len() == bytes), "shards of one length");
    (0..matrix.rows())
        .map(|row| {
            let mut sum = vec![0; bytes];
            for (shard, factor) in shards.iter().zip(matrix.row(row)) {
                field::add_product(&mut sum, shard, *factor);
            }
            sum
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(count: usize, bytes: usize) -> Vec<Vec<u8>> {
        (0..count)
            .map(|shard| {
                (0..bytes).map(|i| (((i * 31 + shard * 97) * 2_654_435) >> 7) as u8).collect()
            })
            .collect()
    }

    fn refs(shards: &[Vec<u8>]) -> Vec<&[u8]> {
        shards.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn every_loss_of_a_small_code_is_survived() {
        let code = Code::new(4, 3).unwrap();
        let mut all = shards(4, 100);
        all.extend(multiply(&code.parity_matrix(), &refs(&all)));
        for gone in 0..1_u32 << 7 {
            if gone.count_ones() != 3 {
                continue;
            }
            let (lost, present): (Vec<usize>, Vec<usize>) =
                (0..7).partition(|shard| gone >> shard & 1 == 1);
            let kept: Vec<&[u8]> = present.iter().map(|&shard| all[shard].as_slice()).collect();
            let matrix = code.rebuild_matrix(&present, &lost).unwrap();
            for (shard, rebuilt) in lost.iter().zip(multiply(&matrix, &kept)) {
                assert_eq!(rebuilt, all[*shard], "shard {shard} of losses {gone:07b}");
            }
        }
    }

    #[test]
    fn the_largest_code_rebuilds_all_its_data_from_parity() {
        let code = Code::new(128, 128).unwrap();
        let data = shards(128, 33);
        let parity = multiply(&code.parity_matrix(), &refs(&data));
        let present: Vec<usize> = (128..256).collect();
        let lost: Vec<usize> = (0..128).collect();
        let matrix = code.rebuild_matrix(&present, &lost).unwrap();
        assert_eq!(multiply(&matrix, &refs(&parity)), data);
    }

    #[test]
    fn wrong_shards_are_refused() {
        let code = Code::new(3, 2).unwrap();
        assert!(Code::new(0, 2).is_err());
        assert!(Code::new(3, 129).is_err());
        assert!(code.rebuild_matrix(&[0, 1], &[2]).is_err());
        assert!(code.rebuild_matrix(&[0, 1, 1], &[2]).is_err());
        assert!(code.rebuild_matrix(&[0, 1, 5], &[2]).is_err());
    }
}
