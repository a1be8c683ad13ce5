//! The published tables and figures, computed again from their inputs.
//!
//! Data: a name from [`names`] -> [`reproduce`] -> [`Reproduction`]: rows (paper, ours,
//! difference), claims that hold or do not, the assumptions used, and charts.
//!
//! Papers: NDP (Agrawal 2017, multilevel checkpoints with near-data processing), PCCR (Liu,
//! pipelined compression), DDC (Bautista Gomez 2010, diskless checkpoints on a ring).
//!
//! Invariants:
//! - What a paper reports as a result stands only in the comparison column. The one exception is
//!   named among its assumptions: PCCR figure 12 starts from two printed savings, because the
//!   sizes behind them are not given.

mod ddc;
mod exascale;
mod fit;
mod ndp_figures;
mod ndp_sweeps;
mod ndp_tables;
mod pace;
mod pccr;
mod study;
mod table3;

pub use exascale::{Accounting, Assumptions};
pub use fit::{Fit, fits};

use serde::Serialize;

use crate::plot::Chart;
use standfast_model::{ModelError, Result};

/// One number of a paper beside ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What it is.
    pub label: String,
    /// Unit of both values.
    pub unit: &'static str,
    /// The paper's value.
    pub paper: f64,
    /// Ours.
    pub ours: f64,
    /// Largest difference that counts as agreement, in the same unit.
    pub within: f64,
}

impl Row {
    /// Ours minus the paper's.
    pub fn difference(&self) -> f64 {
        self.ours - self.paper
    }

    /// Whether the difference is small enough.
    pub fn agrees(&self) -> bool {
        self.difference().abs() <= self.within + 1e-9
    }
}

/// A statement of a paper that can be checked but is not a number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// The statement, in our words.
    pub text: String,
    /// Whether our calculation bears it out.
    pub holds: bool,
}

/// A table or figure, computed again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduction {
    /// Its name here.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Under which the numbers below were computed.
    pub assumptions: Vec<String>,
    /// Numbers.
    pub rows: Vec<Row>,
    /// Statements.
    pub claims: Vec<Claim>,
    /// Plots.
    pub charts: Vec<Chart>,
}

impl Reproduction {
    /// Rows that agree.
    pub fn agreeing(&self) -> usize {
        self.rows.iter().filter(|row| row.agrees()).count()
    }
}

type Make = fn() -> Result<Reproduction>;

const ALL: [(&str, Make); 15] = [
    ("ndp-headline", fit::headline),
    ("ndp-table1", ndp_tables::table1),
    ("ndp-table3", table3::table3),
    ("ndp-table4", ndp_tables::table4),
    ("ndp-figure1", ndp_figures::figure1),
    ("ndp-figure4", ndp_figures::figure4),
    ("ndp-figure5", ndp_figures::figure5),
    ("ndp-figure6", ndp_figures::figure6),
    ("ndp-figure7", ndp_figures::figure7),
    ("ndp-figure8", ndp_sweeps::figure8),
    ("ndp-figure9", ndp_sweeps::figure9),
    ("pccr-figure4", pccr::figure4),
    ("pccr-figure12", pccr::figure12),
    ("ddc-table1", ddc::table1),
    ("ddc-table2", ddc::table2),
];

/// Every name [`reproduce`] knows.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

/// Computes one table or figure again.
pub fn reproduce(name: &str) -> Result<Reproduction> {
    let (_, make) =
        ALL.iter().find(|(known, _)| *known == name).ok_or_else(|| ModelError::Unknown {
            what: "table or figure",
            name: name.to_owned(),
            known: names().join(", "),
        })?;
    make()
}

fn row(label: impl Into<String>, unit: &'static str, paper: f64, ours: f64, within: f64) -> Row {
    Row { label: label.into(), unit, paper, ours, within }
}

fn claim(text: &str, holds: bool) -> Claim {
    Claim { text: text.to_owned(), holds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_agrees_and_every_claim_holds() {
        for name in names() {
            let again = reproduce(name).unwrap();
            assert_eq!(again.name, name);
            assert!(!again.rows.is_empty() || !again.claims.is_empty());
            for row in &again.rows {
                assert!(row.agrees(), "{name}: {row:?}");
            }
            for claim in &again.claims {
                assert!(claim.holds, "{name}: {}", claim.text);
            }
        }
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        let text = reproduce("ndp-table9").unwrap_err().to_string();
        assert!(text.contains("ndp-table9") && text.contains("ndp-table3"));
    }
}
