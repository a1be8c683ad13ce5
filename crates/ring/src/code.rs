//! Systematic codes: `k` members and `m` shards, of which any `k` give back all the others.
//!
//! Data: `k` members -> [`Code::parity`] times them -> `m` shards; any `k` pieces of both ->
//! [`Code::rebuild`] times them -> those that are wanted.
//!
//! Pieces are numbered: members 0 to k-1, shards from k on. A Cauchy matrix has
//! `1 / ((k + r) + c)` in row `r` and column `c`; every square part of it can be inverted. The
//! rows of a Vandermonde matrix lose that when they are put below an identity, so there all rows
//! are multiplied by the inverse of the first `k`: the first become the identity, and any `k`
//! remain independent.

use crate::error::{Error, Result};
use crate::field::{inverse, multiply};
use crate::matrix::Matrix;

/// Most members and most shards of a code: both fit in the field together.
pub const PIECES_MAX: usize = 128;

/// How the shards' matrix is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Family {
    /// A Cauchy matrix below the identity.
    #[default]
    Cauchy,
    /// A Vandermonde matrix, made systematic.
    Vandermonde,
}

/// A code with `k` members and `m` shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    parity: Matrix,
}

impl Code {
    /// `k` and `m` from 1 to [`PIECES_MAX`].
    pub fn new(family: Family, k: usize, m: usize) -> Result<Self> {
        if !(1..=PIECES_MAX).contains(&k) || !(1..=PIECES_MAX).contains(&m) {
            return Err(Error::invalid(format!(
                "a code of {k} members and {m} shards: 1 to {PIECES_MAX} each"
            )));
        }
        let parity = match family {
            Family::Cauchy => Matrix::new(m, k, |row, column| inverse(((k + row) ^ column) as u8)),
            Family::Vandermonde => vandermonde(k, m),
        };
        Ok(Self { parity })
    }

    /// Members.
    pub fn k(&self) -> usize {
        self.parity.columns()
    }

    /// Shards.
    pub fn m(&self) -> usize {
        self.parity.rows()
    }

    /// Members to shards.
    pub fn parity(&self) -> &Matrix {
        &self.parity
    }

    /// The `k` pieces `present` to the pieces `wanted`.
    pub fn rebuild(&self, present: &[usize], wanted: &[usize]) -> Result<Matrix> {
        let (k, all) = (self.k(), self.k() + self.m());
        let mut distinct = present.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() != k || present.len() != k {
            let count = distinct.len();
            return Err(Error::invalid(format!("{count} different pieces, {k} are needed")));
        }
        if present.iter().chain(wanted).any(|&piece| piece >= all) {
            return Err(Error::invalid(format!("pieces are 0 to {}", all - 1)));
        }
        let kept = Matrix::new(k, k, |row, column| self.generator(present[row], column));
        let to_members = kept.inverted().expect("any k pieces of a code are independent");
        let rows = Matrix::new(wanted.len(), k, |row, column| self.generator(wanted[row], column));
        Ok(rows.times(&to_members))
    }

    /// The identity above the parity matrix.
    fn generator(&self, piece: usize, column: usize) -> u8 {
        match piece.checked_sub(self.k()) {
            None => u8::from(piece == column),
            Some(row) => self.parity.cell(row, column),
        }
    }
}

fn vandermonde(k: usize, m: usize) -> Matrix {
    let power = |base: u8, exponent: usize| (0..exponent).fold(1, |all, _| multiply(all, base));
    let top = Matrix::new(k, k, |row, column| power(row as u8, column));
    let below = Matrix::new(m, k, |row, column| power((k + row) as u8, column));
    below.times(&top.inverted().expect("different rows of a Vandermonde matrix are independent"))
}

#[cfg(test)]
mod tests;
