//! Contents of the memory that is saved, a function of rank and step.

use std::fmt;
use std::str::FromStr;

/// What a rank's memory looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// No page is like another, and no codec makes it smaller.
    Unique,
    /// The same on all ranks; within a rank as above.
    Same,
    /// A smooth field of numbers, each rank with its part; then a tenth of its pages changes.
    Field,
}

/// Numbers in a page.
const NUMBERS: usize = 512;
/// Rows by which the parts of two ranks lie apart.
const ROWS: usize = 1 << 20;
/// Every so many pages one changes.
const CHANGED: usize = 10;

impl Pattern {
    pub(crate) const ALL: [Pattern; 3] = [Pattern::Unique, Pattern::Same, Pattern::Field];

    fn name(self) -> &'static str {
        match self {
            Pattern::Unique => "unique",
            Pattern::Same => "same",
            Pattern::Field => "field",
        }
    }

    /// Name of the checkpoint after so many others.
    pub(super) fn name_of(self, step: usize) -> &'static str {
        match (self, step) {
            (Pattern::Field, 1..) => "field, 10 % changed",
            _ => self.name(),
        }
    }

    /// Checkpoints that are taken of it.
    pub(super) fn steps(self) -> usize {
        if self == Pattern::Field { 2 } else { 1 }
    }

    /// Brings memory from nothing to its first step.
    pub(super) fn fill(self, memory: &mut [f64], rank: usize) {
        match self {
            Pattern::Unique => noise(memory, rank as u64 + 1),
            Pattern::Same => noise(memory, 0),
            Pattern::Field => field(memory, rank),
        }
    }

    /// Brings memory from one step to the next.
    pub(super) fn change(self, memory: &mut [f64], step: usize) {
        for page in memory.chunks_mut(NUMBERS).skip(step % CHANGED).step_by(CHANGED) {
            page.iter_mut().for_each(|number| *number *= 1.0 + 1e-6);
        }
    }
}

fn noise(memory: &mut [f64], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for number in memory {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // Any bits, but never those of a number that is not one: those do not compare as equal.
        *number = f64::from_bits((mixed ^ (mixed >> 31)) & !(1 << 62));
    }
}

/// Waves over the plane, and a slope that no two ranks share.
fn field(memory: &mut [f64], rank: usize) {
    let across: Vec<f64> = (0..NUMBERS).map(|x| (x as f64 * 0.0123).sin()).collect();
    for (y, row) in memory.chunks_mut(NUMBERS).enumerate() {
        let down = (y as f64 * 0.00217 + rank as f64).cos();
        let slope = (rank * ROWS + y) as f64 * 1e-4;
        for (number, across) in row.iter_mut().zip(&across) {
            *number = 300.0 + 20.0 * across * down + slope;
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|pattern| pattern.name() == text);
        found.ok_or_else(|| format!("{text:?} is not unique, same or field"))
    }
}

#[cfg(test)]
mod tests;
