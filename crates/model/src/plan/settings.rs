//! A plan as a ready `standfast.toml`.
//!
//! Data: [`Plan`] and the names of the settings that the engine knows -> text.
//!
//! Why the names are passed in: the engine refuses settings it does not know, so those are
//! written as comments, for the reader and for later versions.
//!
//! Invariants:
//! - The text is valid TOML, and every uncommented key is one of the known ones.

use std::fmt::Write as _;

use super::Plan;
use crate::render::{bytes, duration};

/// Renders the plan; `known` are the engine's setting names.
pub fn toml(plan: &Plan, known: &[&str]) -> String {
    let mut text = format!(
        "# Planned by standfast: {:.1} % of the time is expected to compute something new.\n",
        100.0 * plan.efficiency
    );
    for (key, value, why) in settings(plan) {
        let _ = writeln!(text, "\n# {why}");
        let mark = if known.contains(&key) { "" } else { "# " };
        let _ = writeln!(text, "{mark}{key} = {value}");
    }
    text
}

/// Key, TOML value and reason of each setting.
fn settings(plan: &Plan) -> Vec<(&'static str, String, String)> {
    let mut all = vec![
        (
            "interval",
            format!("\"{:.0}s\"", plan.interval_s().max(1.0)),
            format!(
                "Work between checkpoints, {}; \"auto\" follows measurements instead.",
                duration(plan.interval_s())
            ),
        ),
        (
            "mtti",
            format!("\"{:.0}s\"", plan.mtti_s.max(1.0)),
            format!("Expected time between failures, {}; for \"auto\".", duration(plan.mtti_s)),
        ),
        (
            "codec",
            format!("\"{}\"", plan.codec),
            "The codec with the best expected efficiency.".to_owned(),
        ),
        (
            "pool",
            format!("\"{}MiB\"", (plan.pool_bytes / 1_048_576.0).ceil().max(1.0)),
            "Memory per node for captured pages on their way out.".to_owned(),
        ),
    ];
    for level in &plan.levels[1..] {
        let key = if level.name == "ring" { "ring_every" } else { "global_every" };
        all.push((
            key,
            level.every.to_string(),
            format!(
                "One checkpoint in so many reaches the {} level, every {}; it needs {} per node.",
                level.name,
                duration(level.interval_s),
                bytes(level.stored_bytes)
            ),
        ));
    }
    if plan.group_k > 0 {
        all.push((
            "group",
            plan.group_k.to_string(),
            format!(
                "Nodes per group; with the shards below {:.2} % of node incidents are survived.",
                100.0 * plan.ring_survival
            ),
        ));
        all.push(("shards", plan.group_m.to_string(), "Shards per group.".to_owned()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Inputs, plan};

    #[test]
    fn the_file_is_toml_and_only_known_keys_count() {
        let plan = plan(&Inputs::example()).unwrap();
        let known = ["interval", "codec", "pool"];
        let text = toml(&plan, &known);
        let parsed: toml::Table = text.parse().unwrap();
        assert_eq!(parsed.len(), known.len(), "{text}");
        assert_eq!(parsed["codec"].as_str(), Some(plan.codec.as_str()));
        assert!(text.contains("# group = "));
        let all = toml(
            &plan,
            &["interval", "codec", "pool", "ring_every", "global_every", "group", "shards"],
        );
        let parsed: toml::Table = all.parse().unwrap();
        assert_eq!(parsed["group"].as_integer(), Some(plan.group_k as i64));
    }
}
