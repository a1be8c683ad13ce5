//! `verify`: everything a store holds is read and checked; each damaged object is named, with the
//! checkpoints that need it.
//!
//! ```text
//! manifests -> images -> segments (opened, then every block and page, each once) -> references
//! ```
//! The findings come from [`check`]; here they are told, and judged.

mod check;
mod findings;
mod marks;
mod plan;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;
use standfast::{Kind, Version, human_bytes, prune};
use standfast_format::name;
use standfast_restart::Inventory;
use standfast_store::ObjectMeta;

use crate::args::{Global, VerifyArgs};
use crate::bar;
use crate::escape;
use crate::failure::{Result, exit_code};
use crate::output::{BAD, FAINT, GOOD, Output, TITLE, WARN};
use crate::place::{self, OpenJob};
use check::Checked;
use findings::Finding;

/// Verifies the store, or some checkpoints of it.
pub(crate) fn run(global: &Global, args: &VerifyArgs, output: &Output) -> Result<ExitCode> {
    let job = place::open(global)?;
    let _lock = job.lock()?;
    let inventory = job.inventory()?;
    if args.plan {
        return plan::run(&job, &inventory, args, output);
    }
    let wanted = wanted(&inventory, &args.versions)?;
    let started = Instant::now();
    let bar = bar::bytes(output, 0, "verifying");
    let checked = check::check(&job, &inventory, &wanted, args.quick, &bar);
    bar.finish_and_clear();
    for finding in &checked.findings {
        tell(finding, output)?;
    }
    marks::settle(&job, &inventory, &checked, !args.quick, output)?;
    if args.versions.is_empty() {
        orphans(&job, &inventory, output)?;
    }
    let missing = checked.findings.iter().any(|finding| finding.kind == Kind::Missing);
    if missing && job.parts.len() == 1 && job.store.open(name::IDENTITY).is_ok() {
        output.remark(
            "         where nodes have stores of their own, each holds a part: give all with \
             --stores, or ask 'standfast verify --plan' what the ring brings back",
        );
    }
    verdict(&job, args, &checked, started, output)
}

/// The versions asked for, or all: also those whose manifest is damaged.
fn wanted(inventory: &Inventory, versions: &[u64]) -> Result<BTreeSet<Version>> {
    let damaged: Vec<Version> = inventory
        .damaged
        .iter()
        .filter_map(|damaged| name::parse_manifest(&damaged.object))
        .map(|(version, _)| version)
        .collect();
    if versions.is_empty() {
        let sound = inventory.checkpoints.iter().map(|manifest| manifest.version);
        return Ok(sound.chain(damaged).collect());
    }
    let versions: BTreeSet<Version> = versions.iter().copied().map(Version).collect();
    for version in &versions {
        if !damaged.contains(version) {
            inventory.checkpoint(*version)?;
        }
    }
    Ok(versions)
}

fn tell(finding: &Finding, output: &Output) -> Result<()> {
    let versions: Vec<u64> = finding.checkpoints.iter().map(|version| version.0).collect();
    output.record(
        "damage",
        json!({
            "object": finding.object, "kind": finding.kind.name(), "what": finding.what,
            "count": finding.count, "checkpoints": versions,
        }),
    )?;
    let more = match finding.count {
        1 => String::new(),
        count => format!(" (and {} more places)", count - 1),
    };
    output.line(format_args!(
        "{}  {}\n         {}{more}\n         {}",
        output.paint(BAD, "damaged"),
        output.paint(TITLE, escape::name(&finding.object)),
        escape::name(&finding.what),
        output.paint(FAINT, affected(&finding.checkpoints)),
    ))
}

fn affected(checkpoints: &BTreeSet<Version>) -> String {
    match checkpoints.len() {
        0 => "no checkpoint needs the damaged part".into(),
        1 => format!("affects checkpoint {}", list(checkpoints)),
        _ => format!("affects checkpoints {}", list(checkpoints)),
    }
}

fn list(versions: &BTreeSet<Version>) -> String {
    let texts: Vec<String> = versions.iter().map(Version::to_string).collect();
    texts.join(", ")
}

/// Files that no manifest names: left by a crash or by a checkpoint under way, or not ours.
fn orphans(job: &OpenJob, inventory: &Inventory, output: &Output) -> Result<()> {
    let objects = job.store.list("")?;
    let plan = prune::plan(inventory, &objects, &prune::Keep::default());
    let foreign = objects.iter().filter(|object| !is_ours(object));
    let orphans: Vec<&ObjectMeta> =
        plan.images.iter().chain(&plan.segments).chain(foreign).collect();
    for orphan in &orphans {
        output.record("orphan", json!({ "object": orphan.name, "bytes": orphan.bytes }))?;
        output.line(format_args!(
            "{}   {} ({})",
            output.paint(WARN, "orphan"),
            escape::name(&orphan.name),
            human_bytes(orphan.bytes)
        ))?;
    }
    if !orphans.is_empty() {
        output.remark(
            "         orphans do no harm: a checkpoint under way, or left by a crash; \
             'standfast prune' or the job's next start removes what is Standfast's",
        );
    }
    Ok(())
}

fn is_ours(object: &ObjectMeta) -> bool {
    [name::STORE, name::IDENTITY, name::DRAINS].contains(&object.name.as_str())
        || name::parse_ring(&object.name).is_some()
        || name::parse_shard(&object.name).is_some()
        || name::parse_mark(&object.name).is_some()
        || name::parse_manifest(&object.name).is_some()
        || name::parse_image(&object.name).is_some()
        || name::parse_segment(&object.name).is_some()
}

fn verdict(
    job: &OpenJob,
    args: &VerifyArgs,
    checked: &Checked,
    started: Instant,
    output: &Output,
) -> Result<ExitCode> {
    let ok = checked.findings.is_empty();
    let seconds = started.elapsed().as_secs_f64();
    output.record(
        "verdict",
        json!({
            "ok": ok, "quick": args.quick, "checkpoints": checked.checkpoints,
            "sound": checked.sound, "damaged": checked.damaged, "segments": checked.segments,
            "bytes": checked.bytes, "seconds": seconds,
        }),
    )?;
    let read = match args.quick {
        true => "data not read".to_owned(),
        false => {
            let rate = (checked.bytes as f64 / seconds.max(1e-9)) as u64;
            format!("{} read at {}/s", human_bytes(checked.bytes), human_bytes(rate))
        }
    };
    let facts = format!(
        "job {}: {}, {}, {read}",
        job.name,
        counted(checked.checkpoints, "checkpoint"),
        counted(checked.segments, "segment")
    );
    if ok {
        output.line(format_args!("{}  {facts}", output.paint(GOOD, "sound")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let kind = judge(&checked.findings);
    let word = if kind == Kind::Corrupt { "damaged" } else { "unknown" };
    output.line(format_args!(
        "{}  {facts}; sound: {}, not sound: {}",
        output.paint(BAD, word),
        or_none(&checked.sound),
        or_none(&checked.damaged)
    ))?;
    Ok(exit_code(kind))
}

/// Damage outweighs what could not be judged, such as a newer format or a refused access.
fn judge(findings: &[Finding]) -> Kind {
    let is_damage =
        |finding: &&Finding| matches!(finding.kind, Kind::Corrupt | Kind::Missing | Kind::Io);
    match findings.iter().find(is_damage) {
        Some(_) => Kind::Corrupt,
        None => findings.first().map_or(Kind::Corrupt, |finding| finding.kind),
    }
}

fn or_none(versions: &BTreeSet<Version>) -> String {
    if versions.is_empty() { "none".into() } else { list(versions) }
}

fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
