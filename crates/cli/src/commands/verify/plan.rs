//! `verify --restart`: what a restart from the stores at hand would do, told before it does it.

use std::process::ExitCode;

use serde_json::json;
use standfast::ring::{self, GroupLoss, GroupPlan, Plan, Survey, Topology, Unusable};
use standfast::{Kind, Manifest};
use standfast_admin::human_bytes;
use standfast_admin::restart_plan::{self, Outlook, decodes};
use standfast_admin::{Inventory, OpenJob, choose};

use crate::args::VerifyArgs;
use crate::commands::ring::list;
use crate::escape;
use crate::failure::{Result, exit_code};
use crate::output::{BAD, FAINT, GOOD, Output, TITLE, WARN};

/// Plans the restart from a checkpoint, the newest if none is named.
pub(super) fn run(
    job: &OpenJob,
    inventory: &Inventory,
    args: &VerifyArgs,
    output: &Output,
) -> Result<ExitCode> {
    let manifest = choose(inventory, args.versions.first().copied())?;
    let outlook = Outlook::of(job, manifest, !args.quick)?;
    tell(&outlook, job, manifest, output)?;
    if outlook.is_restorable() {
        return Ok(ExitCode::SUCCESS);
    }
    let found = restart_plan::newest_older(job, inventory, manifest)?;
    output.record("older", json!({ "version": found }))?;
    output.line(match found {
        Some(version) => format!("\nthe newest older checkpoint that can be restored: {version}"),
        None => "\nno older checkpoint can be restored from these stores either".into(),
    })?;
    Ok(exit_code(Kind::Corrupt))
}

fn tell(outlook: &Outlook, job: &OpenJob, manifest: &Manifest, output: &Output) -> Result<()> {
    let level = ring::level(&*job.store, manifest);
    let (groups, lost) = match outlook {
        Outlook::Local { .. } => (0, 0),
        Outlook::Ring { plan, .. } => (plan.groups.len(), plan.lost.len()),
    };
    let fields = json!({
        "version": manifest.version, "level": level, "stores": job.parts.len(),
        "recovery": outlook.word(), "groups": groups, "groups_lost": lost,
    });
    output.record("plan", fields)?;
    let title = format!("checkpoint {} of job {}", manifest.version, job.name);
    let looked = format!("level {level}, {} looked at", stores(job.parts.len()));
    output.line(output.heading(title, looked))?;
    match outlook {
        Outlook::Local { missing } => local(missing, output),
        Outlook::Ring { topology, survey, plan } => ring_plan(topology, survey, plan, output),
    }
}

fn stores(count: usize) -> String {
    if count == 1 { "1 store".into() } else { format!("{count} stores") }
}

fn local(missing: &[usize], output: &Output) -> Result<()> {
    if missing.is_empty() {
        return output.line(format_args!("{}  nothing is lost", output.paint(GOOD, "local")));
    }
    output.record("lost", json!({ "ranks": missing, "shards": 0, "wanted": missing.len() }))?;
    output.line(format_args!(
        "{}  the files of {} are in none of these stores, and it has no shards: their nodes must \
         come back with their disks",
        output.paint(BAD, "impossible"),
        ranks(missing)
    ))
}

fn ring_plan(topology: &Topology, survey: &Survey, plan: &Plan, output: &Output) -> Result<()> {
    for Unusable { object, why } in &survey.unusable {
        output.record("unusable", json!({ "object": object, "what": why }))?;
        output.line(format_args!(
            "{}  {}: {}",
            output.paint(WARN, "unusable"),
            escape::name(object),
            escape::name(why)
        ))?;
    }
    for loss in &plan.lost {
        tell_loss(topology, loss, output)?;
    }
    let mut sent = 0u64;
    for group in &plan.groups {
        sent = sent.saturating_add(tell_group(topology, group, output)?);
    }
    if !plan.lost.is_empty() {
        return away(topology, survey, output);
    }
    let verdict = match (plan.groups.is_empty(), decodes(topology, plan)) {
        (true, _) => "nothing is lost".to_owned(),
        (false, false) => {
            format!("no rank's files are lost; shards are made again, {} sent", human_bytes(sent))
        }
        (false, true) => format!(
            "decoded on the ranks of the restarted job; {} sent, and the next loss is survived too",
            human_bytes(sent)
        ),
    };
    let word = if decodes(topology, plan) { "fast" } else { "local" };
    output.line(format_args!("{}  {verdict}", output.paint(GOOD, word)))
}

fn tell_loss(topology: &Topology, loss: &GroupLoss, output: &Output) -> Result<()> {
    let lost = loss.ranks(topology);
    let wanted = loss.members.len().saturating_sub(loss.shards);
    let fields = json!({
        "sector": loss.group.sector, "level": loss.group.level, "ranks": lost,
        "shards": loss.shards, "wanted": wanted,
    });
    output.record("lost", fields)?;
    output.line(format_args!(
        "{}  {}: the files of {} are lost, {} of {} shards are left; {wanted} more must come back",
        output.paint(BAD, "lost"),
        loss.group,
        ranks(&lost),
        loss.shards,
        topology.shape().m
    ))
}

/// One group's part of the plan; returns the bytes that are sent.
fn tell_group(topology: &Topology, group: &GroupPlan, output: &Output) -> Result<u64> {
    let mut sent = 0u64;
    for made in restart_plan::made(topology, group) {
        sent = sent.saturating_add(made.bytes.saturating_mul(made.from.len() as u64));
        let fields = json!({
            "sector": group.group.sector, "level": group.group.level, "what": made.what,
            "rank": made.rank, "node": made.node, "bytes": made.bytes, "from": made.from,
        });
        output.record("make", fields)?;
        output.line(format_args!(
            "{}  {}: {} ({}) on {} {}",
            output.paint(TITLE, "make"),
            group.group,
            made.what,
            human_bytes(made.bytes),
            escape::name(&made.node.unwrap_or_default()),
            output.paint(FAINT, format_args!("from {}", made.from.join(", ")))
        ))?;
    }
    Ok(sent)
}

/// Which nodes are not there, and which of them would help.
fn away(topology: &Topology, survey: &Survey, output: &Output) -> Result<()> {
    let (away, repair) = restart_plan::away(topology, survey);
    output.record("away", json!({ "nodes": away, "needed": repair }))?;
    let help = match repair.is_empty() {
        true => "what is damaged on the nodes that are here is too much".to_owned(),
        false => format!(
            "slow recovery: {} must come back with their disks; the rest is then decoded",
            repair.join(", ")
        ),
    };
    let text = format!("not here: {}; {help}", away.join(", "));
    output.line(format_args!("{}  {}", output.paint(BAD, "impossible"), escape::name(&text)))
}

fn ranks(all: &[usize]) -> String {
    if all.len() == 1 { format!("rank {}", all[0]) } else { format!("ranks {}", list(all)) }
}
