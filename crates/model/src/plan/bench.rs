//! Numbers from `standfast bench --json`.
//!
//! Data: JSON lines `{"type":"bench","name":...,"value":...,"unit":...}` -> [`Bench`] ->
//! [`Bench::apply`] -> [`Inputs`].
//!
//! Known names: `memcpy` and `checkpoint, blocked` (capture), `disk write+fsync`, `disk read`,
//! `encode ...`, `network`, `global write`, `global read`, and pairs of `compress CODEC, DATA`
//! (its note says how many times smaller) and `decompress CODEC, DATA`. Lines of other types and
//! other names pass unused.
//!
//! Invariants:
//! - A rate that is used is positive and has a known unit.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{CodecInput, Inputs};
use crate::error::{ModelError, Result};

const INPUT: &str = "bench output";

/// Names of measurements, the best first; the field they fill, and its place.
type Filled = (&'static [&'static str], &'static str, fn(&mut Inputs) -> &mut f64);

const FIELDS: &[Filled] = &[
    (&["checkpoint, blocked", "memcpy"], "capture_bps", |i| &mut i.rates.capture_bps),
    (&["disk write+fsync", "disk write"], "local_write_bps", |i| &mut i.rates.local_write_bps),
    (&["disk read"], "local_read_bps", |i| &mut i.rates.local_read_bps),
    (&["network"], "network_bps", |i| &mut i.rates.network_bps),
    (&["encode"], "encode_bps", |i| &mut i.rates.encode_bps),
    (&["global write"], "global_write_bps", |i| &mut i.rates.global_write_bps),
    (&["global read"], "global_read_bps", |i| &mut i.rates.global_read_bps),
];

#[derive(Debug, Deserialize)]
struct Record {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: Option<f64>,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    note: Option<String>,
}

/// Rates in bytes per second by name, and how many times smaller codecs made the data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bench {
    rates: BTreeMap<String, f64>,
    smaller: BTreeMap<String, f64>,
}

/// Reads bench output.
pub fn parse(text: &str) -> Result<Bench> {
    let mut bench = Bench::default();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let bad = |reason: &str| ModelError::line(INPUT, index + 1, reason, line);
        let record: Record = serde_json::from_str(line)
            .map_err(|error| bad(&format!("not a JSON object with a type ({error})")))?;
        let Some(unit) = unit_bytes(&record.unit).filter(|_| record.kind == "bench") else {
            continue;
        };
        let value = record
            .value
            .filter(|value| value.is_finite() && *value > 0.0)
            .ok_or_else(|| bad("value must be a number above 0"))?;
        if let Some(times) = record.note.as_deref().and_then(times_smaller) {
            bench.smaller.insert(record.name.clone(), times);
        }
        bench.rates.insert(record.name, value * unit);
    }
    Ok(bench)
}

fn unit_bytes(unit: &str) -> Option<f64> {
    Some(match unit {
        "B/s" => 1.0,
        "MB/s" => 1e6,
        "MiB/s" => 1_048_576.0,
        "GB/s" => 1e9,
        "GiB/s" => 1_073_741_824.0,
        _ => return None,
    })
}

/// The number in a note like `1.30 x smaller`.
fn times_smaller(note: &str) -> Option<f64> {
    let number = note.split(" x smaller").next().filter(|part| *part != note)?;
    let times: f64 = number.split_whitespace().last()?.parse().ok()?;
    (times.is_finite() && times >= 1.0).then_some(times)
}

impl Bench {
    /// Overwrites the inputs that were measured; returns their fields, each with the name of the
    /// measurement.
    pub fn apply(&self, inputs: &mut Inputs) -> Vec<(&'static str, &str)> {
        let mut used = Vec::new();
        for (names, field, place) in FIELDS {
            let measured = names.iter().find_map(|name| self.rates.get_key_value(*name));
            if let Some((name, rate)) = measured {
                *place(inputs) = *rate;
                used.push((*field, name.as_str()));
            }
        }
        let codecs = self.codecs();
        if !codecs.is_empty() {
            used.push(("codecs", "compress, decompress"));
            inputs.codecs = codecs;
        }
        used
    }

    /// One entry per codec: harmonic means of its speeds and of its sizes over the data sets.
    fn codecs(&self) -> Vec<CodecInput> {
        let mut sums: BTreeMap<&str, [f64; 4]> = BTreeMap::new();
        for (name, rate) in &self.rates {
            let Some((codec, data)) =
                name.strip_prefix("compress ").and_then(|rest| rest.split_once(", "))
            else {
                continue;
            };
            let Some(back) = self.rates.get(&format!("decompress {codec}, {data}")) else {
                continue;
            };
            let stored = 1.0 / self.smaller.get(name).copied().unwrap_or(1.0);
            let sum = sums.entry(codec).or_default();
            for (part, value) in sum.iter_mut().zip([1.0, 1.0 / rate, 1.0 / back, stored]) {
                *part += value;
            }
        }
        sums.into_iter()
            .map(|(name, [count, compress, decompress, stored])| CodecInput {
                name: name.to_owned(),
                factor: 1.0 - stored / count,
                compress_bps: count / compress,
                decompress_bps: count / decompress,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
