//! `demo`: a heat solver is killed in mid-run, restarted, and ends with the same bits.
//!
//! ```text
//! 1 undisturbed run                       -> answer
//! 2 the same, protected, SIGKILL somewhere after the second checkpoint
//! 3 started again: goes on from the newest checkpoint -> answer
//! 4 both answers, byte by byte
//! ```
//! The solver is a process of its own (this program, started as `demo-worker`), so the kill is a
//! real one. Everything lies in a temporary directory that goes with the command, however it
//! ends; with `--store` the checkpoints stay where the user wants them. `make demo` in the sources
//! shows an MPI job that loses its nodes.

mod child;
mod closing;
mod compare;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::json;
use standfast::config::{Config, Origin};
use standfast::{Kind, Stats};
use standfast_admin::{human_bytes, human_ns};

use crate::args::{DemoArgs, Global};
use crate::bar;
use crate::failure::{Failure, Result, exit_code};
use crate::heat::message::Message;
use crate::interrupt;
use crate::output::{FAINT, GOOD, Output, TITLE, WARN};
use child::{Child, Heard};
use compare::compare;

/// The solver is killed within this share of the steps that are left after checkpoint 2.
const KILL_WINDOW: f64 = 0.6;

/// Defaults: cells along a side, steps, checkpoints.
const SIZE: u32 = 1024;
const STEPS: u64 = 1500;
const CHECKPOINTS: u64 = 12;

/// Shows it all.
pub(crate) fn run(global: &Global, args: &DemoArgs, output: &Output) -> Result<ExitCode> {
    interrupt::listen();
    let made = tempfile::Builder::new().prefix("standfast-demo-").tempdir();
    let scratch = made.map_err(|error| Failure::os("make", "a temporary directory", error))?;
    let config = config(global, scratch.path())?;
    let work = Work::of(args)?;
    let identical = Demo { work, output, scratch: scratch.path(), config }.play()?;
    Ok(if identical { ExitCode::SUCCESS } else { exit_code(Kind::Corrupt) })
}

/// Where the checkpoints go; a job that has some already is left alone.
fn config(global: &Global, scratch: &Path) -> Result<Config> {
    let loaded = standfast_admin::load(&global.place())?;
    let mut config = loaded.config.clone();
    if *loaded.origin("job") == Origin::Default {
        config.place.job = "demo".into();
    }
    if global.store.is_none() {
        config.place.store = scratch.join("store").to_string_lossy().into_owned();
        return Ok(config);
    }
    if !standfast_admin::forgets_the_dead(&config.place.store) {
        return Err(Failure::new(
            Kind::Unsupported,
            format!("{} would stay locked by the solver that is killed", config.place.store),
        )
        .advise("show it in a directory; an object store's lock.writer is removed by hand"));
    }
    match standfast_admin::open_job(config.clone()).and_then(|job| job.inventory()) {
        Ok(inventory) if !inventory.checkpoints.is_empty() || !inventory.damaged.is_empty() => {
            Err(Failure::new(
                Kind::Invalid,
                format!(
                    "job {:?} in {} has checkpoints already",
                    config.place.job, config.place.store
                ),
            )
            .advise("choose another --job or --store for the demonstration"))
        }
        Ok(_) => Ok(config),
        Err(error) if error.kind() == Kind::Missing => Ok(config),
        Err(error) => Err(error.into()),
    }
}

/// What a solver has to do.
struct Work {
    /// Cells along each side of the plate.
    size: u32,
    /// Steps in time.
    steps: u64,
    /// Steps between checkpoints.
    every: u64,
}

impl Work {
    /// What was asked for, with defaults where nothing was.
    fn of(args: &DemoArgs) -> Result<Self> {
        let steps = args.steps.unwrap_or(STEPS);
        let every = args.every.unwrap_or_else(|| (steps / CHECKPOINTS).max(1));
        if every.saturating_mul(5) > steps {
            return Err(Failure::new(Kind::Invalid, "--every is more than a fifth of --steps")
                .advise("the demonstration needs some checkpoints before and after the kill"));
        }
        Ok(Self { size: args.size.unwrap_or(SIZE), steps, every })
    }
}

/// The title of a part.
fn act(number: u32, what: &str, output: &Output) -> Result<()> {
    let number = output.paint(TITLE, number);
    output.line(format_args!("\n{number}  {}", output.paint(TITLE, what)))
}

struct Demo<'a> {
    work: Work,
    output: &'a Output,
    scratch: &'a Path,
    config: Config,
}

/// What a run of the solver came to.
#[derive(Default)]
struct Run {
    /// Steps done when it ended.
    step: u64,
    /// Steps that it computed itself.
    computed: u64,
    seconds: f64,
    checkpoints: u64,
}

