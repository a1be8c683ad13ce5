//! `drain` and `fetch`: checkpoints to global storage and back.
//!
//! Data: the job's store and a target -> [`drain::drain`] -> a line per checkpoint that arrived.
//!
//! Needs nothing of the job: it may run, may have ended, may have been killed.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use standfast::Kind;
use standfast_admin::drain::{
    self, Carried, DrainError, Encoding, Event, Fetch, Flow, Policy, Priority, Progress, Retention,
    Until,
};
use standfast_admin::human_bytes;
use standfast_admin::{Error, open};

use crate::args::{DrainArgs, FetchArgs, Global};
use crate::bar;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::output::{FAINT, GOOD, Output, WARN};

/// How often to try again what may work next time, if the job is not followed.
const TRIES: u32 = 5;

/// Carries checkpoints to global storage.
pub(crate) fn drain(global: &Global, args: &DrainArgs, output: &Output) -> Result<ExitCode> {
    let job = open(&global.place())?;
    give_way(args, &job.config.drain.priority)?;
    let to = args.to.as_deref().or(job.config.levels.global.as_deref());
    let to = to.filter(|to| !to.is_empty()).ok_or(Error::NoGlobal("drain to"))?;
    interrupt::listen();
    let encoding = Encoding {
        codec: args.codec.unwrap_or(job.config.drain.codec),
        threads: args.threads.map_or(job.config.threads(), |threads| threads as usize),
    };
    let progress = Progress::default();
    let flow = Flow::new(&*job.store, interrupt::requested(), &progress)
        .rate(args.rate.or(job.config.levels.global_rate.map(|rate| rate.0.0)))
        .deadline(args.deadline.map(|time| Instant::now() + time));
    let retention = Retention {
        newest: args.keep.or(job.config.levels.global_keep.newest).unwrap_or(0) as usize,
        every: job.config.keep_every(),
    };
    let policy = match args.every.unwrap_or(job.config.levels.drain_every()) {
        0 => Policy::Newest,
        every => Policy::Every(every),
    };
    let until = Until { policy, follow: args.follow, tries: TRIES };
    let mut log = Log::new(output, &progress);
    let tell = &mut |event: Event<'_>| log.take(&event);
    let ended = drain::drain(&job, to, (encoding, retention), &until, &flow, tell);
    log.said?;
    match ended {
        // A drain that follows a job ends when it is told to.
        Err(DrainError::Stopped) if args.follow => Ok(ExitCode::SUCCESS),
        Err(DrainError::Stopped) => Err(Failure::Interrupted),
        Err(DrainError::Deadline) => late(log.arrived),
        Err(error) => Err(Error::from(error).into()),
        Ok(()) if log.arrived == 0 => {
            output.line(output.paint(GOOD, "nothing to drain: the newest is there"))?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// Brings a checkpoint back from global storage.
pub(crate) fn fetch(global: &Global, args: &FetchArgs, output: &Output) -> Result<ExitCode> {
    let fetch = Fetch::open(&global.place(), args.from.as_deref(), args.version)?;
    interrupt::listen();
    let progress = Progress::default();
    let shown = bar::bytes(output, 0, &format!("checkpoint {}", fetch.version()));
    let began = Instant::now();
    let carried = bar::follow(&shown, &progress.read, None, || {
        fetch.run(interrupt::requested(), &progress, |bytes| shown.set_length(bytes))
    });
    shown.finish_and_clear();
    told(output, "fetched", &carried?, began.elapsed(), 0)?;
    Ok(ExitCode::SUCCESS)
}

fn late(arrived: usize) -> Result<ExitCode> {
    let message = match arrived {
        0 => "deadline reached: no checkpoint has arrived".to_owned(),
        count => format!("deadline reached: {count} arrived"),
    };
    Err(Failure::new(Kind::Transient, message)
        .advise("what was sent stays there: another drain goes on where this one was"))
}

/// Lets the program, and everybody else, go first.
fn give_way(args: &DrainArgs, usual: &Priority) -> Result<()> {
    let priority = Priority {
        nice: args.nice.unwrap_or(usual.nice),
        io: args.ionice.unwrap_or(usual.io),
        cores: args.cpus.as_ref().unwrap_or(&usual.cores).clone(),
    };
    priority.take().map_err(|error| Failure::os("set", "priority or cores", error))
}

/// What the user sees of a drain.
struct Log<'a> {
    output: &'a Output,
    progress: &'a Progress,
    arrived: usize,
    /// The first failure to tell something.
    said: Result<()>,
    paused_before: u64,
}

impl<'a> Log<'a> {
    fn new(output: &'a Output, progress: &'a Progress) -> Self {
        Self { output, progress, arrived: 0, said: Ok(()), paused_before: 0 }
    }

    fn take(&mut self, event: &Event<'_>) {
        let said = self.tell(event);
        if self.said.is_ok() {
            self.said = said;
        }
    }

    fn tell(&mut self, event: &Event<'_>) -> Result<()> {
        let output = self.output;
        match event {
            Event::Begins(manifest, lacking) => {
                let version = manifest.version;
                output.record("begins", json!({ "version": version, "lacking_bytes": lacking }))?;
                output.remark(format_args!(
                    "checkpoint {version}: {} to send",
                    human_bytes(*lacking)
                ));
                Ok(())
            }
            Event::Arrived(carried, time) => {
                self.arrived += 1;
                let paused = counted(&self.progress.paused_ns);
                let own = paused - std::mem::replace(&mut self.paused_before, paused);
                told(output, "drained", carried, *time, own)
            }
            Event::PassedOver(version, error) => {
                let text = error.to_string();
                output.record("passed-over", json!({ "version": version, "why": text }))?;
                let word = output.paint(WARN, "skipped");
                output.line(format_args!("{word}  checkpoint {version}: {text}"))
            }
            Event::Waits(error, pause) => {
                let text = error.to_string();
                let seconds = pause.as_secs_f64();
                output.record("waits", json!({ "why": text, "seconds": seconds }))?;
                let word = output.paint(WARN, "waits");
                output.line(format_args!("{word}  {seconds} s: {text}"))
            }
        }
    }
}

fn told(
    output: &Output,
    word: &str,
    carried: &Carried,
    time: Duration,
    paused_ns: u64,
) -> Result<()> {
    let Carried { version, segments, from_bytes, to_bytes } = *carried;
    let seconds = time.as_secs_f64();
    let fields = json!({
        "version": version, "segments": segments, "from_bytes": from_bytes,
        "to_bytes": to_bytes, "seconds": seconds, "paused_seconds": paused_ns as f64 * 1e-9,
    });
    output.record(word, fields)?;
    let rate = output.paint(FAINT, format_args!("in {seconds:.1} s"));
    output.line(format_args!(
        "{}  checkpoint {version}: {} carried as {} {rate}",
        output.paint(GOOD, word),
        human_bytes(from_bytes),
        human_bytes(to_bytes),
    ))
}

fn counted(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
