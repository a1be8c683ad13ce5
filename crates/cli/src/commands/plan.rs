//! `plan`: what interval, levels, groups and codec to use, and what they will cost.
//!
//! Data: assumptions < scheduler < bench file < a job's past < failure log < options ->
//! [`Sourced`] -> the planner of `standfast_admin` -> text, JSON lines or a standfast.toml.
//!
//! Files, environment and stores are read here; the planner itself is pure.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use standfast::Manifest;
use standfast::config::KEYS;
use standfast_admin::drain::read_drains;
use standfast_admin::model::plan::{
    self, Checkpoint, Drain, Field, Inputs, Sourced, bench, failure_log, scheduler,
};
use standfast_admin::model::{ModelError, render};
use standfast_admin::{choose, open};

use crate::args::{Global, PlanArgs};
use crate::escape;
use crate::failure::{Failure, Result};
use crate::output::{Output, TITLE};

/// Gathers the inputs, plans and prints.
pub(crate) fn run(global: &Global, args: &PlanArgs, output: &Output) -> Result<ExitCode> {
    let sourced = gather(global, args, output)?;
    let plan = plan::plan(&sourced.inputs).map_err(|error| wrong_input(&error))?;
    if args.toml {
        let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        output.raw(plan::toml(&plan, &known))?;
        return Ok(ExitCode::SUCCESS);
    }
    if output.json {
        let line = json!({ "values": sourced.inputs, "fields": sourced.fields() });
        output.raw(format_args!("{}\n", render::json_line("inputs", &line)))?;
        output.raw(format_args!("{}\n", render::json_line("plan", &plan)))?;
    }
    output.line(output.paint(TITLE, "planned for"))?;
    let columns = "INPUT|VALUE|FROM";
    output.table(columns, sourced.fields().into_iter().map(row).collect())?;
    output.line(output.paint(TITLE, "\nplan"))?;
    output.line(render::plan(&plan).trim_end())?;
    output
        .remark("\n'standfast plan ... --toml' prints the settings; '--help' explains the inputs");
    Ok(ExitCode::SUCCESS)
}

fn row(field: Field) -> Vec<String> {
    let source = match (field.source.as_str(), option_of(field.name)) {
        ("assumed", Some(option)) => format!("assumed ({option})"),
        _ => escape::name(&field.source),
    };
    vec![field.name.to_owned(), escape::name(&field.value), source]
}

/// Later sources win.
fn gather(global: &Global, args: &PlanArgs, output: &Output) -> Result<Sourced> {
    let mut sourced = Sourced::assumed();
    if args.job.nodes.is_none() {
        from_scheduler(&mut sourced)?;
    }
    if let Some(file) = &args.machine.bench {
        let bench = bench::parse(&read(file)?).map_err(|error| of_file(file, &error))?;
        if !sourced.bench(&bench, &file.display().to_string()) {
            return Err(nothing_in(file));
        }
    }
    if args.from_job {
        from_job(global, args, &mut sourced)?;
    }
    if let Some(file) = &args.failures.failure_log {
        let mtti = failure_log::parse(&read(file)?).map_err(|error| of_file(file, &error))?;
        sourced.failures(&mtti, &file.display().to_string());
        output.record("mtti", json!(mtti))?;
        output.remark(format_args!(
            "{} failures: MTTI {} (95 % interval {} to {})",
            mtti.failures,
            render::duration(mtti.mean_s),
            render::duration(mtti.low_s),
            render::duration(mtti.high_s)
        ));
    }
    from_options(args, &mut sourced);
    Ok(sourced)
}

