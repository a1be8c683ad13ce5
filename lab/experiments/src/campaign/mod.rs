//! `campaign`: a job of several nodes under faults drawn from a seed, and every restart checked.
//!
//! ```text
//! seed -> Plan (nodes, ranks, disks, settings, faults)
//! life: processes start -> restart -> every byte compared -> checkpoints, with what was promised
//! faults: disturbances that a life goes on with, and one that ends it, at random instants of it or of
//! a stage drawn from the seed
//! afterwards the next life must begin where it was promised, or later
//! ```
//! What a fault leaves standing is worked out from the levels that a checkpoint was said to have
//! reached: a kill keeps local ones, a lost disk those on the ring, the loss of all disks those in
//! global storage ([`promise`]). A checkpoint that nobody promised may be there or not, but never be
//! wrong.
//!
//! Half of the faults aim at a stage: the campaign sees what the processes are about to do with files and
//! objects ([`watch`], [`proxy`]) and holds one of them there until the fault has struck ([`gate`]).

mod disk;
mod fault;
mod gate;
pub(crate) mod global;
mod life;
mod plan;
mod promise;
mod proxy;
pub(crate) mod rank;
mod stage;
mod tally;
mod watch;
mod world;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{anyhow, bail};

use disk::{Disks, Medium};
use fault::Fault;
use life::Life;
use plan::Plan;
use promise::Promise;
use rank::Bug;
use tally::{Course, Tally};
use world::{Common, World};

/// A job of several nodes under random faults; every restart is checked bit by bit
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many jobs, each with some faults
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// Seed of the first job
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many jobs at a time
    #[arg(long, default_value_t = 2)]
    at_once: usize,
    /// Begin no more jobs after so many seconds
    #[arg(long, default_value_t = u64::MAX)]
    seconds: u64,
    /// Plant a bug that the campaign must find, and fail if it does not
    #[arg(long, value_enum)]
    plant: Option<Bug>,
    /// A directory takes the place of the S3 server
    #[arg(long)]
    no_s3: bool,
    /// Where the jobs' nodes are, one directory below for each
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    /// JSON lines instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let tally = campaign(args)?;
    tally.tell(args);
    match (args.plant, tally.wrong()) {
        (None, 0) => Ok(()),
        (None, wrong) => bail!("{wrong} jobs went wrong"),
        (Some(bug), 0) => bail!("the planted bug {bug:?} was not found"),
        (Some(_), _) => Ok(()),
    }
}

fn campaign(args: &Args) -> anyhow::Result<Tally> {
    let can_lose_power = || -> anyhow::Result<bool> {
        let dir = tempfile::Builder::new().prefix("campaign-").tempdir_in(&args.dir)?;
        Ok(Disks::make(dir.path(), 1, Medium::Xfs)?.are(Medium::Xfs))
    };
    if args.plant == Some(Bug::Unsynced) && !can_lose_power()? {
        bail!("no disk can lose its power here: that needs xfs and the right to mount");
    }
    let common = Common::prepare(&args.dir, !args.no_s3)?;
    if !common.is_watched() {
        eprintln!(
            "processes cannot be watched here: faults come at any time instead of in a stage"
        );
    }
    let (next, tally) = (AtomicU64::new(0), Mutex::new(Tally::default()));
    let began = Instant::now();
    let work = || -> anyhow::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            let is_found = |tally: &Tally| args.plant.is_some() && tally.wrong() > 0;
            let lock = || tally.lock().unwrap_or_else(PoisonError::into_inner);
            let is_late = began.elapsed().as_secs() >= args.seconds;
            if number >= args.seeds || is_late || is_found(&lock()) {
                return Ok(());
            }
            let plan = Plan::of(args.seed + number);
            let course = go(args, &common, &plan)?;
            let mut tally = lock();
            course.tell(args, &plan);
            tally.take_in(&course);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..args.at_once.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
    })?;
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.seconds = began.elapsed().as_secs();
    Ok(tally)
}

/// One job from its first start to its end.
fn go(args: &Args, common: &Common, plan: &Plan) -> anyhow::Result<Course> {
    let world = World::new(plan, common, &args.dir, args.plant)?;
    let mut course = Course::default();
    let mut promise = Promise::default();
    for faults in plan.faults.split_inclusive(|fault| fault.kind.ends()) {
        if let Err(finding) = live(&world, faults, &mut promise, &mut course) {
            course.findings.push(format!("life {}: {finding:#}", course.lives));
            return Ok(course);
        }
    }
    let mut life = world.start()?;
    course.lives += 1;
    if let Err(finding) = begin(&world, &mut life, &mut promise) {
        course.findings.push(format!("the last life: {finding:#}"));
    }
    life.end()?;
    Ok(course)
}

/// One life with its faults.
fn live(
    world: &World<'_>,
    faults: &[Fault],
    promise: &mut Promise,
    course: &mut Course,
) -> anyhow::Result<()> {
    let mut life = world.start()?;
    course.lives += 1;
    let is_early = faults.iter().any(|fault| fault.when.is_early());
    if !is_early && !begin(world, &mut life, promise)? {
        return Ok(());
    }
    for fault in faults {
        course.faults.push(fault.strike(world, &mut life)?);
    }
    if let Some(what) = life.wrong() {
        bail!("it came back wrong: {what}");
    }
    if let Some(step) = life.came_back().filter(|_| is_early) {
        promise.kept_by(step?).map_err(|why| anyhow!(why))?;
    }
    promise.hear(life.heard());
    if let Some(end) = faults.last() {
        promise.meet(end.kind.leaves(), world.newest_global()?);
    }
    course.promised += usize::from(promise.least() > 0);
    Ok(())
}

/// Waits for a life to begin, and holds it against what was promised; false if nothing was and it
/// cannot.
fn begin(world: &World<'_>, life: &mut Life, promise: &mut Promise) -> anyhow::Result<bool> {
    let mut begun = life.begin();
    if begun.is_err() && world.is_lazy() && promise.is_damaged() {
        // A damaged page ends a program that has gone on without it, once: it leaves a mark.
        life.end()?;
        *life = world.start()?;
        begun = life.begin();
    }
    match begun {
        Ok(step) => match promise.kept_by(step) {
            Ok(()) => Ok(true),
            Err(why) => bail!("{why} ({})", life.remarks().join("; ")),
        },
        Err(_) if promise.may_fail() => {
            // Nothing was promised, and it says what is damaged: somebody clears it away.
            life.end()?;
            world.clear()?;
            *promise = Promise::default();
            Ok(false)
        }
        Err(error) => bail!("it does not begin: {error:#}"),
    }
}

#[cfg(test)]
mod tests;
