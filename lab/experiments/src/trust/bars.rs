//! The bars of trust: letter K.
//!
//! A group of rows is a function of type [`Rows`] in a file of its own below `trust`, and one line of
//! [`GROUPS`]. It measures below the directory it is given, hands each row to the sheet as soon as it is
//! known ([`lower`]), and takes some seconds where `quick` is asked for. A group that fails
//! is one line "not measured"; the other groups are measured all the same.

use std::path::Path;

use standfast_measure::{Bar, Better};

use crate::bars::Sheet;

const LETTER: &str = "K";

type Rows = fn(quick: bool, dir: &Path, sheet: &mut Sheet) -> anyhow::Result<()>;

/// Every group of rows: what a line "not measured" calls it, and what measures it.
const GROUPS: &[(&str, Rows)] = &[
    ("descriptors", super::descriptors::bars),
    ("many small checkpoints", super::compaction::bars),
    ("simulated runs", super::simulated::bars),
    ("attacks on stores", |_, _, sheet| super::attacks::bars(LETTER, sheet)),
    ("attacks on agents", |quick, _, sheet| crate::bars::agent::bars(quick, sheet)),
];

/// Measures the bars, handing each over as soon as it is known.
pub(crate) fn bars(quick: bool, dir: &Path, sheet: &mut Sheet) {
    for (name, rows) in GROUPS {
        if let Err(error) = rows(quick, dir, sheet) {
            sheet.unmeasured(LETTER, name, format!("{error:#}"));
        }
    }
}

/// A row whose value is to be at most its goal.
pub(crate) fn lower(name: impl Into<String>, value: f64, goal: f64) -> Bar {
    Bar::new(LETTER, name, value, Better::Lower, goal)
}
