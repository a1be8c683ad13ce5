//! Tables of bars: the middle of all runs, their range, the goal, the ceiling.

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::origin;

/// A line of `bars --json`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Bar(Bar),
    Unmeasured(Unmeasured),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Bar {
    issue: String,
    name: String,
    value: f64,
    goal: f64,
    better: String,
    ceiling: Option<f64>,
    ceiling_unit: String,
    met: bool,
}

#[derive(Deserialize)]
struct Unmeasured {
    issue: String,
    name: String,
    why: String,
}

/// The rows that are selected: letters, or a letter and the beginning of names, apart by `;`.
pub(super) fn table(results: &str, select: &str) -> anyhow::Result<String> {
    let lines = results.lines().map(serde_json::from_str).collect::<Result<Vec<Line>, _>>();
    let lines = lines.context("lines of `bars --json`")?;
    let mut rows = String::new();
    for wanted in select.split(';').map(str::trim) {
        let before = rows.len();
        rows_of(&lines, wanted, &mut rows);
        ensure!(rows.len() > before, "no bar is called {wanted}");
    }
    let caption = origin::caption(&origin::all(results)?);
    Ok(format!(
        "{caption}| what | measured | goal | ceiling | met |\n|---|---|---|---|---|\n{rows}"
    ))
}

fn rows_of(lines: &[Line], wanted: &str, rows: &mut String) {
    let (letter, words) = wanted.split_once(' ').unwrap_or((wanted, ""));
    let mut told = Vec::new();
    for line in lines {
        let (issue, name) = match line {
            Line::Bar(bar) => (&bar.issue, &bar.name),
            Line::Unmeasured(row) => (&row.issue, &row.name),
            Line::Other => continue,
        };
        if issue != letter || !name.starts_with(words) || told.contains(&name) {
            continue;
        }
        told.push(name);
        match line {
            Line::Bar(_) => rows.push_str(&row(&all_of(lines, issue, name))),
            Line::Unmeasured(Unmeasured { why, .. }) => {
                rows.push_str(&format!("| {name} | not measured: {why} | | | |\n"));
            }
            Line::Other => {}
        }
    }
}

fn all_of<'a>(lines: &'a [Line], issue: &str, name: &str) -> Vec<&'a Bar> {
    let bars = lines.iter().filter_map(|line| match line {
        Line::Bar(bar) => Some(bar),
        _ => None,
    });
    bars.filter(|bar| bar.issue == issue && bar.name == name).collect()
}

/// One bar over all runs.
fn row(bars: &[&Bar]) -> String {
    let values = sorted(bars.iter().map(|bar| bar.value));
    let measured = match values.len() {
        1 => number(values[0]),
        last => {
            let (least, most) = (number(values[0]), number(values[last - 1]));
            format!("{} ({least} to {most})", number(middle(&values)))
        }
    };
    let first = bars[0];
    let relation = if first.better == "higher" { "≥" } else { "≤" };
    let ceilings = sorted(bars.iter().filter_map(|bar| bar.ceiling));
    let ceiling = match ceilings.is_empty() {
        true => String::new(),
        false => format!("{} {}", number(middle(&ceilings)), first.ceiling_unit),
    };
    let met = bars.iter().filter(|bar| bar.met).count();
    let verdict = match (met, bars.len()) {
        (1, 1) => "yes".to_owned(),
        (0, 1) => "**no**".to_owned(),
        (met, all) if met == all => format!("{met} of {all}"),
        (met, all) => format!("**{met} of {all}**"),
    };
    let (name, goal) = (&first.name, number(first.goal));
    format!("| {name} | {measured} | {relation} {goal} | {ceiling} | {verdict} |\n")
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The middle of sorted values; of an even number the mean of the two.
fn middle(values: &[f64]) -> f64 {
    let half = values.len() / 2;
    match values.len() % 2 {
        0 => (values[half - 1] + values[half]) / 2.0,
        _ => values[half],
    }
}

/// Three digits that count.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size == 0.0 || size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"type":"origin","commit":"abc","machine":"M, 2 cores","command":"experiments bars","date":"2026-01-02T03:04:05Z"}
{"type":"bar","issue":"A","name":"speed","value":0.8,"goal":0.9,"better":"higher","ceiling":1.5,"ceiling_unit":"GB/s","met":false}
{"type":"unmeasured","issue":"A","name":"kernels","why":"no library"}
{"type":"summary","met":0,"missed":1,"unmeasured":1}
"#;

    #[test]
    fn runs_become_a_middle_and_a_range() {
        let runs = [RUN, &RUN.replace("0.8", "1.0").replace("\"met\":false", "\"met\":true"), RUN];
        let table = table(&runs.concat(), "A").unwrap();
        assert!(table.contains("M, 2 cores; 2026-01-02; `experiments bars` 3 times, of abc"));
        assert!(table.contains("| speed | 0.8 (0.8 to 1) | ≥ 0.9 | 1.5 GB/s | **1 of 3** |"));
        assert!(table.contains("| kernels | not measured: no library |"));
        assert!(super::table(RUN, "B").is_err() && super::table(RUN, "A slow").is_err());
    }

    #[test]
    fn numbers_keep_three_digits() {
        let told = [0.0, 0.0041, 0.8, 1.234, 23.46, 1234.5].map(number);
        assert_eq!(told, ["0", "0.004", "0.8", "1.23", "23.5", "1234"]);
    }
}
