//! What one rank does; started by the campaign, not by people.
//!
//! Prints: `met` when all ranks have found each other; `begins STEP` when it has come back and every byte
//! is right, `wrong WHY` where one is not, or `fails WHY`, and `remark WHY` for what it skipped; then
//! `begun STEP`, `taken STEP`, `local STEP`, `ring STEP` as it is told that a checkpoint has got so far.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use standfast::config::Loaded;
use standfast::{Job, Level, Protected, Version};
use standfast_comm::Comm;
use standfast_testkit::Processes;

/// One rank of the campaign.
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// Where the ranks find each other
    #[arg(long)]
    meeting: PathBuf,
    #[arg(long)]
    rank: usize,
    #[arg(long)]
    ranks: usize,
    /// Decides the contents
    #[arg(long)]
    seed: u64,
    /// Says how many microseconds messages take at most, now
    #[arg(long)]
    delay: PathBuf,
    #[arg(long, value_enum)]
    plant: Option<Bug>,
    /// Settings of the job
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
}

/// Bugs that a campaign must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Bug {
    /// A checkpoint is called durable when the call has returned.
    EarlyPromise,
    /// A restart leaves a byte as it was.
    MissedByte,
    /// The newest checkpoint is skipped.
    OldRestart,
    /// Nothing is synced before it is called durable.
    Unsynced,
}

const WORDS: usize = 40 << 10;
const PAGE_WORDS: usize = 512;

/// A word of a rank's memory at a step: pages that never change, that all ranks share, that change
/// sometimes, always, and zeros.
fn word(seed: u64, rank: u64, step: u64, at: usize) -> u64 {
    let page = at / PAGE_WORDS;
    let (rank, step) = match page % 5 {
        0 => return 0,
        1 => (0, step),
        2 => (rank, 0),
        3 => (0, step / 4),
        _ => (rank, step),
    };
    let mixed = (at as u64) << 36 ^ rank << 28 ^ step ^ seed.rotate_left(17);
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (mixed >> 9)
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let lived = live(args);
    if let Err(error) = &lived {
        say(format_args!("fails {}", format!("{error:#}").replace('\n', " ")));
    }
    lived
}

fn live(args: &Args) -> anyhow::Result<()> {
    let comm = Processes::meet(&args.meeting, args.rank, args.ranks)?;
    say(format_args!("met"));
    slow_down(args, &comm);
    let pairs = args.settings.iter().filter_map(|text| text.split_once('='));
    let pairs: Vec<(String, String)> =
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let job = Job::open_comm(Loaded::load(&pairs)?, &comm)?;
    let memory = job.alloc::<u64>("memory", WORDS)?;
    let first = come_back(args, &comm, &job, &memory)?;
    say(format_args!("begins {first}"));
    let ring = job.config().config.levels.has_ring();
    for step in first + 1.. {
        slow_down(args, &comm);
        fill(args, &memory, step);
        say(format_args!("begun {step}"));
        match checkpoint(args, &job, step, ring) {
            Ok(()) => {}
            // A full disk, a dead agent: the job goes on without this checkpoint.
            Err(error) if !error.is_out_of_reach() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Lets messages take as long as they shall now.
fn slow_down(args: &Args, comm: &Processes) {
    let told = std::fs::read_to_string(&args.delay).ok();
    let most = told.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    comm.set_delay(Duration::from_micros(most));
}

/// Restarts and compares every byte; the step it came back to.
fn come_back(
    args: &Args,
    comm: &dyn Comm,
    job: &Job,
    memory: &Protected<u64>,
) -> anyhow::Result<u64> {
    let passed_over = args.plant == Some(Bug::OldRestart);
    let older = job.list().get(1).filter(|_| passed_over).map(|manifest| manifest.version);
    let restarted = match older {
        Some(version) => Some(job.restart_from(version)?),
        None => job.restart()?,
    };
    let step = match restarted {
        Some(restarted) => {
            restarted.skipped.iter().for_each(|(what, why)| remark(&format!("{what}: {why}")));
            restarted.notes.iter().for_each(|note| remark(note));
            restarted.version.0
        }
        None => 0,
    };
    if args.plant == Some(Bug::MissedByte) && step > 0 {
        memory.write()[WORDS - 1] ^= 1;
    }
    let rank = args.rank as u64;
    let wrong = memory
        .read()
        .iter()
        .enumerate()
        .position(|(at, value)| step > 0 && *value != word(args.seed, rank, step, at));
    if let Some(at) = wrong {
        say(format_args!("wrong step {step} at word {at}"));
    }
    comm.barrier()?;
    match wrong {
        Some(at) => bail!("step {step} came back wrong at word {at}"),
        None => Ok(step),
    }
}

fn fill(args: &Args, memory: &Protected<u64>, step: u64) {
    let rank = args.rank as u64;
    let mut memory = memory.write();
    memory.iter_mut().enumerate().for_each(|(at, value)| *value = word(args.seed, rank, step, at));
}

/// Takes a checkpoint and tells how far it came; every other one is overtaken by the next.
fn checkpoint(args: &Args, job: &Job, step: u64, ring: bool) -> standfast::Result<()> {
    let version = job.checkpoint(Some(Version(step)))?;
    say(format_args!("taken {step}"));
    if args.plant == Some(Bug::EarlyPromise) {
        say(format_args!("local {step}"));
    }
    if step.is_multiple_of(2) {
        job.wait(version, Level::Local)?;
        say(format_args!("local {step}"));
    }
    if step.is_multiple_of(4) && ring {
        job.wait(version, Level::Ring)?;
        say(format_args!("ring {step}"));
    }
    Ok(())
}

fn remark(text: &str) {
    say(format_args!("remark {}", text.replace('\n', " ")));
}

/// At once: a rank that is killed says nothing more.
fn say(text: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    // Nobody may be listening any more.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
