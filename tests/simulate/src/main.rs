//! `make simulate`: many runs of every scenario, or one with its trace.
//!
//! Environment: `RUNS` of each scenario, the first `SEED`, one `SCENARIO`, `JSON` for JSON lines. The exit
//! status is 1 if a run went wrong or a planted bug was not found, and 2 if the environment is wrong.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;
use standfast_simulate::{PLANTED, Planted, SCENARIOS, Scenario};

const RUNS: u64 = 20_000;
/// Failing runs of which the one with the shortest trace is shown.
const COMPARED_MAX: usize = 50;

fn main() -> ExitCode {
    let (runs, first, only) = match asked() {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let chosen = |name: &str| only.is_empty() || name == only;
    let scenarios = SCENARIOS.iter().filter(|scenario| chosen(scenario.name));
    let finds: u64 = scenarios.map(|scenario| simulate(scenario, first, runs)).sum();
    let planted = PLANTED.iter().filter(|(name, _)| runs > 1 && chosen(name));
    let unfound = planted.filter(|(name, bug)| !find(name, *bug, first, runs)).count();
    if finds > 0 || unfound > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// How many runs, from which seed on, and of which scenario: none for all.
fn asked() -> Result<(u64, u64, String), String> {
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    let number = |name: &str, usual| match text(name) {
        empty if empty.is_empty() => Ok(usual),
        text => text.parse().map_err(|_| format!("{name}={text} is not a number")),
    };
    let only = text("SCENARIO");
    if !only.is_empty() && Scenario::of(&only).is_none() {
        let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        return Err(format!("there is no SCENARIO={only}; there are {}", names.join(", ")));
    }
    Ok((number("RUNS", RUNS)?, number("SEED", 0)?, only))
}

/// A result, as text or as a line of JSON.
fn tell(text: String, line: &serde_json::Value) {
    match std::env::var("JSON").is_ok_and(|json| !json.is_empty()) {
        true => println!("{line}"),
        false => println!("{text}"),
    }
}

/// Runs a scenario so often; returns how many runs went wrong.
fn simulate(scenario: &Scenario, first: u64, runs: u64) -> u64 {
    let begun = Instant::now();
    let mut wrong: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut known = 0;
    for seed in first..first.saturating_add(runs) {
        let outcome = scenario.run_seed(seed, None, false);
        known += u64::from(outcome.known.is_some());
        if let Some(what) = outcome.wrong.first() {
            wrong.entry(alike(what)).or_default().push(seed);
        }
    }
    let per_minute = runs as f64 * 60.0 / begun.elapsed().as_secs_f64().max(1e-9);
    let finds = wrong.values().map(Vec::len).sum::<usize>();
    let (name, about) = (scenario.name, scenario.about);
    tell(
        format!(
            "{name:8} {runs} runs, {per_minute:.0} a minute, {finds} wrong, {known} known: {about}"
        ),
        &json!({ "type": "scenario", "scenario": name, "runs": runs, "per_minute": per_minute,
            "wrong": finds, "known": known }),
    );
    // Traces are for people.
    for (what, seeds) in &wrong {
        eprintln!("{} times, such as this one: {what}", seeds.len());
        show(scenario, seeds);
    }
    if runs == 1 && finds == 0 {
        show(scenario, &[first]);
    }
    finds as u64
}

/// Finds that differ in their numbers only are one.
fn alike(what: &str) -> String {
    what.chars().filter(|character| !character.is_ascii_digit()).take(160).collect()
}

/// Shows the run with the shortest trace.
fn show(scenario: &Scenario, seeds: &[u64]) {
    let traces = seeds.iter().take(COMPARED_MAX);
    let traces = traces.map(|seed| (scenario.run_seed(*seed, None, true).trace, seed));
    if let Some((trace, seed)) = traces.min_by_key(|(trace, _)| trace.len()) {
        eprintln!("make simulate SCENARIO={} SEED={seed} RUNS=1", scenario.name);
        trace.iter().for_each(|line| eprintln!("{line}"));
    }
}

/// Tells how soon a planted bug is found, and whether it is.
fn find(name: &str, bug: Planted, first: u64, runs: u64) -> bool {
    let Some(scenario) = Scenario::of(name) else { return false };
    let begun = Instant::now();
    let is_found = |seed: &u64| !scenario.run_seed(*seed, Some(bug), false).wrong.is_empty();
    let found = (first..first.saturating_add(runs)).find(is_found);
    let tried = found.map(|seed| seed - first + 1);
    let seconds = tried.map(|_| begun.elapsed().as_secs_f64());
    let text = match (tried, seconds) {
        (Some(tried), Some(seconds)) => format!("found by {name} in {tried} runs, {seconds:.2} s"),
        _ => format!("not found by {name} in {runs} runs"),
    };
    tell(
        format!("planted {bug:?}: {text}"),
        &json!({ "type": "planted", "bug": format!("{bug:?}"), "scenario": name, "runs": tried,
            "seconds": seconds }),
    );
    found.is_some()
}
