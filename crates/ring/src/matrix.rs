//! Matrices over GF(2^8).

use crate::field::{inverse, multiply, products};

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
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        Self { rows, columns, cells: places.map(|(row, column)| cell(row, column)).collect() }
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

    /// One cell.
    pub fn cell(&self, row: usize, column: usize) -> u8 {
        self.row(row)[column]
    }

    /// The product of two matrices.
    ///
    /// # Panics
    /// Unless the first has as many columns as the second has rows.
    pub fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows, "columns meet rows");
        Self::new(self.rows, other.columns, |row, column| {
            let parts = self.row(row).iter().enumerate();
            parts.fold(0, |sum, (i, &cell)| sum ^ multiply(cell, other.cell(i, column)))
        })
    }

    /// The matrix that undoes this one; `None` where there is none. By Gauss and Jordan.
    ///
    /// # Panics
    /// Unless it is square.
    pub fn inverted(&self) -> Option<Self> {
        assert_eq!(self.rows, self.columns, "a square matrix");
        let n = self.rows;
        let mut rows: Vec<Vec<u8>> = (0..n)
            .map(|row| {
                let unit = (0..n).map(|column| u8::from(row == column));
                self.row(row).iter().copied().chain(unit).collect()
            })
            .collect();
        for at in 0..n {
            let pivot = (at..n).find(|&row| rows[row][at] != 0)?;
            rows.swap(at, pivot);
            let scale = products(inverse(rows[at][at]));
            rows[at].iter_mut().for_each(|cell| *cell = scale[usize::from(*cell)]);
            let unit = rows[at].clone();
            for (row, cells) in rows.iter_mut().enumerate() {
                if row != at && cells[at] != 0 {
                    let factor = products(cells[at]);
                    let pairs = cells.iter_mut().zip(&unit);
                    pairs.for_each(|(cell, &unit)| *cell ^= factor[usize::from(unit)]);
                }
            }
        }
        Some(Self::new(n, n, |row, column| rows[row][n + column]))
    }
}

#[cfg(test)]
mod tests;
