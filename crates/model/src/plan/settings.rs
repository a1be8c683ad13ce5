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

use super::{LevelPlan, Plan};
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
    for line in global(plan) {
        let _ = write!(text, "{line}");
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
                "Work between checkpoints, {}; \"auto:{:.0}s\" follows measurements and a failure \
                 every {} instead.",
                duration(plan.interval_s()),
                plan.mtti_s.max(1.0),
                duration(plan.mtti_s)
            ),
        ),
        (
            "codec",
            format!("\"{}\"", plan.codec),
            "The codec with the best expected efficiency.".to_owned(),
        ),
        (
            "memory",
            format!("\"{}MiB\"", plan.rank_pool_mib() * plan.ranks_per_node),
            format!(
                "Memory of a node for captured pages on their way out; {} ranks share it.",
                plan.ranks_per_node
            ),
        ),
    ];
    if let Some(ring) = plan.levels.iter().find(|level| level.name == "ring") {
        all.push(ring_setting(plan, ring));
    }
    all
}

fn ring_setting(plan: &Plan, ring: &LevelPlan) -> (&'static str, String, String) {
    (
        "ring",
        plan.group_m.to_string(),
        format!(
            "Losses of nodes that are survived always; {:.2} % of all incidents are. Shards take {} \
             per node; needs a store on each node, such as store = \"/local/{{node}}\".",
            100.0 * plan.ring_survival,
            bytes(ring.stored_bytes)
        ),
    )
}

/// What to run for the global level, whose place only the user knows.
fn global(plan: &Plan) -> [String; 3] {
    let level = &plan.levels[plan.levels.len() - 1];
    let ratio = plan.local_per_global();
    let every = if plan.background { String::new() } else { format!(" --every {ratio}") };
    [
        format!(
            "\n# Global level: one checkpoint in {ratio}, every {}, {} for the whole job.\n",
            duration(level.interval_s),
            bytes(plan.global_bytes)
        ),
        "# global = \"s3://BUCKET/PREFIX\", or beside the job:\n".to_owned(),
        format!("#   standfast drain --to s3://BUCKET/PREFIX --follow{every}\n"),
    ]
}

#[cfg(test)]
mod tests;
