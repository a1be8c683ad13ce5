//! Reproductions and bars as text for people and JSON lines for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};
use standfast_model::render::{json_line, table};

use crate::bars::{Bar, Better};
use crate::paper::Reproduction;

/// A reproduction as text.
pub fn reproduction(item: &Reproduction) -> String {
    let mut text = format!("{} ({})\n", item.title, item.name);
    if !item.rows.is_empty() {
        let rows: Vec<Vec<String>> = item
            .rows
            .iter()
            .map(|row| {
                vec![
                    row.label.clone(),
                    number(row.paper),
                    number(row.ours),
                    format!("{:+.2}", row.difference()),
                    row.unit.to_owned(),
                    if row.agrees() { "agrees" } else { "DIFFERS" }.to_owned(),
                ]
            })
            .collect();
        text += &table(&["", "paper", "ours", "difference", "unit", ""], &rows);
    }
    for claim in &item.claims {
        let word = if claim.holds { "holds" } else { "DOES NOT HOLD" };
        let _ = writeln!(text, "{word}: {}", claim.text);
    }
    for line in &item.assumptions {
        let _ = writeln!(text, "assumed: {line}");
    }
    text
}

/// Bars as a table.
pub fn bars(bars: &[Bar]) -> String {
    let rows: Vec<Vec<String>> = bars
        .iter()
        .map(|bar| {
            let sign = match bar.better {
                Better::Higher => ">=",
                Better::Lower => "<=",
            };
            vec![
                bar.name.clone(),
                number(bar.value),
                format!("{sign} {}", number(bar.goal)),
                bar.unit.to_owned(),
                if bar.met { "met" } else { "MISSED" }.to_owned(),
            ]
        })
        .collect();
    table(&["bar", "value", "goal", "unit", ""], &rows)
}

/// A reproduction as a JSON line, each row with its difference.
pub fn reproduction_line(item: &Reproduction) -> String {
    let mut value = serde_json::to_value(item).unwrap_or(Value::Null);
    for (row, own) in value["rows"].as_array_mut().into_iter().flatten().zip(&item.rows) {
        row["difference"] = json!(own.difference());
        row["agrees"] = json!(own.agrees());
    }
    json_line("reproduction", &value)
}

/// Three significant decimals at most, none for whole numbers.
pub(crate) fn number(value: f64) -> String {
    if value == value.round() && value.abs() < 1e9 {
        return format!("{value:.0}");
    }
    let decimals = if value.abs() < 10.0 { 3 } else { 2 };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_lines_have_a_type() {
        let item = crate::paper::reproduce("ddc-table1").unwrap();
        let line: Value = serde_json::from_str(&reproduction_line(&item)).unwrap();
        assert_eq!(line["type"], "reproduction");
        assert_eq!(
            (&line["rows"][0]["difference"], &line["rows"][0]["agrees"]),
            (&json!(0.0), &json!(true))
        );
        assert_eq!(line["rows"][0]["ours"], 145.0);
        assert!(reproduction(&item).contains("145"));
    }
}
