//! `verify`: everything a store holds is read and checked; each damaged object is named, with the
//! checkpoints that need it. The findings come from `standfast_admin`; here they are told.

mod plan;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;
use standfast::{Kind, Version};
use standfast_admin::human_bytes;
use standfast_admin::verify::{self, Checked, Finding, Mark, MarkState, Progress};
use standfast_admin::{Inventory, OpenJob, name, open};

use crate::args::{Global, VerifyArgs};
use crate::bar;
use crate::escape;
use crate::failure::{Result, exit_code};
use crate::output::{BAD, FAINT, GOOD, Output, TITLE, WARN};

/// Verifies the store, or some checkpoints of it.
pub(crate) fn run(global: &Global, args: &VerifyArgs, output: &Output) -> Result<ExitCode> {
    let job = open(&global.place())?;
    let _lock = job.lock()?;
    let inventory = job.inventory()?;
    if args.restart {
        return plan::run(&job, &inventory, args, output);
    }
    let wanted = verify::wanted(&inventory, &args.versions)?;
    let started = Instant::now();
    let (bar, progress) = (bar::bytes(output, 0, "verifying"), Progress::default());
    let checked = bar::follow(&bar, &progress.done, Some(&progress.total), || {
        verify::verify(&job, &inventory, &wanted, args.quick, &progress)
    });
    bar.finish_and_clear();
    for finding in &checked.findings {
        tell(finding, output)?;
    }
    for mark in verify::settle_marks(&job, &inventory, &checked, !args.quick)? {
        tell_mark(&mark, output)?;
    }
    if args.versions.is_empty() {
        orphans(&job, &inventory, output)?;
    }
    let missing = checked.findings.iter().any(|finding| finding.kind == Kind::Missing);
    if missing && job.parts.len() == 1 && job.store.open(name::IDENTITY).is_ok() {
        output.remark(
            "         where nodes have stores of their own, each holds a part: give all with \
             --stores, or ask 'standfast verify --restart' what the ring brings back",
        );
    }
    verdict(&job, args, &checked, started, output)
}

fn tell(finding: &Finding, output: &Output) -> Result<()> {
    let versions: Vec<u64> = finding.checkpoints.iter().map(|version| version.0).collect();
    let fields = json!({
        "object": finding.object, "kind": finding.kind.name(), "what": finding.what,
        "count": finding.count, "checkpoints": versions,
    });
    output.record("damage", fields)?;
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

fn tell_mark(mark: &Mark, output: &Output) -> Result<()> {
    let Mark { version, why, state } = mark;
    let what = match state {
        MarkState::Damaged => "it is damaged: a restart passes it over".into(),
        MarkState::Unread => "verify without --quick clears the mark if it is whole".into(),
        MarkState::Cleared => "it is whole: its mark is cleared".into(),
        MarkState::Stays(error) => format!("it is whole, but its mark stays: {error}"),
    };
    let cleared = matches!(state, MarkState::Cleared);
    output.record("mark", json!({ "version": version, "what": why, "cleared": cleared }))?;
    output.line(format_args!(
        "{}   {}\n         {}\n         {}",
        output.paint(WARN, "marked"),
        output.paint(TITLE, format_args!("checkpoint {version}")),
        escape::name(why),
        output.paint(FAINT, escape::name(&what)),
    ))
}

fn orphans(job: &OpenJob, inventory: &Inventory, output: &Output) -> Result<()> {
    let orphans = verify::orphans(job, inventory)?;
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

fn verdict(
    job: &OpenJob,
    args: &VerifyArgs,
    checked: &Checked,
    started: Instant,
    output: &Output,
) -> Result<ExitCode> {
    let ok = checked.findings.is_empty();
    let seconds = started.elapsed().as_secs_f64();
    let fields = json!({
        "ok": ok, "quick": args.quick, "checkpoints": checked.checkpoints,
        "intact": checked.intact, "damaged": checked.damaged, "segments": checked.segments,
        "bytes": checked.bytes, "seconds": seconds,
    });
    output.record("verdict", fields)?;
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
        output.line(format_args!("{}  {facts}", output.paint(GOOD, "intact")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let kind = checked.verdict();
    let word = if kind == Kind::Corrupt { "damaged" } else { "unknown" };
    output.line(format_args!(
        "{}  {facts}; intact: {}, not intact: {}",
        output.paint(BAD, word),
        or_none(&checked.intact),
        or_none(&checked.damaged)
    ))?;
    Ok(exit_code(kind))
}

fn or_none(versions: &BTreeSet<Version>) -> String {
    if versions.is_empty() { "none".into() } else { list(versions) }
}

fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
