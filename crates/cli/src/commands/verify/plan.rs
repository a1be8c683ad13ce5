//! `verify --plan`: what a restart from the stores at hand would do, told before it does it.
//!
//! Data: what the stores have of a checkpoint -> the plan that a restart would follow, by the same
//! function -> what is made again, where, from what; or what is missing, which nodes would help, and
//! the newest older checkpoint that can be restored.

use std::process::ExitCode;

use serde_json::json;
use standfast::ring::{self, GroupLoss, GroupPlan, Place, Plan, Survey, Topology, Unusable};
use standfast::{Kind, Manifest, human_bytes};
use standfast_restart::Inventory;

use crate::args::VerifyArgs;
use crate::commands::ring::list;
use crate::escape;
use crate::failure::{Result, exit_code};
use crate::output::{BAD, FAINT, GOOD, Output, TITLE, WARN};
use crate::place::{self, OpenJob};

/// Plans the restart from a checkpoint, the newest if none is named.
pub(super) fn run(
    job: &OpenJob,
    inventory: &Inventory,
    args: &VerifyArgs,
    output: &Output,
) -> Result<ExitCode> {
    let manifest = place::choose(inventory, args.versions.first().copied())?;
    let outlook = Outlook::of(job, manifest, !args.quick)?;
    outlook.tell(job, manifest, output)?;
    if outlook.is_restorable() {
        return Ok(ExitCode::SUCCESS);
    }
    let older = inventory.checkpoints.iter().skip_while(|other| other.version != manifest.version);
    let mut found = None;
    for other in older.skip(1) {
        // Names and lengths only: a restart reads and knows better.
        if Outlook::of(job, other, false)?.is_restorable() {
            found = Some(other.version);
            break;
        }
    }
    output.record("older", json!({ "version": found }))?;
    output.line(match found {
        Some(version) => format!("\nthe newest older checkpoint that can be restored: {version}"),
        None => "\nno older checkpoint can be restored from these stores either".into(),
    })?;
    Ok(exit_code(Kind::Corrupt))
}

/// What can be done about a checkpoint.
enum Outlook {
    /// It has not reached the ring: these ranks' files are not there.
    Local {
        missing: Vec<usize>,
    },
    Ring {
        topology: Box<Topology>,
        survey: Survey,
        plan: Plan,
    },
}

impl Outlook {
    fn of(job: &OpenJob, manifest: &Manifest, deep: bool) -> Result<Self> {
        let Some(topology) = ring::read(&*job.store, manifest)? else {
            let missing = ring::missing_ranks(&*job.store, manifest)?;
            return Ok(Self::Local { missing });
        };
        let survey = ring::survey(&job.parts, manifest, &topology, deep)?;
        let plan = survey.plan(&topology);
        Ok(Self::Ring { topology: Box::new(topology), survey, plan })
    }

    fn is_restorable(&self) -> bool {
        match self {
            Self::Local { missing } => missing.is_empty(),
            Self::Ring { plan, .. } => plan.lost.is_empty(),
        }
    }

    /// How the restart will go, in a word.
    fn word(&self) -> &'static str {
        match self {
            _ if !self.is_restorable() => "impossible",
            Self::Ring { topology, plan, .. } if decodes(topology, plan) => "fast",
            _ => "local",
        }
    }

    fn tell(&self, job: &OpenJob, manifest: &Manifest, output: &Output) -> Result<()> {
        let level = ring::level(&*job.store, manifest);
        let (groups, lost) = match self {
            Self::Local { .. } => (0, 0),
            Self::Ring { plan, .. } => (plan.groups.len(), plan.lost.len()),
        };
        output.record(
            "plan",
            json!({
                "version": manifest.version, "level": level, "stores": job.parts.len(),
                "recovery": self.word(), "groups": groups, "groups_lost": lost,
            }),
        )?;
        output.line(format_args!(
            "{}  {}",
            output
                .paint(TITLE, format_args!("checkpoint {} of job {}", manifest.version, job.name)),
            output
                .paint(FAINT, format_args!("level {level}, {} looked at", stores(job.parts.len())))
        ))?;
        match self {
            Self::Local { missing } => local(missing, output),
            Self::Ring { topology, survey, plan } => ring_plan(topology, survey, plan, output),
        }
    }
}

fn stores(count: usize) -> String {
    if count == 1 { "1 store".into() } else { format!("{count} stores") }
}

/// Whether bytes of a rank must be computed.
fn decodes(topology: &Topology, plan: &Plan) -> bool {
    let is_member = |group: &GroupPlan, place: &Place| {
        (place.piece.index as usize) < topology.members(group.group).len()
    };
    plan.groups.iter().any(|group| group.targets.iter().any(|place| is_member(group, place)))
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
    output.record(
        "lost",
        json!({
            "sector": loss.group.sector, "level": loss.group.level, "ranks": lost,
            "shards": loss.shards, "wanted": wanted,
        }),
    )?;
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
    let members = topology.members(group.group);
    let longest = group.member_bytes.iter().copied().max().unwrap_or(0);
    let what = |place: &Place| match members.get(place.piece.index as usize) {
        Some(Some(rank)) => format!("files of rank {rank}"),
        Some(None) => "an empty place".into(),
        None => format!("shard {}", place.piece.index as usize - members.len()),
    };
    let from: Vec<String> =
        group.sources.iter().filter(|place| place.rank.is_some()).map(what).collect();
    let mut sent = 0u64;
    for target in &group.targets {
        let bytes = group.member_bytes.get(target.piece.index as usize).copied().unwrap_or(longest);
        sent = sent.saturating_add(bytes.saturating_mul(from.len() as u64));
        let node = target.rank.map(|rank| topology.name_of(topology.node_of(rank)));
        output.record(
            "make",
            json!({
                "sector": group.group.sector, "level": group.group.level, "what": what(target),
                "rank": target.rank, "node": node, "bytes": bytes, "from": from,
            }),
        )?;
        output.line(format_args!(
            "{}  {}: {} ({}) on {} {}",
            output.paint(TITLE, "make"),
            group.group,
            what(target),
            human_bytes(bytes),
            escape::name(&node.unwrap_or_default()),
            output.paint(FAINT, format_args!("from {}", from.join(", ")))
        ))?;
    }
    Ok(sent)
}

/// Which nodes are not there, and which of them would help.
fn away(topology: &Topology, survey: &Survey, output: &Output) -> Result<()> {
    let whole = survey.whole_ranks();
    let is_away = |node: &usize| topology.ranks_of(*node).iter().all(|rank| !whole.contains(rank));
    let away: Vec<usize> = (0..topology.nodes()).filter(is_away).collect();
    let names = |nodes: &[usize]| -> Vec<String> {
        nodes.iter().map(|node| topology.name_of(*node)).collect()
    };
    let repair = match topology.outlook(&away, &[]) {
        Ok(ring::Outlook::Slow { repair }) => repair,
        _ => Vec::new(),
    };
    output.record("away", json!({ "nodes": names(&away), "needed": names(&repair) }))?;
    let help = match repair.is_empty() {
        true => "what is damaged on the nodes that are here is too much".to_owned(),
        false => format!(
            "slow recovery: {} must come back with their disks; the rest is then decoded",
            names(&repair).join(", ")
        ),
    };
    let text = format!("not here: {}; {help}", names(&away).join(", "));
    output.line(format_args!("{}  {}", output.paint(BAD, "impossible"), escape::name(&text)))
}

fn ranks(all: &[usize]) -> String {
    if all.len() == 1 { format!("rank {}", all[0]) } else { format!("ranks {}", list(all)) }
}