impl Demo<'_> {
    fn play(&self) -> Result<bool> {
        self.title()?;
        let undisturbed = self.scratch.join("undisturbed");
        let restarted = self.scratch.join("restarted");

        act(1, "an undisturbed run, without checkpoints", self.output)?;
        let first = self.to_the_end(None, &undisturbed, None)?;
        self.told_run("undisturbed", &first)?;

        act(2, "the same run with checkpoints, killed at a random instant", self.output)?;
        let killed = self.killed(&first, &restarted)?;

        act(3, "the program is started again and asks for its state", self.output)?;
        let store = (self.config.place.store.as_str(), self.config.place.job.as_str());
        let last = self.to_the_end(Some(store), &restarted, Some(killed.step))?;
        self.told_run("restarted", &last)?;

        act(4, "both answers, compared byte by byte", self.output)?;
        let identical = compare(&undisturbed, &restarted, self.output)?;
        closing::tell(&self.config, killed.seconds + last.seconds, self.output)?;
        Ok(identical)
    }

    fn title(&self) -> Result<()> {
        let (size, work) = (u64::from(self.work.size), &self.work);
        let bytes = 2 * size * size * 8 + 8;
        let fields = json!({
            "size": size, "steps": work.steps, "every": work.every,
            "protected_bytes": bytes, "store": self.config.place.store,
        });
        self.output.record("demo", fields)?;
        let title = "A heat solver is killed in mid-run, and ends with the same answer";
        self.output.line(self.output.paint(TITLE, title))?;
        self.output.line(self.output.paint(
            FAINT,
            format_args!(
                "{size} x {size} cells, {} steps, {} protected, a checkpoint every {} steps",
                work.steps,
                human_bytes(bytes),
                work.every
            ),
        ))
    }

    fn told_run(&self, act: &str, run: &Run) -> Result<()> {
        self.output
            .record("act", json!({ "act": act, "steps": run.computed, "seconds": run.seconds }))?;
        self.output.line(format_args!("   {} steps in {:.1} s", run.computed, run.seconds))
    }

    /// Lets a solver run to its end. `died` is the step at which its predecessor was killed.
    fn to_the_end(
        &self,
        store: Option<(&str, &str)>,
        answer: &Path,
        died: Option<u64>,
    ) -> Result<Run> {
        let bar = bar::steps(self.output, self.work.steps, "running");
        let mut child = Child::start(&self.work, store, answer)?;
        let mut run = Run::default();
        while let Heard::Message(message) = child.hear(None)? {
            self.heard(&message, &mut run, died, &bar)?;
        }
        bar.finish_and_clear();
        child.finish()?;
        Ok(run)
    }

    /// Lets a solver run until some instant after its second checkpoint, and kills it.
    fn killed(&self, first: &Run, answer: &Path) -> Result<Run> {
        let bar = bar::steps(self.output, self.work.steps, "running");
        let store = (self.config.place.store.as_str(), self.config.place.job.as_str());
        let started = Instant::now();
        let mut child = Child::start(&self.work, Some(store), answer)?;
        let (mut run, mut end) = (Run::default(), None);
        while let Heard::Message(message) = child.hear(end)? {
            self.heard(&message, &mut run, None, &bar)?;
            if run.checkpoints >= 2 && end.is_none() {
                let left = self.work.steps.saturating_sub(run.step) as f64;
                // By the faster of both runs: other work on the machine comes and goes.
                let own = started.elapsed().as_secs_f64() / run.step.max(1) as f64;
                let step_seconds = own.min(first.seconds / self.work.steps as f64);
                let window = KILL_WINDOW * left * step_seconds;
                end = Some(Instant::now() + Duration::from_secs_f64(window * fastrand::f64()));
            }
        }
        child.kill()?;
        // What it had said before its death.
        while let Heard::Message(message) = child.hear(None)? {
            self.heard(&message, &mut run, None, &bar)?;
        }
        bar.finish_and_clear();
        run.seconds = started.elapsed().as_secs_f64();
        self.output.record(
            "killed",
            json!({ "signal": 9, "step": run.step, "checkpoints": run.checkpoints }),
        )?;
        self.output.line(format_args!(
            "   {} at step {}: the solver is dead (signal 9), its memory is gone",
            self.output.paint(WARN, "SIGKILL"),
            run.step
        ))?;
        Ok(run)
    }

    fn heard(
        &self,
        message: &Message,
        run: &mut Run,
        died: Option<u64>,
        bar: &ProgressBar,
    ) -> Result<()> {
        match message {
            Message::Started { step, version, passed_over } => {
                run.step = *step;
                match (version, died) {
                    (Some(version), Some(died)) => {
                        bar.suspend(|| self.told_restart(*version, *step, died, *passed_over))?;
                    }
                    (None, Some(_)) => {
                        return Err(Failure::new(
                            Kind::Corrupt,
                            "the solver was started again and found no checkpoint",
                        ));
                    }
                    _ => {}
                }
            }
            Message::Step { step } => run.step = *step,
            Message::Checkpoint { version, step, stats } => {
                run.checkpoints += 1;
                bar.suspend(|| self.told_checkpoint(*version, *step, stats))?;
            }
            Message::Finished { steps, seconds } => {
                (run.computed, run.seconds) = (*steps, *seconds);
            }
        }
        bar.set_position(run.step);
        Ok(())
    }

    fn told_restart(&self, version: u64, step: u64, died: u64, passed_over: usize) -> Result<()> {
        let lost = died.saturating_sub(step);
        let fields = json!({
            "version": version, "step": step, "steps_lost": lost, "passed_over": passed_over,
        });
        self.output.record("restarted", fields)?;
        self.output.line(format_args!(
            "   {} from checkpoint {version}, step {step}: {lost} steps are computed again",
            self.output.paint(GOOD, "goes on"),
        ))
    }

    fn told_checkpoint(&self, version: u64, step: u64, stats: &Stats) -> Result<()> {
        let stored = stats.segment_bytes.saturating_add(stats.image_bytes);
        let fields = json!({
            "version": version, "step": step, "stored_bytes": stored,
            "captured_bytes": stats.captured_bytes, "blocked_ns": stats.blocked_ns,
            "total_ns": stats.total_ns,
        });
        self.output.record("checkpoint", fields)?;
        self.output.line(format_args!(
            "   checkpoint {version:>2}  step {step:>5}   {:>10} captured {:>10} stored   \
             blocked {:>8}, durable after {:>8}",
            human_bytes(stats.captured_bytes),
            human_bytes(stored),
            human_ns(stats.blocked_ns),
            human_ns(stats.total_ns)
        ))
    }
}
