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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FAMILIES: [Family; 2] = [Family::Cauchy, Family::Vandermonde];

    /// Any `k` of the pieces are independent: shown by inverting every choice.
    #[test]
    fn every_loss_of_small_codes_is_survived() {
        for family in FAMILIES {
            for (k, m) in (1..=6).flat_map(|k| (1..=k).map(move |m| (k, m))) {
                let code = Code::new(family, k, m).unwrap();
                let all: Vec<usize> = (0..k + m).collect();
                let generator = Matrix::new(k + m, k, |row, column| code.generator(row, column));
                for kept in 0u32..1 << (k + m) {
                    if kept.count_ones() as usize != k {
                        continue;
                    }
                    let present: Vec<usize> =
                        all.iter().copied().filter(|piece| kept >> piece & 1 == 1).collect();
                    let rebuild = code.rebuild(&present, &all).unwrap();
                    let rows =
                        Matrix::new(k, k, |row, column| code.generator(present[row], column));
                    assert_eq!(rebuild.times(&rows), generator, "{family:?} {k} {m} {kept:b}");
                }
            }
        }
    }

    /// The numbers that shards on disk and on devices are made with; they must never change.
    #[test]
    fn the_cauchy_matrix_is_the_documented_one() {
        let code = Code::new(Family::Cauchy, 4, 2).unwrap();
        let expected = Matrix::new(2, 4, |row, column| inverse(((4 + row) ^ column) as u8));
        assert_eq!(code.parity(), &expected);
        assert_eq!(code.parity().cells(), [71, 167, 122, 186, 167, 71, 186, 122]);
    }

    #[test]
    fn wrong_pieces_are_refused() {
        let code = Code::new(Family::Cauchy, 3, 2).unwrap();
        assert!(Code::new(Family::Cauchy, 0, 2).is_err());
        assert!(Code::new(Family::Vandermonde, 3, 129).is_err());
        assert!(code.rebuild(&[0, 1], &[2]).is_err());
        assert!(code.rebuild(&[0, 1, 1], &[2]).is_err());
        assert!(code.rebuild(&[0, 1, 5], &[2]).is_err());
        assert!(code.rebuild(&[0, 1, 2], &[5]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn losses_of_large_codes_are_survived(
            k in 7usize..=128, share in 0.0f64..1.0, order in any::<u64>(), cauchy: bool,
        ) {
            let m = 1 + (share * (k - 1) as f64) as usize;
            let family = FAMILIES[usize::from(cauchy)];
            let code = Code::new(family, k, m).unwrap();
            let mut pieces: Vec<usize> = (0..k + m).collect();
            let mut state = order;
            for at in (1..pieces.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                pieces.swap(at, (state >> 33) as usize % (at + 1));
            }
            let (present, lost) = pieces.split_at(k);
            let rebuild = code.rebuild(present, lost).unwrap();
            let kept = Matrix::new(k, k, |row, column| code.generator(present[row], column));
            let gone = Matrix::new(m, k, |row, column| code.generator(lost[row], column));
            prop_assert_eq!(rebuild.times(&kept), gone);
        }
    }
}
