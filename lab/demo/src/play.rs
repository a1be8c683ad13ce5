//! The whole path: MPI ranks over nodes with private disks, through every stage and two disasters.
//!
//! ```text
//! 1 undisturbed run                                                    -> answer
//! 2 the same with checkpoints: cow -> dedup over ranks -> codec -> agents -> disks -> ring -> S3
//!   two of them on the ring: one node is killed, its disk removed
//! 3 started again: the lost node's part is decoded from the ring; goes on until S3 has more
//!   all nodes are killed, their disks removed
//! 4 started again: everything comes from S3                            -> answer
//! 5 both answers, byte by byte
//! ```
//! Nodes are directories, agents and ranks real processes, the server a real one. Everything lies in
//! a temporary directory and ends with the command, however it ends.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use indicatif::ProgressBar;
use serde_json::json;
use standfast::Level;
use standfast_format::{human_bytes, human_ns};

use crate::job::{Heard, Job, Message, Start};
use crate::nodes::{NODES, Nodes, RANKS_PER_NODE};
use crate::output::{FAINT, GOOD, Output, TITLE, WARN};
use crate::program::{self, Program};
use crate::tools::Tools;
use crate::watch::{Reached, Watch};
use crate::{Args, Work, closing};

/// Checkpoints of a run by default.
const CHECKPOINTS: u64 = 6;
/// A node is killed within this share of the time between two checkpoints.
const KILL_WINDOW: f64 = 0.5;

/// Steps of the run that measures how many the default is.
const TRIAL_STEPS: u64 = 100;
/// Seconds that an undisturbed run takes by default.
const RUN_SECONDS: f64 = 18.0;

/// Shows it all; whether the answers are identical.
pub(crate) fn play(args: &Args, tools: &Tools, output: &Output) -> Result<bool> {
    let began = Instant::now();
    let scratch = tempfile::Builder::new().prefix("standfast-demo-").tempdir()?;
    let work = Work::of(args, TRIAL_STEPS, CHECKPOINTS)?;
    title(&work, tools, output)?;
    let bar = output.wait("the solver is compiled, agents and S3 server start");
    let program = program::build(tools, &scratch.path().join("program"))?;
    let nodes = Nodes::new(scratch.path(), tools)?;
    let watch = Watch::new()?;
    let answers = ["undisturbed", "restarted"].map(|name| scratch.path().join(name));
    let mut demo = Demo { work, tools, output, program, nodes, watch, answers, running: 0.0 };
    if args.steps.is_none() {
        demo.work = Work::of(args, demo.trial()?, CHECKPOINTS)?;
    }
    bar.finish_and_clear();
    let identical = demo.acts()?;
    closing::tell(&demo.watch, demo.nodes.sent_bytes(), demo.running, output)?;
    let seconds = began.elapsed().as_secs_f64();
    output.line(output.paint(FAINT, format_args!("\nall of it took {seconds:.0} s")))?;
    Ok(identical)
}

fn title(work: &Work, tools: &Tools, output: &Output) -> Result<()> {
    let (ranks, nodes, size) = (NODES.len() * RANKS_PER_NODE, NODES.len(), work.size);
    let source = program::source(tools.language);
    output.record(
        "demo",
        json!({
            "size": size, "ranks": ranks, "nodes": nodes, "mpi": tools.mpi,
            "s3": tools.server.is_some(), "source": source,
        }),
    )?;
    let text = "An MPI job loses a node, then all of them, and ends with the same answer";
    output.line(output.paint(TITLE, text))?;
    let faint = |text: String| output.line(output.paint(FAINT, text));
    faint(format!(
        "{ranks} ranks over {nodes} virtual nodes, each with a disk and an agent of its own"
    ))?;
    let global = match &tools.server {
        Some(_) => "SeaweedFS as S3 server",
        None => "no S3 server is installed: a directory is global storage",
    };
    faint(format!("{source} on {size} x {size} cells, {}, {global}", tools.mpi))
}

struct Demo<'a> {
    work: Work,
    tools: &'a Tools,
    output: &'a Output,
    program: Program,
    nodes: Nodes<'a>,
    watch: Watch,
    /// Of the undisturbed run, and of the other.
    answers: [PathBuf; 2],
    /// For how long protected jobs ran, in seconds.
    running: f64,
}

/// What a job has told so far.
#[derive(Default)]
struct Run {
    step: u64,
    /// The checkpoint it came from.
    version: u64,
    /// When the last checkpoints were called for.
    calls: Vec<Instant>,
    /// Steps and seconds, at its end.
    finished: Option<(u64, f64)>,
}

