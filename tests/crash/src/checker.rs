//! The checker: opens a store after a crash and compares everything with what was promised.
//!
//! Data: the facts that the dead program had been told -> findings; none means that all is well.
//!
//! What must hold, with `keep` checkpoints kept and versions counted by ones:
//! - The newest checkpoint is the last one acknowledged, or one that was begun after it.
//! - It and its predecessor are there; a third one only if the newest had not been acknowledged
//!   yet, for pruning comes before the acknowledgement. Nothing else is offered.
//! - Each of them restores to exactly the contents of its step.
//! - Opening leaves no file that belongs to no checkpoint.
//! - The program can go on from there, and what it then stores comes back too.

use std::collections::HashSet;
use std::sync::Arc;

use standfast::config::Config;
use standfast::{Level, Rank, Version, location};
use standfast_format::name;
use standfast_restart::Inventory;
use standfast_store::{Options, Store};

use crate::program::{JOB, KEEP, Program, Setup};
use crate::report::Facts;

/// What the checker found, and the newest checkpoint that it left behind.
#[derive(Debug, Default)]
pub struct Checked {
    /// Broken promises, in words.
    pub findings: Vec<String>,
    /// The newest version after the checker went on from the restored one.
    pub newest: u64,
}

/// Checks a job's directory.
pub fn check_dir(setup: &Setup<'_>, facts: Facts) -> Checked {
    let place = location::of_job(&Config::default().at(setup.dir).of_job(JOB));
    match standfast_store::open(&place, &Options::default()) {
        Ok(store) => {
            let mut checked = check(setup, store, facts);
            checked.findings.extend(parts(place.as_ref()));
            checked
        }
        Err(error) => Checked { findings: vec![error.to_string()], newest: 0 },
    }
}

/// Checks a store of any kind.
pub fn check(setup: &Setup<'_>, store: Arc<dyn Store>, facts: Facts) -> Checked {
    let mut findings = Vec::new();
    let newest = match Program::open_store(setup, Arc::clone(&store)) {
        Err(error) => {
            findings.push(format!("the store cannot be opened: {error}"));
            0
        }
        Ok(program) => {
            findings.extend(leftovers(&*store, 1));
            let offered = offered(&program, facts, &mut findings);
            restore_each(&program, &offered, &mut findings);
            restore_newest(&program, &offered, &mut findings);
            let newest = go_on(&program, &offered, &mut findings);
            findings.extend(leftovers(&*store, 1));
            newest
        }
    };
    Checked { findings, newest }
}

/// The versions on offer, newest first, compared with those that may and must be there.
fn offered(program: &Program, facts: Facts, findings: &mut Vec<String>) -> Vec<u64> {
    let offered: Vec<u64> = program.job.list().iter().map(|manifest| manifest.version.0).collect();
    let newest = offered.first().copied().unwrap_or(0);
    if !(facts.durable..=facts.begun).contains(&newest) {
        findings.push(format!("the newest checkpoint is {newest}, after {facts:?}"));
    }
    let kept = |many: usize| (1..=newest).rev().take(many).collect::<Vec<u64>>();
    let unpruned = newest > facts.durable && offered == kept(KEEP + 1);
    if offered != kept(KEEP) && !unpruned {
        findings.push(format!("checkpoints {offered:?} are offered, after {facts:?}"));
    }
    offered
}

fn restore_each(program: &Program, offered: &[u64], findings: &mut Vec<String>) {
    for version in offered {
        program.scribble();
        match program.job.restart_from(Version(*version)) {
            Ok(_) if program.is_at(*version) => {}
            Ok(_) => findings.push(format!("checkpoint {version} restores to something else")),
            Err(error) => findings.push(format!("checkpoint {version} is lost: {error}")),
        }
    }
}

fn restore_newest(program: &Program, offered: &[u64], findings: &mut Vec<String>) {
    program.scribble();
    let newest = offered.first();
    match (program.job.restart(), newest) {
        (Ok(Some(restarted)), Some(newest)) => {
            if restarted.version.0 != *newest || !program.is_at(*newest) {
                findings.push(format!("restart gives {restarted:?} instead of {newest}"));
            }
            if !restarted.skipped.is_empty() || !restarted.unclaimed.is_empty() {
                findings.push(format!("restart had to pass something over: {restarted:?}"));
            }
        }
        (Ok(None), None) => {}
        (outcome, _) => findings.push(format!("restart of {newest:?} gives {outcome:?}")),
    }
}

/// Takes two further checkpoints, so that pruning runs as well; returns the newest.
fn go_on(program: &Program, offered: &[u64], findings: &mut Vec<String>) -> u64 {
    let newest = offered.first().copied().unwrap_or(0);
    for step in newest + 1..=newest + 2 {
        program.go_to(step);
        let taken = program
            .job
            .checkpoint(None)
            .and_then(|version| program.job.wait(version, Level::Local).map(|()| version));
        match taken {
            Ok(version) if version.0 == step => {}
            other => {
                findings.push(format!("checkpoint {step} after the crash gives {other:?}"));
                return step - 1;
            }
        }
    }
    let left: Vec<u64> = program.job.list().iter().map(|manifest| manifest.version.0).collect();
    if left != [newest + 2, newest + 1] {
        findings.push(format!("after going on {left:?} are offered"));
    }
    restore_each(program, &left, findings);
    newest + 2
}

/// Objects that belong to no checkpoint of a job of so many ranks.
pub(crate) fn leftovers(store: &dyn Store, ranks: u32) -> Vec<String> {
    let (inventory, objects) = match (Inventory::read(store), store.list("")) {
        (Ok(inventory), Ok(objects)) => (inventory, objects),
        (inventory, objects) => {
            return vec![format!("it cannot be listed: {:?} {:?}", inventory.err(), objects.err())];
        }
    };
    let mut known = HashSet::from(name::HEADERS.map(str::to_owned));
    known.extend([name::IDENTITY, name::HISTORY].map(str::to_owned));
    for manifest in &inventory.checkpoints {
        known.insert(name::manifest(manifest.version, Level::Local));
        let image = |rank| name::image(manifest.version, manifest.attempt, Rank(rank));
        known.extend((0..ranks).map(image));
        known.extend(manifest.segments.iter().map(|segment| name::segment(segment.id)));
    }
    let damaged = inventory.damaged.iter().map(|damaged| format!("damaged: {}", damaged.error));
    let of_ring = |object: &str| {
        let shard = name::parse_shard(object).map(|(_, attempt, _)| attempt);
        let attempt = shard.or_else(|| name::parse_ring(object).map(|(_, attempt)| attempt));
        inventory.checkpoints.iter().any(|manifest| Some(manifest.attempt) == attempt)
    };
    let orphans =
        objects.iter().filter(|object| !known.contains(&object.name) && !of_ring(&object.name));
    damaged.chain(orphans.map(|object| format!("leftover: {}", object.name))).collect()
}

/// Files of unfinished writers.
pub fn parts(dir: &std::path::Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(parts(&path));
        } else if path.extension().is_some_and(|extension| extension == "part") {
            found.push(format!("leftover: {}", path.display()));
        }
    }
    found
}
