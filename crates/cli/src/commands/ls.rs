//! `ls`: jobs and their checkpoints, from the manifests alone.
//!
//! A manifest that cannot be read is listed with the reason: what is damaged is not hidden.

use std::process::ExitCode;

use serde_json::json;
use standfast::config::Origin;
use standfast::{Manifest, human_bytes, mark, ring};
use standfast_format::name;
use standfast_restart::Inventory;

use crate::args::Global;
use crate::escape;
use crate::failure::Result;
use crate::moment;
use crate::output::{Align, BAD, Column, FAINT, Output, TITLE};
use crate::place::{self, OpenJob};

/// Lists one job, or all of the place.
pub(crate) fn run(global: &Global, output: &Output) -> Result<ExitCode> {
    let loaded = place::load(global)?;
    if !global.stores.is_empty() {
        let job = place::open(global)?;
        list(&job, &job.inventory()?, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    if *loaded.origin("job") != Origin::Default {
        let job = place::open_job(loaded.config)?;
        list(&job, &job.inventory()?, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let jobs = place::jobs(&loaded.config)?;
    if jobs.is_empty() {
        return Err(place::no_jobs(&loaded.config));
    }
    for name in jobs {
        let mut config = loaded.config.clone();
        config.job = name.clone();
        let opened = place::open_job(config)
            .and_then(|job| job.inventory().map(|inventory| (job, inventory)));
        match opened {
            Ok((job, inventory)) => list(&job, &inventory, output)?,
            Err(failure) => unreadable(&name, &failure, output)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(job: &OpenJob, inventory: &Inventory, output: &Output) -> Result<()> {
    let stored = inventory.checkpoints.iter().map(stored_bytes).fold(0, u64::saturating_add);
    output.record(
        "job",
        json!({
            "job": job.name, "store": job.place, "checkpoints": inventory.checkpoints.len(),
            "stored_bytes": stored,
        }),
    )?;
    output.line(format_args!(
        "{}  {}",
        output.paint(TITLE, format_args!("job {}", job.name)),
        output.paint(FAINT, escape::name(&job.place))
    ))?;
    let mut rows = Vec::new();
    let marked = mark::attempts(&job.store.list(name::MARKS)?);
    for (at, manifest) in inventory.checkpoints.iter().enumerate() {
        let state = State { newest: at == 0, marked: marked.contains(&manifest.attempt) };
        record(job, manifest, state, output)?;
        rows.push(row(job, manifest, state));
    }
    output.table(&COLUMNS, rows)?;
    if inventory.checkpoints.is_empty() && inventory.damaged.is_empty() {
        output.line("  no checkpoint yet")?;
    }
    for damaged in &inventory.damaged {
        let kind = damaged.error.kind();
        let what = damaged.error.to_string();
        output.record(
            "damaged",
            json!({
                "job": job.name, "object": damaged.object, "kind": kind.name(), "what": what,
            }),
        )?;
        output.line(format_args!("  {} {}", output.paint(BAD, "damaged"), escape::name(&what)))?;
    }
    output.line("")
}

fn unreadable(job: &str, failure: &crate::failure::Failure, output: &Output) -> Result<()> {
    let (kind, what) = failure.summary();
    output
        .record("damaged", json!({ "job": job, "object": "store", "kind": kind, "what": what }))?;
    output.line(output.paint(TITLE, format_args!("job {job}")))?;
    output.line(format_args!("  {} {}\n", output.paint(BAD, "damaged"), escape::name(&what)))
}

/// What is special about a checkpoint.
#[derive(Clone, Copy)]
struct State {
    newest: bool,
    /// A lazy restart found it damaged.
    marked: bool,
}

impl State {
    fn words(self) -> &'static str {
        match (self.newest, self.marked) {
            (true, true) => "newest, marked as damaged",
            (true, false) => "newest",
            (false, true) => "marked as damaged",
            (false, false) => "",
        }
    }
}

const COLUMNS: [Column; 9] = [
    Column("VERSION", Align::Right),
    Column("TAKEN", Align::Left),
    Column("AGE", Align::Right),
    Column("LEVEL", Align::Left),
    Column("RANKS", Align::Right),
    Column("CAPTURED", Align::Right),
    Column("STORED", Align::Right),
    Column("RATIO", Align::Right),
    Column("", Align::Left),
];

fn row(job: &OpenJob, manifest: &Manifest, state: State) -> Vec<String> {
    let captured = manifest.stats.captured_bytes;
    let stored = stored_bytes(manifest);
    vec![
        manifest.version.to_string(),
        moment::local(manifest.taken_ns),
        moment::age(manifest.taken_ns),
        ring::level(&*job.store, manifest).to_string(),
        manifest.ranks.to_string(),
        human_bytes(captured),
        human_bytes(stored),
        format!("{:.1} x", ratio(captured, stored)),
        state.words().into(),
    ]
}

fn record(job: &OpenJob, manifest: &Manifest, state: State, output: &Output) -> Result<()> {
    let captured = manifest.stats.captured_bytes;
    let stored = stored_bytes(manifest);
    output.record(
        "checkpoint",
        json!({
            "job": job.name,
            "version": manifest.version,
            "sequence": manifest.sequence,
            "newest": state.newest,
            "marked": state.marked,
            "taken": moment::local(manifest.taken_ns),
            "taken_ns": manifest.taken_ns,
            "level": ring::level(&*job.store, manifest),
            "ranks": manifest.ranks,
            "captured_bytes": captured,
            "stored_bytes": stored,
            "ratio": ratio(captured, stored),
        }),
    )
}

/// What the checkpoint added to the store.
fn stored_bytes(manifest: &Manifest) -> u64 {
    manifest.stats.segment_bytes.saturating_add(manifest.stats.image_bytes)
}

fn ratio(captured: u64, stored: u64) -> f64 {
    if stored == 0 { 1.0 } else { captured as f64 / stored as f64 }
}
