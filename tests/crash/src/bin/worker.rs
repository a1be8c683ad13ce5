//! The worker: the program that crash tests start, kill and start again.
//!
//! ```text
//! crash-worker run DIR SEED THREADS STEPS waiting|overlapping [POINT NTH]
//! crash-worker trace DIR SEED THREADS STEPS
//! crash-worker check DIR SEED THREADS DURABLE BEGUN
//! crash-worker hold DIR SEED THREADS
//! ```
//! `run` with a point kills itself there with a real SIGKILL: no destructor runs, no buffer is
//! flushed, exactly as when somebody else had done it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use standfast::{Level, Version};
use standfast_crash_tests::checker::check_dir;
use standfast_crash_tests::die::die_at;
use standfast_crash_tests::program::{Program, Setup};
use standfast_crash_tests::report::{Facts, Line};

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [verb, dir, seed, threads, rest @ ..] = words.as_slice() else {
        bail!("crash-worker VERB DIR SEED THREADS ...");
    };
    let setup = Setup { dir, seed: seed.parse()?, threads: threads.parse()? };
    match (*verb, rest) {
        ("run", [steps, style, point @ ..]) => {
            if let [name, nth] = point {
                die_at((*name).to_owned(), nth.parse()?)?;
            }
            run(&setup, steps.parse()?, *style == "overlapping", |_| ())
        }
        ("trace", [steps]) => trace(&setup, steps.parse()?),
        ("check", [durable, begun]) => {
            check(&setup, Facts { durable: durable.parse()?, begun: begun.parse()? })
        }
        ("hold", []) => hold(&setup),
        _ => bail!("crash-worker: {words:?} is no command"),
    }
}

fn run(
    setup: &Setup<'_>,
    steps: u64,
    overlapping: bool,
    at_step: impl Fn(u64),
) -> anyhow::Result<()> {
    let program = Program::open(setup).context("opening")?;
    let newest = program.job.list().first().map_or(0, |manifest| manifest.version.0);
    if newest > 0 {
        program.job.restart().context("restarting")?;
        Line::Durable(newest).tell();
    }
    let mut unheard = None;
    for step in newest + 1..=newest + steps {
        at_step(step);
        program.go_to(step);
        Line::Begun(step).tell();
        let version = program.job.checkpoint(None).context("checkpoint")?;
        if !overlapping {
            acknowledge(&program, version)?;
        } else if let Some(previous) = unheard.replace(version) {
            acknowledge(&program, previous)?;
        }
    }
    if let Some(last) = unheard {
        acknowledge(&program, last)?;
    }
    Ok(program.job.close()?)
}

fn acknowledge(program: &Program, version: Version) -> anyhow::Result<()> {
    program.job.wait(version, Level::Local).with_context(|| format!("checkpoint {version}"))?;
    Line::Durable(version.0).tell();
    Ok(())
}

/// Runs without dying and tells which points are passed, how often, and during which step.
fn trace(setup: &Setup<'_>, steps: u64) -> anyhow::Result<()> {
    let step = Arc::new(AtomicU64::new(0));
    for point in standfast_checkpoint::FAILPOINTS.iter().chain(standfast_store::FAILPOINTS) {
        let (step, passed) = (Arc::clone(&step), AtomicU64::new(0));
        let callback = move || {
            let nth = passed.fetch_add(1, Ordering::SeqCst) + 1;
            Line::Passed((*point).into(), nth, step.load(Ordering::SeqCst)).tell();
        };
        fail::cfg_callback(*point, callback).map_err(anyhow::Error::msg)?;
    }
    run(setup, steps, false, |now| step.store(now, Ordering::SeqCst))
}

fn check(setup: &Setup<'_>, facts: Facts) -> anyhow::Result<()> {
    let checked = check_dir(setup, facts);
    Line::Durable(checked.newest).tell();
    match checked.findings.as_slice() {
        [] => Ok(()),
        findings => bail!("after {facts:?}:\n  {}", findings.join("\n  ")),
    }
}

/// Holds the store open until the parent closes the pipe.
fn hold(setup: &Setup<'_>) -> anyhow::Result<()> {
    let _program = Program::open(setup)?;
    Line::Durable(0).tell();
    std::io::read_to_string(std::io::stdin())?;
    Ok(())
}
