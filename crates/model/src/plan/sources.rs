//! Inputs, each with the source it came from.
//!
//! Data: assumptions, then measurements, then what the user says -> [`Sourced`] -> `plan`.
//!
//! Why the source is kept: a plan is as good as its inputs, and the reader must see which of them
//! were only assumed.
//!
//! Invariants:
//! - [`Sourced::fields`] lists every input, in the order of [`Inputs`].

use std::collections::BTreeMap;

use serde::Serialize;

use super::bench::Bench;
use super::failure_log::Mtti;
use super::measured::{Checkpoint, Drain, drain_rate, measured};
use super::scheduler::Allocation;
use super::{CodecInput, Inputs};
use crate::render::{bytes, duration};

/// What an input is called, as text for people, and where it came from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Field {
    /// Its name in [`Inputs`].
    pub name: &'static str,
    /// Its value, with a unit.
    pub value: String,
    /// Its source.
    pub source: String,
}

/// Inputs with their sources.
#[derive(Debug, Clone, PartialEq)]
pub struct Sourced {
    /// The values.
    pub inputs: Inputs,
    sources: BTreeMap<&'static str, String>,
}

impl Sourced {
    /// A mid-sized cluster, every input of it assumed.
    pub fn assumed() -> Self {
        Self { inputs: Inputs::example(), sources: BTreeMap::new() }
    }

    /// Takes the node count of the scheduler.
    pub fn scheduler(&mut self, allocation: &Allocation) {
        self.inputs.job.nodes = allocation.nodes;
        self.note("nodes", allocation.source);
        if let Some((ranks, source)) = allocation.ranks_per_node {
            self.inputs.job.ranks_per_node = ranks;
            self.note("ranks_per_node", source);
        }
    }

    /// Takes what a benchmark measured; whether there was anything to take.
    pub fn bench(&mut self, bench: &Bench, source: &str) -> bool {
        let used = bench.apply(&mut self.inputs);
        for (field, name) in &used {
            self.sources.insert(field, format!("{source}: {name}"));
        }
        !used.is_empty()
    }

    /// Takes what a job's checkpoints, oldest first, tell; whether they told anything.
    pub fn checkpoints(&mut self, checkpoints: &[Checkpoint], source: &str) -> bool {
        let used = measured(checkpoints, &mut self.inputs);
        used.iter().for_each(|field| self.note(field, source));
        !used.is_empty()
    }

    /// Takes the rate at which a job's drains went, from all its stores together.
    pub fn drains(&mut self, drains: &[Drain], stores: u64, source: &str) {
        if let Some(rate) = drain_rate(drains) {
            self.inputs.rates.global_write_bps = rate * stores as f64;
            self.note("global_write_bps", source);
        }
    }

    /// Whether a field is more than an assumption.
    pub fn knows(&self, field: &str) -> bool {
        self.sources.contains_key(field)
    }

    /// Takes the mean time of a failure log.
    pub fn failures(&mut self, mtti: &Mtti, source: &str) {
        self.inputs.failures.mtti_s = mtti.mean_s;
        self.note("mtti_s", source);
    }

    /// Notes the source of a field that was set from outside.
    pub fn note(&mut self, field: &'static str, source: &str) {
        self.sources.insert(field, source.to_owned());
    }

    /// Every input.
    pub fn fields(&self) -> Vec<Field> {
        values(&self.inputs)
            .into_iter()
            .map(|(name, value)| {
                let source = self.sources.get(name).map_or("assumed", String::as_str).to_owned();
                Field { name, value, source }
            })
            .collect()
    }
}

fn values(inputs: &Inputs) -> Vec<(&'static str, String)> {
    let rate = |value: f64| format!("{}/s", bytes(value));
    let share = |value: f64| format!("{:.4} %", 100.0 * value).replace(".0000", "");
    let free = |choice: Option<u64>| choice.map_or("any".to_owned(), |it| it.to_string());
    vec![
        ("nodes", inputs.job.nodes.to_string()),
        ("ranks_per_node", inputs.job.ranks_per_node.to_string()),
        ("bytes_per_node", bytes(inputs.job.bytes_per_node)),
        ("changed_share", share(inputs.job.changed_share)),
        ("mtti_s", duration(inputs.failures.mtti_s)),
        ("process_share", share(inputs.failures.process_share)),
        ("nodes_per_incident", inputs.failures.nodes_per_incident.to_string()),
        ("survival", share(inputs.failures.survival)),
        ("capture_bps", rate(inputs.rates.capture_bps)),
        ("local_write_bps", rate(inputs.rates.local_write_bps)),
        ("local_read_bps", rate(inputs.rates.local_read_bps)),
        ("network_bps", rate(inputs.rates.network_bps)),
        ("network_latency_s", duration(inputs.rates.network_latency_s)),
        ("encode_bps", rate(inputs.rates.encode_bps)),
        ("global_write_bps", rate(inputs.rates.global_write_bps)),
        ("global_read_bps", rate(inputs.rates.global_read_bps)),
        ("codecs", codecs(&inputs.codecs)),
        ("background", if inputs.background { "agent" } else { "none" }.to_owned()),
        ("pool_bytes_max", bytes(inputs.pool_bytes_max)),
        ("local_bytes", inputs.local_bytes.map_or("enough".to_owned(), bytes)),
        ("group_max", inputs.ring.group_max.to_string()),
        ("group", free(inputs.ring.group)),
        ("shards", free(inputs.ring.shards)),
        ("relaunch_s", duration(inputs.failures.relaunch_s)),
    ]
}

fn codecs(codecs: &[CodecInput]) -> String {
    let one = |codec: &CodecInput| format!("{} saves {:.0} %", codec.name, 100.0 * codec.factor);
    if codecs.is_empty() {
        return "none".to_owned();
    }
    codecs.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
