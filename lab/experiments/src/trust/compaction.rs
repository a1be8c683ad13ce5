//! `compaction`: thousands of checkpoints of small random changes, and what they leave.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use standfast::Job;
use standfast_testkit::command::Random;

use super::bars::lower;
use crate::bars::Sheet;
use crate::report::Report;

const NAME: &str = "compaction";
const PAGE: usize = 4096;
const JOB: &str = "many";
/// Restarts and checkpoints that are timed at each end.
const TIMED: usize = 5;

/// Take thousands of checkpoints of small random changes, and see what the store becomes
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Checkpoints
    #[arg(long, default_value_t = 10_000)]
    checkpoints: usize,
    /// MiB that are protected
    #[arg(long, default_value_t = 128)]
    mib: usize,
    /// Pages of 10,000 that change between two checkpoints
    #[arg(long, default_value_t = 25)]
    changed: usize,
    /// Directory on the file system to measure
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    #[command(flatten)]
    report: Report,
}

/// What so many checkpoints have left.
#[derive(Debug, Clone, Serialize)]
struct Left {
    checkpoints: usize,
    segments: usize,
    /// Bytes of all files, by those of the memory and of the kept checkpoints' own changes.
    space: f64,
    /// Medians of the last checkpoints and restarts, by those of the first.
    checkpoint_slowdown: f64,
    restart_slowdown: f64,
    first_checkpoint_ms: f64,
    first_restart_ms: f64,
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} checkpoints: {} segments, {:.2} times the needed bytes; a checkpoint takes {:.2} and \
             a restart {:.2} of the time at the start ({:.1} ms, {:.1} ms)",
            self.checkpoints,
            self.segments,
            self.space,
            self.checkpoint_slowdown,
            self.restart_slowdown,
            self.first_checkpoint_ms,
            self.first_restart_ms
        )
    }
}

/// Its rows of the bars.
pub(super) fn bars(quick: bool, dir: &Path, sheet: &mut Sheet) -> anyhow::Result<()> {
    let (checkpoints, pages) = if quick { (1000, 4096) } else { (10_000, 32 << 10) };
    let left = measure(dir, Size { checkpoints, pages, changed: pages / 400 })?;
    let after = format!("after {checkpoints} checkpoints of 0.25 % random changes");
    for (what, value, goal) in [
        ("bytes, times those needed", left.space, 1.3),
        ("segments of a rank", left.segments as f64, 64.0),
        ("a checkpoint, times one at the start", left.checkpoint_slowdown, 1.2),
        ("a restart, times one at the start", left.restart_slowdown, 1.2),
    ] {
        sheet.bar(lower(format!("{after}: {what}"), value, goal));
    }
    Ok(())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let pages = args.mib * (1 << 20) / PAGE;
    let size =
        Size { checkpoints: args.checkpoints, pages, changed: pages * args.changed / 10_000 };
    args.report.point(NAME, &measure(&args.dir, size)?);
    Ok(())
}

#[derive(Clone, Copy)]
struct Size {
    checkpoints: usize,
    pages: usize,
    changed: usize,
}

/// Takes the checkpoints, all defaults but for the codec: what is random shrinks by none.
fn measure(dir: &Path, size: Size) -> anyhow::Result<Left> {
    let home = tempfile::tempdir_in(dir)?;
    let store = home.path().to_string_lossy().into_owned();
    let job = Job::open(&[("store", &store), ("job", JOB), ("codec", "none")])?;
    let memory = job.alloc::<u8>("memory", size.pages * PAGE)?;
    let mut random = Random::new(7);
    memory.write().copy_from_slice(&random.noise(size.pages * PAGE));
    let mut times = Vec::with_capacity(size.checkpoints);
    let mut first_restart = 0.0;
    for number in 0..size.checkpoints {
        change(&mut memory.write(), &mut random, size);
        let began = Instant::now();
        let version = job.checkpoint(None)?;
        job.wait(version, standfast::Level::Local)?;
        times.push(began.elapsed().as_secs_f64());
        // The second knows what changed; the first has stored everything.
        if number == 1 {
            first_restart = restarts(&store, size)?;
        }
    }
    let wanted = memory.read().to_vec();
    job.close()?;
    let last_restart = restarts(&store, size)?;
    anyhow::ensure!(read_back(&store, size)?.0 == wanted, "another state came back");
    let few = TIMED.max(size.checkpoints / 20).min(size.checkpoints.saturating_sub(1)).max(1);
    let (first, last) = (middle(&times[1..=few]), middle(&times[times.len() - few..]));
    let (segments, bytes) = files(&home.path().join(JOB));
    let keep = 8.min(size.checkpoints);
    Ok(Left {
        checkpoints: size.checkpoints,
        segments,
        space: bytes as f64 / ((size.pages + keep * size.changed) * PAGE) as f64,
        checkpoint_slowdown: last / first,
        restart_slowdown: last_restart / first_restart,
        first_checkpoint_ms: first * 1e3,
        first_restart_ms: first_restart * 1e3,
    })
}

fn change(memory: &mut [u8], random: &mut Random, size: Size) {
    for _ in 0..size.changed {
        let page = random.next_u64() as usize % size.pages;
        memory[page * PAGE..][..8].copy_from_slice(&random.next_u64().to_le_bytes());
    }
}

/// The median time of some restarts.
fn restarts(store: &str, size: Size) -> anyhow::Result<f64> {
    let times = (0..TIMED).map(|_| Ok(read_back(store, size)?.1));
    Ok(middle(&times.collect::<anyhow::Result<Vec<f64>>>()?))
}

/// What a fresh job brings back from a copy of nothing: it only reads.
fn read_back(store: &str, size: Size) -> anyhow::Result<(Vec<u8>, f64)> {
    let store = standfast_store::open(&format!("{store}/{JOB}"), &Default::default())?;
    let inventory = standfast_restart::Inventory::read(&*store)?;
    let newest = &inventory.checkpoints[0];
    let mut back = vec![0; size.pages * PAGE];
    let began = Instant::now();
    let image = standfast_restart::read_image(&*store, newest, standfast_format::Rank(0))?;
    let threads = std::thread::available_parallelism()?.get();
    let rebuild = standfast_restart::Rebuild::open(&*store, &inventory.header, image, threads)?;
    let sink = standfast_restart::MemorySink::new(vec![Some(&mut back[..])]);
    let rebuilt = rebuild.rebuild(&sink, |_| true, &std::sync::atomic::AtomicU64::new(0));
    rebuilt.map_err(standfast_restart::Error::from)?;
    drop(sink);
    Ok((back, began.elapsed().as_secs_f64()))
}

/// Segments of a store, and the bytes of all its files.
fn files(dir: &Path) -> (usize, u64) {
    let sizes = |dir: &Path| -> Vec<u64> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|about| about.len()).collect()
    };
    let segments = sizes(&dir.join("segments"));
    let others = ["images", "manifests"].map(|part| sizes(&dir.join(part))).concat();
    (segments.len(), segments.iter().chain(&others).sum())
}

fn middle(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
