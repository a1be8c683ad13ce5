//! The comparison with plain files as one table: a line for each way, a column for each pattern.

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::bars::number;
use super::origin;

/// A line of `compare --json`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Point(Point),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Point {
    pattern: String,
    way: String,
    memory_bytes: u64,
    blocked_by_memcpy: f64,
    durable_by_plain: Option<f64>,
    restart_by_plain: Option<f64>,
    stored_share: f64,
}

pub(super) fn table(results: &str) -> anyhow::Result<String> {
    let lines = results.lines().map(serde_json::from_str).collect::<Result<Vec<Line>, _>>();
    let points: Vec<Point> = lines
        .context("lines of `compare --json`")?
        .into_iter()
        .filter_map(|line| match line {
            Line::Point(point) => Some(point),
            Line::Other => None,
        })
        .collect();
    ensure!(!points.is_empty(), "nothing was compared");
    let patterns = different(points.iter().map(|point| point.pattern.as_str()));
    let ways = different(points.iter().map(|point| point.way.as_str()));
    let mut table = origin::caption(&origin::all(results)?);
    table.push_str(&format!("| way | {} | memory |\n", patterns.join(" | ")));
    table.push_str(&format!("{}|\n", "|---".repeat(patterns.len() + 2)));
    for way in ways {
        let of_way = || points.iter().filter(|point| point.way == way);
        let cells = patterns.iter().map(|pattern| {
            of_way().find(|point| point.pattern == *pattern).map_or(String::new(), cell)
        });
        let memory = of_way().map(|point| point.memory_bytes).max().unwrap_or(0);
        let cells = cells.collect::<Vec<_>>().join(" | ");
        table.push_str(&format!("| {way} | {cells} | {} MiB |\n", memory >> 20));
    }
    Ok(table)
}

/// Blocked by memcpy, durable by plain files, stored by protected, restart by plain files.
fn cell(point: &Point) -> String {
    let shares = [point.durable_by_plain, point.restart_by_plain];
    let [durable, restart] = shares.map(|share| share.map_or("-".to_owned(), number));
    let stored = format!("{:.0} %", point.stored_share * 100.0);
    format!("{}, {durable}, {stored}, {restart}", number(point.blocked_by_memcpy))
}

fn different<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut different = Vec::new();
    names.for_each(|name| {
        if !different.contains(&name) {
            different.push(name);
        }
    });
    different
}
