//! Results as text for people and JSON lines for programs.
//!
//! Data: [`Plan`], tables, values -> `String`.
//!
//! Why here: commands stay thin, and every caller prints the same.
//!
//! Invariants:
//! - Every JSON line is an object with a `type`.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::plan::Plan;

/// A table with aligned columns; the first is left-aligned, the others right-aligned.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .chain([head[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        for (column, cell) in cells.enumerate() {
            let space = widths[column];
            let _ = if column == 0 {
                write!(text, "{cell:<space$}")
            } else {
                write!(text, "  {cell:>space$}")
            };
        }
        let kept = text.trim_end_matches(' ').len();
        text.truncate(kept);
        text.push('\n');
    };
    line(&mut head.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
    text
}

/// A plan as text.
pub fn plan(plan: &Plan) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut rows: Vec<Vec<String>> = plan
        .levels
        .iter()
        .map(|level| {
            vec![
                level.name.to_owned(),
                duration(level.interval_s),
                level.every.to_string(),
                // What takes no time is done by the agent.
                if level.commit_s > 0.0 { duration(level.commit_s) } else { "no".to_owned() },
                duration(level.restore_s),
                percent(level.failure_share),
                bytes(level.stored_bytes),
            ]
        })
        .collect();
    let mut text = table(
        &["level", "every", "one in", "blocks", "restore", "failures", "bytes per node"],
        &rows,
    );
    let _ = writeln!(text, "\nefficiency {}", percent(plan.efficiency));
    for (name, share) in plan.parts().into_iter().filter(|(_, share)| *share >= 0.0005) {
        let _ = writeln!(text, "  {name:<22} {:>7}", percent(share));
    }
    if plan.group_k > 0 {
        let _ = writeln!(
            text,
            "groups of {} nodes, shards per group {}: survive {:.4} of node incidents",
            plan.group_k, plan.group_m, plan.ring_survival
        );
    }
    let _ = writeln!(
        text,
        "local : global {} : 1, {} in global storage for the whole job",
        plan.local_per_global(),
        bytes(plan.global_bytes)
    );
    let _ = writeln!(text, "codec {}, pool {} per node", plan.codec, bytes(plan.pool_bytes));
    rows = plan
        .sensitivity
        .iter()
        .map(|case| {
            vec![
                case.change.clone(),
                percent(case.efficiency_kept),
                percent(case.efficiency_replanned),
                duration(case.interval_s),
            ]
        })
        .collect();
    text.push('\n');
    text += &table(&["if", "this plan gives", "a new plan gives", "its interval"], &rows);
    for note in &plan.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// One JSON line: the object's fields and its `type`.
pub fn json_line(kind: &str, object: &impl Serialize) -> String {
    let mut value = serde_json::to_value(object).unwrap_or(Value::Null);
    match value.as_object_mut() {
        Some(fields) => {
            fields.insert("type".to_owned(), json!(kind));
        }
        None => value = json!({"type": kind, "value": value}),
    }
    value.to_string()
}

/// A time in the unit people would use.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

/// A size in the binary unit people would use.
pub fn bytes(count: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = count;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests;
