//! The solver as a process: with or without protection, until its answer or its death.
//!
//! This is also the pattern for a program of one's own: allocate protected memory, restart if
//! there is something to restart from, compute, checkpoint every so often.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use standfast::config::Loaded;
use standfast::{Job, Level, Progress, Protected, Version};

use super::message::Message;
use super::{Solver, fill_conductivity};
use crate::args::{Global, WorkerArgs};
use crate::failure::{Failure, Result};

/// Step messages over a whole run, at most.
const STEP_MESSAGES: u64 = 2000;

/// Runs the solver to its end.
pub(crate) fn run(global: &Global, args: &WorkerArgs) -> Result<ExitCode> {
    // Whatever ends the demonstration ends its solver as well.
    let with_parent = rustix::process::Signal::KILL;
    rustix::process::set_parent_process_death_signal(Some(with_parent))
        .map_err(|error| Failure::os("follow", "the demonstration", error.into()))?;
    if args.protect { protected(global, args) } else { plain(args) }?;
    Ok(ExitCode::SUCCESS)
}

/// The program as it was before.
fn plain(args: &WorkerArgs) -> Result<()> {
    let size = args.size as usize;
    let (mut field, mut conductivity) = (vec![0.0; size * size], vec![0.0; size * size]);
    fill_conductivity(&mut conductivity, size);
    say(&Message::Started { step: 0, version: None, passed_over: 0 })?;
    let started = Instant::now();
    let mut solver = Solver::new(size, args.steps);
    for step in 0..args.steps {
        solver.step(step, &mut field, &conductivity);
        say_step(args, step + 1)?;
    }
    let seconds = started.elapsed().as_secs_f64();
    write_answer(&args.answer, &field)?;
    say(&Message::Finished { steps: args.steps, seconds })
}

/// The same program, protected.
fn protected(global: &Global, args: &WorkerArgs) -> Result<()> {
    let job = Job::open_loaded(settings(global)?)?;
    let size = args.size as usize;
    let field = job.alloc::<f64>("temperature", size * size)?;
    let conductivity = job.alloc::<f64>("conductivity", size * size)?;
    let step = job.alloc::<u64>("step", 1)?;
    start(&job, &conductivity, &step, size)?;

    let (started, first) = (Instant::now(), step.read()[0]);
    let mut solver = Solver::new(size, args.steps);
    let mut pending = None;
    while step.read()[0] < args.steps {
        let now = step.read()[0];
        solver.step(now, &mut field.write(), &conductivity.read());
        step.write()[0] = now + 1;
        say_step(args, now + 1)?;
        if (now + 1).is_multiple_of(args.every) {
            finish(&job, pending.take())?;
            pending = Some((job.checkpoint(None)?, now + 1));
        }
        if let Some((version, _)) = pending
            && !matches!(job.poll(version)?, Progress::Reached(_))
        {
            finish(&job, pending.take())?;
        }
    }
    finish(&job, pending)?;
    let seconds = started.elapsed().as_secs_f64();
    write_answer(&args.answer, &field.read())?;
    say(&Message::Finished { steps: args.steps - first, seconds })?;
    job.close()?;
    Ok(())
}

fn settings(global: &Global) -> Result<Loaded> {
    let own = [("store", &global.store), ("job", &global.job)];
    let mut settings: Vec<(String, String)> = own
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
        .collect();
    // The closing block counts every checkpoint.
    settings.push(("keep".into(), "all".into()));
    Ok(Loaded::load(&settings)?)
}

/// Goes on from the newest checkpoint, or begins.
fn start(
    job: &Job,
    conductivity: &Protected<f64>,
    step: &Protected<u64>,
    size: usize,
) -> Result<()> {
    let message = match job.restart()? {
        Some(restarted) => Message::Started {
            step: step.read()[0],
            version: Some(restarted.version.0),
            passed_over: restarted.skipped.len(),
        },
        None => {
            fill_conductivity(&mut conductivity.write(), size);
            Message::Started { step: 0, version: None, passed_over: 0 }
        }
    };
    say(&message)
}

/// Waits for a checkpoint and tells of it.
fn finish(job: &Job, pending: Option<(Version, u64)>) -> Result<()> {
    let Some((version, step)) = pending else { return Ok(()) };
    job.wait(version, Level::Local)?;
    let stats = job.report(version)?.stats;
    say(&Message::Checkpoint { version: version.0, step, stats })
}

fn say_step(args: &WorkerArgs, step: u64) -> Result<()> {
    if step.is_multiple_of((args.steps / STEP_MESSAGES).max(1)) {
        say(&Message::Step { step })?;
    }
    Ok(())
}

fn say(message: &Message) -> Result<()> {
    let line = serde_json::to_string(message).expect("messages are plain values");
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::os("report to", "the demonstration", error))
}

fn write_answer(path: &Path, field: &[f64]) -> Result<()> {
    let write = || {
        let mut file = BufWriter::new(std::fs::File::create(path)?);
        field.iter().try_for_each(|value| file.write_all(&value.to_le_bytes()))?;
        file.flush()
    };
    write().map_err(|error| Failure::os("write", path.display(), error))
}
