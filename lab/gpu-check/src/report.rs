//! What was found, as JSON lines on stdout and in a file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use lab_origin::Origin;
use serde_json::{Value, json};
use standfast_gpu::Gpu;

/// Collects lines.
pub(crate) struct Report {
    file: Option<File>,
    failed: usize,
}

/// A ceiling from the same run.
#[derive(Clone, Copy)]
pub(crate) struct Ceiling {
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
}

/// Which way is better.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
}

impl Report {
    pub(crate) fn new(path: Option<&Path>) -> Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        Ok(Report { file: path.map(open).transpose()?, failed: 0 })
    }

    pub(crate) fn machine(&mut self, gpu: &Gpu) -> Result<()> {
        let device = format!("{} of {} GiB", gpu.name(), gpu.memory_bytes() >> 30);
        let mut origin = serde_json::to_value(Origin::look(Some(&device)))?;
        origin["type"] = "origin".into();
        self.line(origin)?;
        self.line(json!({
            "type": "machine",
            "gpu": gpu.name(),
            "driver_cuda": gpu.driver().to_string(),
            "capability": gpu.capability().to_string(),
            "multiprocessors": gpu.multiprocessors(),
            "memory_gib": gpu.memory_bytes() >> 30,
        }))
    }

    /// Whether a kernel agreed with its reference, and with which vectors.
    pub(crate) fn check(&mut self, name: &str, cases: usize, wrong: &[String]) -> Result<()> {
        self.failed += wrong.len();
        self.line(json!({"type": "check", "name": name, "cases": cases, "wrong": wrong}))
    }

    pub(crate) fn all_well(&self) -> bool {
        self.failed == 0
    }

    pub(crate) fn bench(&mut self, name: &str, value: f64, unit: &str, note: &str) -> Result<()> {
        self.line(
            json!({"type": "bench", "name": name, "value": value, "unit": unit, "note": note}),
        )
    }

    pub(crate) fn bar(
        &mut self,
        name: &str,
        value: f64,
        better: Better,
        goal: f64,
        ceiling: Option<Ceiling>,
    ) -> Result<()> {
        let (word, met) = match better {
            Better::Higher => ("higher", value >= goal),
            Better::Lower => ("lower", value <= goal),
        };
        self.line(json!({
            "type": "bar",
            "issue": "I",
            "name": name,
            "value": value,
            "goal": goal,
            "better": word,
            "ceiling": ceiling.map(|ceiling| ceiling.value),
            "ceiling_unit": ceiling.map_or("", |ceiling| ceiling.unit),
            "met": met,
        }))
    }

    fn line(&mut self, value: Value) -> Result<()> {
        println!("{value}");
        if let Some(file) = &mut self.file {
            writeln!(file, "{value}")?;
        }
        Ok(())
    }
}
