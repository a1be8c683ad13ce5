//! `prune`: old checkpoints go, and the files that only they needed.
//!
//! Data: inventory and listing -> plan, printed first -> a yes -> locks -> the same plan again?
//! -> carried out.
//!
//! Why the plan is made twice: nobody should be locked out while a person thinks, and nothing
//! may go that was not shown.

use std::collections::HashSet;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use serde_json::json;
use standfast::prune::{self, Keep, Plan};
use standfast::{Kind, Version, human_bytes};
use standfast_format::{SegmentId, name};
use standfast_restart::Inventory;
use standfast_store::Lock;

use crate::args::{Global, PruneArgs};
use crate::escape;
use crate::failure::{Failure, Result};
use crate::output::{BAD, GOOD, Output, TITLE, WARN};
use crate::place::{self, OpenJob};

/// Plans, shows, asks, prunes.
pub(crate) fn run(global: &Global, args: &PruneArgs, output: &Output) -> Result<ExitCode> {
    let job = place::open(global)?;
    let inventory = job.inventory()?;
    let keep = keep(&job, &inventory, args)?;
    let plan = prune::plan(&inventory, &job.store.list("")?, &keep);
    tell(&job, &inventory, &plan, output)?;
    if plan.is_empty() {
        output.line(output.paint(GOOD, "nothing to prune"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !confirmed(output)? {
        return Ok(ExitCode::SUCCESS);
    }
    let _writer = job.store.lock(Lock::Writer)?;
    let _readers = job.store.lock(Lock::ReadExclusive)?;
    let again = prune::plan(&job.inventory()?, &job.store.list("")?, &keep);
    if again != plan {
        return Err(Failure::new(Kind::Busy, "the store changed since the plan was made")
            .advise("nothing was removed: run prune again"));
    }
    prune::execute(&*job.store, &plan).map_err(standfast::Error::from)?;
    let unsealed = job.store.discard_unsealed()?;
    let objects = plan.manifests.len() + plan.images.len() + plan.segments.len();
    output.record(
        "pruned",
        json!({ "objects": objects, "bytes": plan.bytes(), "unsealed_bytes": unsealed }),
    )?;
    output.line(format_args!(
        "{}  {objects} files, {} freed",
        output.paint(GOOD, "pruned"),
        human_bytes(plan.bytes().saturating_add(unsealed))
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn keep(job: &OpenJob, inventory: &Inventory, args: &PruneArgs) -> Result<Keep> {
    let versions: Vec<Version> = args.keep_version.iter().copied().map(Version).collect();
    for version in &versions {
        inventory.checkpoint(*version)?;
    }
    let newest = args.keep.unwrap_or(job.config.keep) as usize;
    let every = args.keep_every.unwrap_or(job.config.keep_every);
    let drop_damaged = args.damaged;
    let mut keep = Keep { newest, versions, every, drop_damaged, ..Keep::default() };
    // Never the only one that can be restarted from.
    keep.versions.extend(prune::newest_whole(inventory, &job.store.list("")?));
    keep.versions.extend(prune::kept_by_others(&*job.store, inventory, &keep));
    Ok(keep)
}

fn tell(job: &OpenJob, inventory: &Inventory, plan: &Plan, output: &Output) -> Result<()> {
    let numbers = |versions: &[Version]| versions.iter().map(|v| v.0).collect::<Vec<u64>>();
    let objects = || plan.manifests.iter().chain(&plan.images).chain(&plan.segments);
    output.record(
        "plan",
        json!({
            "keep": numbers(&plan.keep), "remove": numbers(&plan.remove),
            "objects": objects().count(), "bytes": plan.bytes(), "unreadable": plan.unreadable,
        }),
    )?;
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
    stays(inventory, plan, output)?;
    for object in &plan.unreadable {
        output.line(format_args!(
            "  {} {} cannot be read: nobody knows which files it needs, so none of unknown use goes (--damaged gives it up)",
            output.paint(WARN, "note"),
            escape::name(object)
        ))?;
    }
    output.line(format_args!("  frees   {}", human_bytes(plan.bytes())))
}

/// Segments of removed checkpoints that stay, and the kept checkpoints that need them.
fn stays(inventory: &Inventory, plan: &Plan, output: &Output) -> Result<()> {
    let going: HashSet<SegmentId> =
        plan.segments.iter().filter_map(|object| name::parse_segment(&object.name)).collect();
    let mut told = HashSet::new();
    let removed = inventory.checkpoints.iter().filter(|m| plan.remove.contains(&m.version));
    for segment in removed.flat_map(|manifest| &manifest.segments) {
        if going.contains(&segment.id) || !told.insert(segment.id) {
            continue;
        }
        let needed: Vec<Version> = inventory
            .checkpoints
            .iter()
            .filter(|manifest| plan.keep.contains(&manifest.version))
            .filter(|manifest| manifest.segments.iter().any(|own| own.id == segment.id))
            .map(|manifest| manifest.version)
            .collect();
        output.record(
            "stays",
            json!({
                "segment": segment.id.to_string(), "bytes": segment.file_bytes,
                "needed_by": needed,
            }),
        )?;
        if !needed.is_empty() {
            output.line(format_args!(
                "  stays   segment {} ({}): needed by {}",
                segment.id,
                human_bytes(segment.file_bytes),
                list(&needed)
            ))?;
        }
    }
    Ok(())
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
