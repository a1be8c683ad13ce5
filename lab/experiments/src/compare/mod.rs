//! `compare`: the same memory saved and brought back by plain files, by compressed files and by
//! every mode of Standfast, side by side.
//!
//! ```text
//! for each pattern, for each way:
//!   save   MPI ranks fill memory, copy it (the ceiling), checkpoint; a tenth changes; checkpoint
//!   load   new processes, page cache dropped: bring it back, compare every byte
//! ```
//! Of every time the slowest rank counts. Times stand beside a memcpy of the same memory in the same
//! processes, and beside plain files of the same run.

pub(crate) mod bars;
mod memory;
mod pattern;
pub(crate) mod rank;
mod table;
mod way;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Serialize;

use crate::mpi::Launcher;
use crate::report::Report;
use pattern::Pattern;
use rank::{Loaded, Saved, Saving};
use way::Way;

/// The same work through plain files, compressed files and every mode of ours
#[derive(clap::Args)]
pub(crate) struct Args {
    /// MPI ranks
    #[arg(long, default_value_t = 4)]
    ranks: usize,
    /// MiB of each rank
    #[arg(long, default_value_t = 256)]
    mib: usize,
    /// Runs of each case; medians count
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Contents of the memory
    #[arg(long, value_delimiter = ',', default_values_t = Pattern::ALL)]
    patterns: Vec<Pattern>,
    /// Only ways whose name contains one of these
    #[arg(long, value_delimiter = ',')]
    ways: Vec<String>,
    /// Directory on the file system to measure
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    #[command(flatten)]
    report: Report,
}

const NAME: &str = "compare";

/// How much work there is.
#[derive(Clone, Copy)]
pub(crate) struct Size<'a> {
    pub(crate) ranks: usize,
    pub(crate) mib: usize,
    pub(crate) rounds: usize,
    pub(crate) dir: &'a Path,
}

/// One checkpoint in one way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Point {
    pub(crate) pattern: String,
    pub(crate) way: &'static str,
    /// Until the program may go on.
    pub(crate) blocked_s: f64,
    pub(crate) durable_s: f64,
    /// Bytes that the checkpoint added on disk.
    pub(crate) stored_bytes: u64,
    /// None for a checkpoint that is not restored by itself.
    pub(crate) restart_s: Option<f64>,
    /// Most memory of all ranks and the agent beyond the program's own.
    pub(crate) memory_bytes: u64,
    /// Copying the same memory in the same processes.
    pub(crate) memcpy_s: f64,
    /// What was protected.
    pub(crate) bytes: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(launcher) = Launcher::find()? else { bail!("no mpicc is installed") };
    let Args { ranks, mib, rounds, dir, report, .. } = args;
    report.note(
        NAME,
        &format!(
            "{ranks} MPI ranks of {mib} MiB, {rounds} rounds (medians); times are those of the \
             slowest rank; restarts begin with an empty page cache"
        ),
    );
    let size = Size { ranks: *ranks, mib: *mib, rounds: *rounds, dir };
    let wanted = |way: &&Way| {
        args.ways.is_empty() || args.ways.iter().any(|part| way.name.contains(part.as_str()))
    };
    for pattern in &args.patterns {
        let mut points = Vec::new();
        for way in way::ALL.iter().filter(wanted) {
            points.extend(measure(&launcher, size, *pattern, way)?);
        }
        table::tell(report, &points);
    }
    Ok(())
}

/// Measures a way on a pattern: its checkpoint, and for a pattern that changes the one after.
pub(crate) fn measure(
    launcher: &Launcher,
    size: Size<'_>,
    pattern: Pattern,
    way: &Way,
) -> anyhow::Result<Vec<Point>> {
    let rounds = (0..size.rounds.max(1)).map(|_| once(launcher, size, pattern, way));
    let rounds = rounds.collect::<anyhow::Result<Vec<Vec<Point>>>>()?;
    let checkpoints = rounds[0].len();
    Ok((0..checkpoints)
        .map(|at| median(rounds.iter().map(|round| round[at].clone()).collect()))
        .collect())
}

fn once(
    launcher: &Launcher,
    size: Size<'_>,
    pattern: Pattern,
    way: &Way,
) -> anyhow::Result<Vec<Point>> {
    let store = tempfile::tempdir_in(size.dir)?;
    // Sockets have short paths.
    let meeting = tempfile::tempdir()?;
    let told = tempfile::tempdir()?;
    let part = |verb: &str| {
        vec![
            "compare".to_owned(),
            verb.to_owned(),
            format!("--way={}", way.name),
            format!("--pattern={pattern}"),
            format!("--mib={}", size.mib),
            format!("--store={}", store.path().display()),
            format!("--meeting={}", meeting.path().display()),
            format!("--told={}", told.path().display()),
        ]
    };
    let case = || format!("{} on {pattern}", way.name);
    launcher.run(size.ranks, &part("save")).with_context(|| format!("saving by {}", case()))?;
    let saved: Vec<Saved> = hear(told.path(), size.ranks)?;
    launcher.run(size.ranks, &part("load")).with_context(|| format!("loading by {}", case()))?;
    let loaded: Vec<Loaded> = hear(told.path(), size.ranks)?;
    Ok(points(size, pattern, way, &saved, &loaded))
}

/// What each rank has written down.
fn hear<T: serde::de::DeserializeOwned>(dir: &Path, ranks: usize) -> anyhow::Result<Vec<T>> {
    let one = |rank: usize| {
        let path = dir.join(rank.to_string());
        let text = std::fs::read(&path).with_context(|| format!("rank {rank} told nothing"))?;
        serde_json::from_slice(&text).with_context(|| format!("what rank {rank} told"))
    };
    (0..ranks).map(one).collect()
}

fn points(
    size: Size<'_>,
    pattern: Pattern,
    way: &Way,
    saved: &[Saved],
    loaded: &[Loaded],
) -> Vec<Point> {
    let slowest = |pick: &dyn Fn(&Saving) -> f64, at: usize| {
        saved.iter().map(|saved| pick(&saved.savings[at])).fold(0.0, f64::max)
    };
    let last = saved[0].savings.len() - 1;
    (0..=last)
        .map(|at| Point {
            pattern: pattern.name_of(at).to_owned(),
            way: way.name,
            blocked_s: slowest(&|saving| saving.blocked_s, at),
            durable_s: slowest(&|saving| saving.durable_s, at),
            stored_bytes: saved[0].savings[at].stored_bytes,
            restart_s: (at == last)
                .then(|| loaded.iter().map(|loaded| loaded.restart_s).fold(0.0, f64::max)),
            memory_bytes: saved.iter().map(|saved| saved.savings[at].memory_bytes).sum(),
            memcpy_s: saved.iter().map(|saved| saved.memcpy_s).fold(0.0, f64::max),
            bytes: (size.ranks * size.mib) as u64 * (1 << 20),
        })
        .collect()
}

/// Each figure's median over the rounds.
fn median(rounds: Vec<Point>) -> Point {
    let middle = |pick: fn(&Point) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Point {
        blocked_s: middle(|point| point.blocked_s),
        durable_s: middle(|point| point.durable_s),
        restart_s: rounds[0].restart_s.map(|_| middle(|point| point.restart_s.unwrap_or(0.0))),
        memcpy_s: middle(|point| point.memcpy_s),
        memory_bytes: middle(|point| point.memory_bytes as f64) as u64,
        stored_bytes: middle(|point| point.stored_bytes as f64) as u64,
        ..rounds[0].clone()
    }
}
