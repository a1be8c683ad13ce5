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
    /// Overwrites the inputs that were measured; returns the names that were used.
    pub fn apply(&self, inputs: &mut Inputs) -> Vec<String> {
        let mut used = Vec::new();
        let mut take = |names: &[&str], target: &mut f64| {
            if let Some((name, rate)) =
                names.iter().find_map(|name| self.rates.get_key_value(*name))
            {
                *target = *rate;
                used.push(name.clone());
            }
        };
        take(&["checkpoint, blocked", "memcpy"], &mut inputs.capture_bps);
        take(&["disk write+fsync", "disk write"], &mut inputs.local_write_bps);
        take(&["disk read"], &mut inputs.local_read_bps);
        take(&["network"], &mut inputs.network_bps);
        take(&["encode"], &mut inputs.encode_bps);
        take(&["global write"], &mut inputs.global_write_bps);
        take(&["global read"], &mut inputs.global_read_bps);
        let codecs = self.codecs();
        if !codecs.is_empty() {
            used.extend(codecs.iter().map(|codec| format!("codec {}", codec.name)));
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINES: &str = r#"
{"type":"bench","name":"memcpy","value":8.0,"unit":"GB/s"}
{"type":"bench","name":"disk write+fsync","value":900,"unit":"MB/s","note":"O_DIRECT"}
{"type":"bench","name":"compress lz4, smooth","value":2.0,"unit":"GB/s","note":"2.00 x smaller"}
{"type":"bench","name":"decompress lz4, smooth","value":4.0,"unit":"GB/s"}
{"type":"bench","name":"compress lz4, noise","value":2.0,"unit":"GB/s","note":"1.00 x smaller"}
{"type":"bench","name":"decompress lz4, noise","value":4.0,"unit":"GB/s"}
{"type":"summary","text":"done"}
"#;

    #[test]
    fn measured_rates_replace_the_defaults() {
        let mut inputs = Inputs::example();
        let used = parse(LINES).unwrap().apply(&mut inputs);
        assert_eq!(inputs.capture_bps, 8e9);
        assert_eq!(inputs.local_write_bps, 9e8);
        assert_eq!(inputs.codecs.len(), 1);
        assert!((inputs.codecs[0].factor - 0.25).abs() < 1e-12);
        assert!((inputs.codecs[0].compress_bps - 2e9).abs() < 1.0);
        assert_eq!(used, ["memcpy", "disk write+fsync", "codec lz4"]);
        inputs.check().unwrap();
    }

    #[test]
    fn nonsense_is_named_by_line() {
        let text = parse("{\"type\":\"bench\"}\n{oops").unwrap_err().to_string();
        assert!(text.contains("line 2"), "{text}");
        let text = parse(r#"{"type":"bench","name":"memcpy","value":0,"unit":"GB/s"}"#)
            .unwrap_err()
            .to_string();
        assert!(text.contains("value") && text.contains("memcpy"), "{text}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = parse(&text);
        }
    }
}
