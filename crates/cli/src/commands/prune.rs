//! `prune`: old checkpoints go, and the files that only they needed. The plan is shown first.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use serde_json::json;
use standfast::Version;
use standfast::prune::Keep;
use standfast_admin::human_bytes;
use standfast_admin::prune::{self, Proposal};
use standfast_admin::{OpenJob, open};

use crate::args::{CheckpointName, Global, PruneArgs};
use crate::escape;
use crate::failure::{Failure, Result};
use crate::output::{BAD, GOOD, Output, TITLE, WARN};

/// Plans, shows, asks, prunes.
pub(crate) fn run(global: &Global, args: &PruneArgs, output: &Output) -> Result<ExitCode> {
    let job = open(&global.place())?;
    let proposal = prune::propose(&job, keep(&job, args)?)?;
    tell(&job, &proposal, output)?;
    if proposal.plan.is_empty() {
        output.line(output.paint(GOOD, "nothing to prune"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !confirmed(output)? {
        return Ok(ExitCode::SUCCESS);
    }
    let pruned = prune::prune(&job, &proposal)?;
    let (objects, unsealed) = (pruned.objects, pruned.unsealed_bytes);
    let bytes = proposal.plan.bytes();
    output.record(
        "pruned",
        json!({ "objects": objects, "bytes": bytes, "unsealed_bytes": unsealed }),
    )?;
    output.line(format_args!(
        "{}  {objects} files, {} freed",
        output.paint(GOOD, "pruned"),
        human_bytes(bytes.saturating_add(unsealed))
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn keep(job: &OpenJob, args: &PruneArgs) -> Result<Keep> {
    let by_name = !args.version.is_empty() && args.keep.is_none();
    let named = args.version.iter().map(|CheckpointName { version, attempt }| {
        prune::find(job, Version(*version), attempt).map_err(Failure::from)
    });
    Ok(Keep {
        // Who names what goes wants nothing else to go.
        newest: if by_name {
            0
        } else {
            args.keep.or(job.config.place.keep.newest).unwrap_or(0) as usize
        },
        named: named.collect::<Result<_>>()?,
        versions: args.keep_version.iter().copied().map(Version).collect(),
        every: args.keep_every.unwrap_or(job.config.keep_every()),
        drop_damaged: args.damaged,
        ..Keep::default()
    })
}

fn tell(job: &OpenJob, proposal: &Proposal, output: &Output) -> Result<()> {
    let plan = &proposal.plan;
    let numbers = |versions: &[Version]| versions.iter().map(|v| v.0).collect::<Vec<u64>>();
    let objects = || plan.manifests.iter().chain(&plan.images).chain(&plan.segments);
    let fields = json!({
        "keep": numbers(&plan.keep), "remove": numbers(&plan.remove),
        "objects": objects().count(), "bytes": plan.bytes(), "unreadable": plan.unreadable,
    });
    output.record("plan", fields)?;
    output.line(output.paint(TITLE, format_args!("plan for job {}", job.name)))?;
    output.line(format_args!("  keep    {}", list(&plan.keep)))?;
    output.line(format_args!("  remove  {}", list(&plan.remove)))?;
    let sorts = [
        ("manifest", plan.manifests.as_slice()),
        ("image", plan.images.as_slice()),
        ("segment", plan.segments.as_slice()),
    ];
    for (word, objects) in sorts.iter().filter(|(_, objects)| !objects.is_empty()) {
        let bytes = objects.iter().map(|object| object.bytes).fold(0, u64::saturating_add);
        let plural = if objects.len() == 1 { "" } else { "s" };
        output.line(format_args!(
            "          {} {word}{plural}, {}",
            objects.len(),
            human_bytes(bytes)
        ))?;
    }
    for object in objects() {
        output.record("remove", json!({ "object": object.name, "bytes": object.bytes }))?;
    }
    for (segment, needed) in &proposal.stays {
        let (id, bytes) = (segment.id.to_string(), segment.file_bytes);
        output.record("stays", json!({ "segment": id, "bytes": bytes, "needed_by": needed }))?;
        if !needed.is_empty() {
            output.line(format_args!(
                "  stays   segment {id} ({}): needed by {}",
                human_bytes(bytes),
                list(needed)
            ))?;
        }
    }
    for object in &plan.unreadable {
        output.line(format_args!(
            "  {} {} cannot be read: nobody knows which files it needs, so none of unknown use goes (--damaged gives it up)",
            output.paint(WARN, "note"),
            escape::name(object)
        ))?;
    }
    output.line(format_args!("  frees   {}", human_bytes(plan.bytes())))
}

fn list(versions: &[Version]) -> String {
    match versions {
        [] => "no checkpoint".into(),
        [one] => format!("checkpoint {one}"),
        many => {
            let texts: Vec<String> = many.iter().map(Version::to_string).collect();
            format!("checkpoints {}", texts.join(", "))
        }
    }
}

/// Asks on a terminal; elsewhere says how to go on.
fn confirmed(output: &Output) -> Result<bool> {
    if output.json || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        output.remark("this was the plan only: add --yes to carry it out");
        return Ok(false);
    }
    output.raw(format_args!("{} [y/N] ", output.paint(BAD, "remove these?")))?;
    io::stdout().flush().map_err(|error| Failure::os("write to", "the terminal", error))?;
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::os("read from", "the terminal", error))?;
    let yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if !yes {
        output.line("nothing was removed")?;
    }
    Ok(yes)
}
