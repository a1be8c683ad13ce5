//! `ls`: jobs and their checkpoints, from the manifests alone.
//!
//! A manifest that cannot be read is listed with the reason: what is damaged is not hidden.

use std::process::ExitCode;

use serde_json::json;
use standfast_admin::human_bytes;
use standfast_admin::list::{self, Checkpoint, Listing};

use crate::args::Global;
use crate::escape;
use crate::failure::{Failure, Result};
use crate::moment;
use crate::output::{BAD, Output, TITLE};

/// Lists one job, or all of the place.
pub(crate) fn run(global: &Global, output: &Output) -> Result<ExitCode> {
    for listed in list::list(&global.place())? {
        match listed.listing {
            Ok(listing) => tell(&listed.job, &listing, output)?,
            Err(error) => unreadable(&listed.job, &error.into(), output)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(job: &str, listing: &Listing, output: &Output) -> Result<()> {
    let fields = json!({
        "job": job, "store": listing.place, "checkpoints": listing.checkpoints.len(),
        "stored_bytes": listing.stored_bytes(), "finished": listing.is_finished,
    });
    output.record("job", fields)?;
    let finished = if listing.is_finished { "  finished" } else { "" };
    let heading = output.heading(format_args!("job {job}"), escape::name(&listing.place));
    output.line(format_args!("{heading}{finished}"))?;
    let mut rows = Vec::new();
    for (at, checkpoint) in listing.checkpoints.iter().enumerate() {
        record(job, checkpoint, at == 0, output)?;
        rows.push(row(checkpoint, at == 0));
    }
    output.table(COLUMNS, rows)?;
    if listing.checkpoints.is_empty() && listing.damaged.is_empty() {
        output.line("  no checkpoint yet")?;
    }
    for damaged in &listing.damaged {
        let kind = damaged.error.kind();
        let what = damaged.error.to_string();
        output.record(
            "damaged",
            json!({ "job": job, "object": damaged.object, "kind": kind.name(), "what": what }),
        )?;
        let word = if damaged.is_proven() { "damaged" } else { "unread" };
        output.line(format_args!("  {} {}", output.paint(BAD, word), escape::name(&what)))?;
    }
    output.line("")
}

fn unreadable(job: &str, failure: &Failure, output: &Output) -> Result<()> {
    let (kind, what) = failure.summary();
    output
        .record("damaged", json!({ "job": job, "object": "store", "kind": kind, "what": what }))?;
    output.line(output.paint(TITLE, format_args!("job {job}")))?;
    output.line(format_args!("  {} {}\n", output.paint(BAD, "damaged"), escape::name(&what)))
}

const COLUMNS: &str = ">VERSION|TAKEN|>AGE|LEVEL|>RANKS|>CAPTURED|>STORED|>RATIO|";

fn row(checkpoint: &Checkpoint, newest: bool) -> Vec<String> {
    let manifest = &checkpoint.manifest;
    // Its attempt names it for `prune`: another one may have the same version.
    let abandoned = format!("abandoned ({}.{})", manifest.version, manifest.attempt);
    let states = [
        (newest, "newest"),
        (checkpoint.is_finished, "finished"),
        (checkpoint.is_abandoned, abandoned.as_str()),
        (checkpoint.is_marked, "marked as damaged"),
    ];
    let states: Vec<&str> = states.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    vec![
        manifest.version.to_string(),
        moment::local(manifest.taken_ns),
        moment::age(manifest.taken_ns),
        checkpoint.level.to_string(),
        manifest.ranks.to_string(),
        human_bytes(manifest.stats.captured_bytes),
        human_bytes(checkpoint.stored_bytes()),
        format!("{:.1} x", checkpoint.ratio()),
        states.join(", "),
    ]
}

fn record(job: &str, checkpoint: &Checkpoint, newest: bool, output: &Output) -> Result<()> {
    let manifest = &checkpoint.manifest;
    let fields = json!({
        "job": job,
        "version": manifest.version,
        "sequence": manifest.sequence,
        "newest": newest,
        "marked": checkpoint.is_marked,
        "finished": checkpoint.is_finished,
        "abandoned": checkpoint.is_abandoned,
        "attempt": manifest.attempt.to_string(),
        "taken": moment::local(manifest.taken_ns),
        "taken_ns": manifest.taken_ns,
        "level": checkpoint.level,
        "ranks": manifest.ranks,
        "captured_bytes": manifest.stats.captured_bytes,
        "stored_bytes": checkpoint.stored_bytes(),
        "ratio": checkpoint.ratio(),
    });
    output.record("checkpoint", fields)
}