fn read(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).map_err(|error| Failure::os("read", file.display(), error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn from_scheduler(sourced: &mut Sourced) -> Result<()> {
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let found = scheduler::allocation(&environment).map_err(|error| {
        Failure::new(error.kind(), error.to_string()).advise("give the number of nodes as --nodes")
    })?;
    if let Some(allocation) = found {
        sourced.scheduler(&allocation);
    }
    Ok(())
}

/// What a job, running or not, has done so far: its checkpoints, and what drains left beside them.
fn from_job(global: &Global, args: &PlanArgs, sourced: &mut Sourced) -> Result<()> {
    let job = open(&global.place())?;
    let inventory = job.inventory()?;
    let source = format!("job {}, {} checkpoints", job.name, inventory.checkpoints.len());
    let stores = match inventory.checkpoints.first() {
        Some(newest) => spread(newest, args, sourced, &job.name),
        None => 1,
    };
    let of_node = |manifest: &Manifest| {
        sourced.inputs.job.ranks_per_node.min(manifest.ranks.into()) as f64
            / f64::from(manifest.ranks.max(1))
    };
    let told: Vec<Checkpoint> = inventory
        .checkpoints
        .iter()
        .rev()
        .map(|manifest| {
            let stats = &manifest.stats;
            // The last page of a region may be cut short: never more than was captured.
            let page_bytes = stats.captured_bytes as f64 / (stats.pages as f64).max(1.0);
            Checkpoint {
                protected_bytes: stats.captured_bytes as f64 * of_node(manifest),
                changed_bytes: stats.new_pages as f64 * page_bytes * of_node(manifest),
                blocked_s: stats.blocked_ns as f64 / 1e9,
            }
        })
        .collect();
    if !sourced.checkpoints(&told, &source) {
        return Err(choose(&inventory, None).err().map(Failure::from).unwrap_or_else(|| {
            let kind = standfast::Kind::Missing;
            Failure::new(kind, format!("the checkpoints of job {:?} hold nothing", job.name))
        }));
    }
    if let Some(record) = read_drains(&*job.store) {
        let drains: Vec<Drain> = record
            .last
            .iter()
            .map(|arrival| Drain {
                sent_bytes: arrival.to_bytes as f64,
                elapsed_s: arrival.elapsed_ns as f64 / 1e9,
            })
            .collect();
        sourced.drains(&drains, stores, &format!("job {}, {} drains", job.name, drains.len()));
    }
    Ok(())
}

/// How the job lies on its nodes, where nobody else has said it: a store that holds some of the
/// ranks is that of a node. Tells the number of stores.
fn spread(newest: &Manifest, args: &PlanArgs, sourced: &mut Sourced, job: &str) -> u64 {
    let ranks = u64::from(newest.ranks.max(1));
    let here = (newest.images.len() as u64).clamp(1, ranks);
    let source = format!("job {job}, {here} of its {ranks} ranks in this store");
    let nodes = args.job.nodes.or(sourced.knows("nodes").then_some(sourced.inputs.job.nodes));
    if args.job.ranks_per_node.is_none() && !sourced.knows("ranks_per_node") {
        let all_here = nodes.map_or(ranks, |nodes| ranks.div_ceil(nodes.max(1)));
        sourced.inputs.job.ranks_per_node = if here < ranks { here } else { all_here };
        sourced.note("ranks_per_node", &source);
    }
    let per_node = args.job.ranks_per_node.unwrap_or(sourced.inputs.job.ranks_per_node).max(1);
    sourced.inputs.job.ranks_per_node = per_node;
    if nodes.is_none() {
        sourced.inputs.job.nodes = ranks.div_ceil(per_node);
        sourced.note("nodes", &source);
    }
    ranks.div_ceil(here)
}

/// An option, the field that it sets, and how; false where it is not given.
type Setter = (&'static str, &'static str, fn(&PlanArgs, &mut Inputs) -> bool);

const OPTIONS: [Setter; 24] = [
    ("--nodes", "nodes", |args, i| set(args.job.nodes, &mut i.job.nodes)),
    ("--ranks-per-node", "ranks_per_node", |args, i| {
        set(args.job.ranks_per_node, &mut i.job.ranks_per_node)
    }),
    ("--size", "bytes_per_node", |args, i| set(args.job.size, &mut i.job.bytes_per_node)),
    ("--changed", "changed_share", |args, i| set(args.job.changed, &mut i.job.changed_share)),
    ("--mtti", "mtti_s", |args, i| set(args.failures.mtti, &mut i.failures.mtti_s)),
    ("--process-share", "process_share", |args, i| {
        set(args.failures.process_share, &mut i.failures.process_share)
    }),
    ("--nodes-per-incident", "nodes_per_incident", |args, i| {
        set(args.failures.nodes_per_incident, &mut i.failures.nodes_per_incident)
    }),
    ("--survival", "survival", |args, i| set(args.failures.survival, &mut i.failures.survival)),
    ("--relaunch", "relaunch_s", |args, i| set(args.failures.relaunch, &mut i.failures.relaunch_s)),
    ("--capture", "capture_bps", |args, i| set(args.machine.capture, &mut i.rates.capture_bps)),
    ("--local-write", "local_write_bps", |args, i| {
        set(args.machine.storage.local_write, &mut i.rates.local_write_bps)
    }),
    ("--local-read", "local_read_bps", |args, i| {
        set(args.machine.storage.local_read, &mut i.rates.local_read_bps)
    }),
    ("--global-write", "global_write_bps", |args, i| {
        set(args.machine.storage.global_write, &mut i.rates.global_write_bps)
    }),
    ("--global-read", "global_read_bps", |args, i| {
        set(args.machine.storage.global_read, &mut i.rates.global_read_bps)
    }),
    ("--network", "network_bps", |args, i| {
        set(args.machine.network.network, &mut i.rates.network_bps)
    }),
    ("--network-latency", "network_latency_s", |args, i| {
        set(args.machine.network.network_latency, &mut i.rates.network_latency_s)
    }),
    ("--encode", "encode_bps", |args, i| set(args.machine.network.encode, &mut i.rates.encode_bps)),
    ("--pool-max", "pool_bytes_max", |args, i| set(args.machine.pool_max, &mut i.pool_bytes_max)),
    ("--group-max", "group_max", |args, i| set(args.machine.ring.group_max, &mut i.ring.group_max)),
    ("--local-space", "local_bytes", |args, i| {
        set(args.machine.storage.local_space.map(Some), &mut i.local_bytes)
    }),
    ("--no-agent", "background", |args, i| {
        set(args.machine.no_agent.then_some(false), &mut i.background)
    }),
    ("--group", "group", |args, i| set(args.machine.ring.group.map(Some), &mut i.ring.group)),
    ("--shards", "shards", |args, i| set(args.machine.ring.shards.map(Some), &mut i.ring.shards)),
    ("--codec", "codecs", |args, i| {
        let codecs = &args.machine.codec;
        set((!codecs.is_empty()).then(|| codecs.clone()), &mut i.codecs)
    }),
];

/// Takes over what is given.
fn set<T>(given: Option<T>, place: &mut T) -> bool {
    given.map(|value| *place = value).is_some()
}

fn from_options(args: &PlanArgs, sourced: &mut Sourced) {
    for (option, field, apply) in OPTIONS {
        if apply(args, &mut sourced.inputs) {
            sourced.note(field, option);
        }
    }
}

/// The option that sets a field.
fn option_of(field: &str) -> Option<&'static str> {
    OPTIONS.iter().find(|(_, of, _)| *of == field).map(|(option, ..)| *option)
}

fn wrong_input(error: &ModelError) -> Failure {
    let failure = Failure::new(error.kind(), error.to_string());
    let option = match error {
        ModelError::Field { field, .. } => option_of(field),
        ModelError::Pair { field, .. } => option_of(field),
        ModelError::Infeasible(_) => {
            return failure.advise(
                "ask for less --survival, or allow larger groups (--group-max) or more --shards",
            );
        }
        _ => None,
    };
    match option {
        Some(option) => failure.advise(format!("give another {option}")),
        None => failure.advise("give another --codec"),
    }
}

fn of_file(file: &Path, error: &ModelError) -> Failure {
    Failure::new(error.kind(), format!("{}: {error}", file.display()))
        .advise("'standfast plan --help' tells what the file must hold")
}

fn nothing_in(file: &Path) -> Failure {
    let what = format!("{}: bench output: no measurement in it is known", file.display());
    Failure::new(standfast::Kind::Invalid, what)
        .advise("write it with 'standfast bench --json > FILE'")
}
