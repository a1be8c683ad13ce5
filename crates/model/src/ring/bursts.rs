//! How many nodes one incident takes down, and whether the ring survives it.
//!
//! Data: chances of 1, 2, ... nodes -> [`Bursts`] -> chance to survive on given [`Groups`].
//!
//! Invariants:
//! - Chances add up to one.

use super::Groups;
use crate::bounds::share;
use crate::error::{ModelError, Result};

/// How many nodes one incident takes down.
#[derive(Debug, Clone, PartialEq)]
pub struct Bursts {
    chances: Vec<f64>,
}

impl Bursts {
    /// `chances[i]` is the chance that an incident hits `i + 1` nodes; they add up to one.
    pub fn new(chances: Vec<f64>) -> Result<Self> {
        for &chance in &chances {
            share("burst chance", chance)?;
        }
        let total: f64 = chances.iter().sum();
        if (total - 1.0).abs() > 1e-9 {
            return Err(ModelError::Field {
                field: "burst chances".to_owned(),
                rule: "1 when summed",
                value: total,
            });
        }
        Ok(Self { chances })
    }

    /// Each further node joins with the same chance; cut where less than a millionth is left.
    pub fn geometric(mean_nodes: f64) -> Result<Self> {
        if !(1.0..=64.0).contains(&mean_nodes) {
            return Err(ModelError::Field {
                field: "nodes_per_incident".to_owned(),
                rule: "between 1 and 64",
                value: mean_nodes,
            });
        }
        let more = 1.0 - 1.0 / mean_nodes;
        let mut chances = Vec::new();
        let mut left = 1.0f64;
        while left > 1e-6 && chances.len() < 64 {
            chances.push(left * (1.0 - more));
            left *= more;
        }
        let last = chances.len() - 1;
        chances[last] += left;
        Ok(Self { chances })
    }

    /// Chances of 1, 2, ... nodes.
    pub fn chances(&self) -> &[f64] {
        &self.chances
    }

    /// Chance that the ring survives an incident whose nodes are scattered over the job.
    pub fn survival(&self, groups: &Groups) -> f64 {
        let survivals = groups.survivals(self.chances.len() as u64);
        (self.chances.iter().zip(&survivals[1..])).map(|(chance, survival)| chance * survival).sum()
    }
}

#[cfg(test)]
mod tests;
