//! Rows in which every pair of values of any two settings occurs.

use std::collections::BTreeSet;

/// A setting and the values to try.
pub(crate) type Column = (&'static str, Vec<String>);

/// Indexes of values, by column.
pub(crate) type Row = Vec<Option<usize>>;

/// Value `1` of column `0`, and value `3` of column `2`.
type Pair = (usize, usize, usize, usize);

/// Rows that hold every pair. `is_refused` tells whether the values chosen so far make no sense: such
/// a pair has a row of its own, and no other row holds it.
pub(crate) fn rows(columns: &[Column], is_refused: impl Fn(&Row) -> bool) -> Vec<Row> {
    let mut missing = pairs(columns);
    let mut rows = Vec::new();
    while let Some((a, first, b, second)) = missing.pop_first() {
        let mut row: Row = vec![None; columns.len()];
        (row[a], row[b]) = (Some(first), Some(second));
        let hopeless = is_refused(&row);
        for column in 0..columns.len() {
            if row[column].is_none() {
                row[column] = Some(best(columns, &row, column, &missing, &is_refused));
            }
        }
        if !hopeless {
            missing.retain(|(a, first, b, second)| {
                row[*a] != Some(*first) || row[*b] != Some(*second)
            });
        }
        rows.push(row);
    }
    rows
}

fn pairs(columns: &[Column]) -> BTreeSet<Pair> {
    let values = |column: usize| 0..columns[column].1.len();
    let later = |a: usize| (a + 1..columns.len()).map(move |b| (a, b));
    let both = (0..columns.len()).flat_map(later);
    both.flat_map(|(a, b)| {
        values(a).flat_map(move |first| values(b).map(move |second| (a, first, b, second)))
    })
    .collect()
}

/// The value that adds most pairs which are missing, and makes sense if any does.
fn best(
    columns: &[Column],
    row: &Row,
    column: usize,
    missing: &BTreeSet<Pair>,
    is_refused: &impl Fn(&Row) -> bool,
) -> usize {
    let worth = |value: usize| {
        let mut with = row.clone();
        with[column] = Some(value);
        let added = (0..columns.len()).filter(|other| *other != column).filter(|other| {
            let Some(theirs) = row[*other] else { return false };
            let pair = match *other < column {
                true => (*other, theirs, column, value),
                false => (column, value, *other, theirs),
            };
            missing.contains(&pair)
        });
        (!is_refused(&with), added.count())
    };
    let values = 0..columns[column].1.len();
    values.max_by_key(|value| worth(*value)).expect("a column has values")
}

#[test]
fn every_pair_occurs() {
    let column = |name, values: usize| (name, (0..values).map(|at| at.to_string()).collect());
    let columns = [column("a", 3), column("b", 4), column("c", 2), column("d", 3)];
    let refused = |row: &Row| row[0] == Some(1) && row[2] == Some(1);
    let rows = rows(&columns, refused);
    assert!((12..=20).contains(&rows.len()), "{}", rows.len());
    for (a, first, b, second) in pairs(&columns) {
        let holds = |row: &&Row| row[a] == Some(first) && row[b] == Some(second);
        let sensible = |row: &&Row| !refused(row) || (a, first, b, second) == (0, 1, 2, 1);
        assert!(rows.iter().filter(holds).any(|row| sensible(&row)));
    }
}