impl Demo<'_> {
    fn acts(&mut self) -> Result<bool> {
        let output = self.output;
        let Work { steps, every, .. } = self.work;
        output.act(1, &format!("an undisturbed run of {steps} steps, without checkpoints"))?;
        let bar = output.steps(steps, "running");
        let run = self.undisturbed(&bar)?;
        bar.finish_and_clear();
        self.told_run("undisturbed", &run)?;

        let what = format!(
            "the same, a checkpoint every {every} steps; one node dies, and its disk with it"
        );
        output.act(2, &what)?;
        let died = self.lose_a_node()?;

        output.act(3, "started again with an empty node: its part is decoded from the ring")?;
        let died = self.lose_all_nodes(died)?;

        output.act(4, "started again on empty nodes: everything comes from global storage")?;
        self.play_on(died)?;

        output.act(5, "both answers, compared byte by byte")?;
        output.compare(&self.answers[0], &self.answers[1])
    }

    fn start(&self, protected: bool) -> Result<Job> {
        let answer: &Path = &self.answers[usize::from(protected)];
        let (tools, program, work) = (self.tools, &self.program, &self.work);
        Job::start(&self.nodes, &Start { tools, program, work, answer, protected })
    }

    /// How many steps take about as long as a run should.
    fn trial(&mut self) -> Result<u64> {
        let run = self.undisturbed(&ProgressBar::hidden())?;
        let (steps, seconds) = run.finished.unwrap_or((TRIAL_STEPS, 1.0));
        let fitting = RUN_SECONDS * steps as f64 / seconds.max(1e-3);
        Ok((fitting as u64 / 60 * 60).clamp(300, 30_000))
    }

    /// A run without checkpoints.
    fn undisturbed(&mut self, bar: &ProgressBar) -> Result<Run> {
        let (mut job, mut run) = (self.start(false)?, Run::default());
        loop {
            match job.hear()? {
                Heard::Message(message) => self.heard(message, &mut run, None, bar)?,
                Heard::Silence => {}
                Heard::Ended => break,
            }
        }
        job.finish()?;
        Ok(run)
    }

    /// Until two checkpoints are on the ring; then a node dies. The step at which it did.
    fn lose_a_node(&mut self) -> Result<u64> {
        let bar = self.output.steps(self.work.steps, "running");
        let (mut job, mut run) = (self.start(true)?, Run::default());
        let began = Instant::now();
        let mut end: Option<Instant> = None;
        while end.is_none_or(|end| Instant::now() < end) {
            if !self.live(&mut job, &mut run, None, &bar)? {
                job.finish()?;
                return Err(too_soon());
            }
            if end.is_none() && self.watch.newest(Level::Ring) >= Some(2) {
                let between = run
                    .calls
                    .windows(2)
                    .last()
                    .map_or(0.0, |pair| pair[1].duration_since(pair[0]).as_secs_f64());
                end = Some(
                    Instant::now()
                        + Duration::from_secs_f64(KILL_WINDOW * between * fastrand::f64()),
                );
            }
        }
        let victim = (fastrand::f64() * NODES.len() as f64) as usize % NODES.len();
        self.nodes.destroy(victim)?;
        if !job.aborted()? {
            return Err(too_soon());
        }
        bar.finish_and_clear();
        self.running += began.elapsed().as_secs_f64();
        let ranks = victim * RANKS_PER_NODE..(victim + 1) * RANKS_PER_NODE;
        self.output.record(
            "lost",
            json!({ "nodes": [NODES[victim]], "ranks": ranks.clone().collect::<Vec<_>>(), "step": run.step }),
        )?;
        self.output.line(format_args!(
            "   {} {} at step {}: ranks {} and {}, its agent and its disk are gone; the job is dead",
            self.output.paint(WARN, "LOST"),
            NODES[victim],
            run.step,
            ranks.start,
            ranks.end - 1
        ))?;
        self.nodes.boot(victim)?;
        Ok(run.step)
    }

    /// Until global storage has more than the job came back with; then all nodes die.
    fn lose_all_nodes(&mut self, died: u64) -> Result<u64> {
        let bar = self.output.steps(self.work.steps, "running");
        let (mut job, mut run) = (self.start(true)?, Run::default());
        let began = Instant::now();
        while run.version == 0 || self.watch.global <= run.version {
            // A job that has finished is not gone on with, wherever its checkpoints are.
            if !self.live(&mut job, &mut run, Some(died), &bar)? {
                return Err(too_soon());
            }
        }
        (0..NODES.len()).try_for_each(|node| self.nodes.destroy(node))?;
        // One that finished in this moment has lost its nodes all the same.
        job.aborted()?;
        bar.finish_and_clear();
        self.running += began.elapsed().as_secs_f64();
        self.output.record("lost", json!({ "nodes": NODES, "step": run.step }))?;
        self.output.line(format_args!(
            "   {} all {} nodes at step {}: ranks, agents and disks are gone",
            self.output.paint(WARN, "LOST"),
            NODES.len(),
            run.step
        ))?;
        (0..NODES.len()).try_for_each(|node| self.nodes.boot(node))?;
        Ok(run.step)
    }

    fn play_on(&mut self, died: u64) -> Result<()> {
        let bar = self.output.steps(self.work.steps, "running");
        let (mut job, mut run) = (self.start(true)?, Run::default());
        let began = Instant::now();
        while self.live(&mut job, &mut run, Some(died), &bar)? {}
        bar.finish_and_clear();
        job.finish()?;
        self.tell_progress(&bar)?;
        self.running += began.elapsed().as_secs_f64();
        self.told_run("restarted", &run)
    }

    /// A moment of a protected job's life; false at its end.
    fn live(
        &mut self,
        job: &mut Job,
        run: &mut Run,
        died: Option<u64>,
        bar: &ProgressBar,
    ) -> Result<bool> {
        match job.hear()? {
            Heard::Message(message) => self.heard(message, run, died, bar)?,
            Heard::Silence => {}
            Heard::Ended => return Ok(false),
        }
        self.tell_progress(bar)?;
        Ok(true)
    }

    fn heard(
        &mut self,
        message: Message,
        run: &mut Run,
        died: Option<u64>,
        bar: &ProgressBar,
    ) -> Result<()> {
        match message {
            Message::Started { step, version } => {
                (run.step, run.version) = (step, version);
                if let Some(died) = died {
                    bar.suspend(|| self.told_restart(version, step, died))?;
                }
            }
            Message::Note(text) => bar.suspend(|| {
                self.output.record("note", json!({ "text": text }))?;
                // Its first line has been told already.
                if !text.starts_with(' ') {
                    return Ok(());
                }
                let text = text.escape_debug();
                self.output.line(self.output.paint(FAINT, format_args!("    {text}")))
            })?,
            Message::Step(step) => run.step = step,
            Message::Checkpoint { step, .. } => {
                run.step = step;
                run.calls.push(Instant::now());
            }
            Message::Finished { steps, seconds } => {
                run.step = self.work.steps;
                run.finished = Some((steps, seconds));
            }
        }
        bar.set_position(run.step);
        Ok(())
    }

    /// Tells which checkpoints have come further.
    fn tell_progress(&mut self, bar: &ProgressBar) -> Result<()> {
        (0..NODES.len()).for_each(|node| self.nodes.count_sent(node));
        for reached in self.watch.look(&self.nodes)? {
            bar.suspend(|| self.told_reached(&reached))?;
        }
        Ok(())
    }

    fn told_reached(&self, reached: &Reached) -> Result<()> {
        let Reached { version, level } = *reached;
        let mut fields = json!({ "version": version, "level": level });
        let known = self.watch.checkpoints.get(&version);
        let text = match (level, known) {
            (Level::Local, Some(known)) => {
                let stats = &known.manifest.stats;
                let stored = stats.segment_bytes.saturating_add(stats.image_bytes);
                fields["stats"] = json!(stats);
                fields["stored_bytes"] = stored.into();
                format!(
                    "on disk  {:>10} captured, {:>9} stored, program stopped {}",
                    human_bytes(stats.captured_bytes),
                    human_bytes(stored),
                    human_ns(stats.blocked_ns)
                )
            }
            (Level::Ring, Some(known)) => {
                fields["shard_bytes"] = known.shard_bytes.into();
                format!("on ring  {:>10} of shards on other nodes", human_bytes(known.shard_bytes))
            }
            (Level::Global, _) => {
                let place = if self.tools.server.is_some() { "in S3  " } else { "global " };
                format!(
                    "{place}  {:>10} sent by the agents so far",
                    human_bytes(self.nodes.sent_bytes())
                )
            }
            _ => return Ok(()),
        };
        self.output.record("checkpoint", fields)?;
        self.output.line(format_args!("   checkpoint {version:>2}  {text}"))
    }

    fn told_restart(&mut self, version: u64, step: u64, died: u64) -> Result<()> {
        if version == 0 {
            return Err(anyhow!("the job was started again and found no checkpoint"));
        }
        self.watch.goes_on_from(version);
        let lost = died.saturating_sub(step);
        self.output
            .record("restarted", json!({ "version": version, "step": step, "steps_lost": lost }))?;
        self.output.line(format_args!(
            "   {} from checkpoint {version}, step {step}: {lost} steps are computed again",
            self.output.paint(GOOD, "goes on"),
        ))
    }

    fn told_run(&self, act: &str, run: &Run) -> Result<()> {
        let Some((steps, seconds)) = run.finished else { return Ok(()) };
        self.output.record("act", json!({ "act": act, "steps": steps, "seconds": seconds }))?;
        self.output.line(format_args!("   {steps} steps in {seconds:.1} s"))
    }
}

fn too_soon() -> anyhow::Error {
    anyhow!("the job had finished before a node could be killed: try again, with more --steps")
}
