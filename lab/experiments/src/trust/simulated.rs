//! What the simulator finds: nothing in the code as it is, and every bug that is planted.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde::Deserialize;

use super::bars::lower;
use crate::bars::Sheet;

/// A line of the simulator.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Scenario { scenario: String, runs: u64, per_minute: f64, wrong: u64 },
    Planted { bug: String, seconds: Option<f64> },
}

/// Its rows of the bars.
pub(super) fn bars(quick: bool, _: &Path, sheet: &mut Sheet) -> anyhow::Result<()> {
    let runs = if quick { 500 } else { 20_000 };
    let own = std::env::current_exe()?;
    let simulator = own.with_file_name("standfast-simulate");
    let output = Command::new(&simulator)
        .env("RUNS", runs.to_string())
        .env("JSON", "1")
        .output()
        .with_context(|| format!("{}: `make simulate` builds it", simulator.display()))?;
    let text = String::from_utf8(output.stdout).context("the simulator's lines")?;
    let (mut all, mut unfound) = (0, Vec::new());
    for line in text.lines() {
        match serde_json::from_str(line).with_context(|| line.to_owned())? {
            Line::Scenario { scenario, runs, per_minute, wrong } => {
                let name = format!("wrong among {runs} simulated runs of {scenario}");
                sheet.bar(lower(name, wrong as f64, 0.0).ceiling(per_minute, "runs/min"));
            }
            Line::Planted { bug, seconds } => {
                all += 1;
                // More than a minute is as good as not found.
                if seconds.is_none_or(|seconds| seconds > 60.0) {
                    unfound.push(bug);
                }
            }
        }
    }
    anyhow::ensure!(all > 0, "the simulator told nothing: {}", output.status);
    let name = format!("planted bugs of {all} that are not found within a minute");
    sheet.bar(lower(name, unfound.len() as f64, 0.0));
    Ok(())
}
