//! `dedup-best`: every rank holds the same pages (Figure 3).
//!
//! One copy must be stored, in equal shares: average and most stored pages coincide. And the time
//! until everything is on the disk, against ranks that dump all they have.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lab_model::plot::Line;
use serde::Serialize;
use standfast_comm::Comm;
use standfast_format::HashKind;
use standfast_reduce::PageHasher;
use standfast_testkit::run_threads;

use super::job::{self, Way};
use super::names::{HASH_BYTES, name};
use super::pace;
use crate::report::{Report, over_ranks};

pub(super) const NAME: &str = "dedup-best";
const PAGE_BYTES: usize = 4096;
/// Pages of one write.
const WRITE_PAGES: usize = 256;

/// Identical pages on all ranks (Figure 3).
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// Numbers of virtual ranks
    #[arg(long, value_delimiter = ',', default_values_t = [1, 12, 24, 48, 96, 192, 300])]
    ranks: Vec<usize>,
    /// Pages of each rank, and the threshold; the published figure has 262144
    #[arg(long, default_value_t = 1 << 14)]
    pages: usize,
    /// Most ranks that really write
    #[arg(long, default_value_t = 24)]
    writers: usize,
    /// Pages of each rank that writes
    #[arg(long, default_value_t = 1 << 12)]
    written: usize,
    /// Directory on the disk to write to
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

/// Figure 3 (a): how much is stored.
#[derive(Serialize)]
struct Stored {
    strategy: String,
    ranks: usize,
    pages_per_rank: usize,
    average_bytes: f64,
    most_bytes: f64,
    total_pages: u64,
    imbalance: f64,
}

impl Stored {
    /// Within 2 % of the average, or of the next whole page: pages are not divided.
    fn is_even(&self) -> bool {
        let page = PAGE_BYTES as f64;
        self.most_bytes
            <= (1.02 * self.average_bytes).max((self.average_bytes / page).ceil() * page)
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<12} {:>4} ranks  stored {:>8.3} MB on average, {:>8.3} MB at most ({:.3} x), {} pages in all",
            self.strategy,
            self.ranks,
            self.average_bytes / 1e6,
            self.most_bytes / 1e6,
            self.imbalance,
            self.total_pages,
        )
    }
}

/// Figure 3 (b): how long it takes.
#[derive(Serialize)]
struct Taken {
    mode: String,
    ranks: usize,
    pages_per_rank: usize,
    durable_s: f64,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<12} {:>4} ranks  durable after {:>7.3} s",
            self.mode, self.ranks, self.durable_s
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let ways = [Way::TopK(args.pages as u32), Way::Exact];
    let mut lines = Vec::new();
    for way in ways {
        let mut curves = [Vec::new(), Vec::new()];
        let mut even = true;
        for ranks in args.ranks.iter().copied() {
            let point = stored(way, ranks, args.pages)?;
            args.report.point(NAME, &point);
            curves[0].push((ranks as f64, point.average_bytes / 1e6));
            curves[1].push((ranks as f64, point.most_bytes / 1e6));
            even &= point.total_pages == args.pages as u64 && point.is_even();
        }
        let text = format!("{}: one copy, and no rank more than 2 % above the average", way.name());
        args.report.claim(NAME, text, even);
        let [average, most] = curves;
        lines.push(Line { label: format!("{}, average", way.name()), points: average });
        lines.push(Line { label: format!("{}, most", way.name()), points: most });
    }
    let title = "Identical ranks: stored by a rank";
    args.report.draw(&over_ranks("dedup-best-stored", title, "MB", lines))?;
    args.report.note(NAME, &pace::on_threads(8, args.pages, "identical", |_| same(args.pages))?);
    times(args)
}

/// Names of pages that every rank has.
fn same(pages: usize) -> Vec<u8> {
    (0..pages as u64).flat_map(name).collect()
}

fn stored(way: Way, ranks: usize, pages: usize) -> anyhow::Result<Stored> {
    let outcome = job::run(ranks, way, 1, |_| same(pages))?;
    Ok(Stored {
        strategy: way.name(),
        ranks,
        pages_per_rank: pages,
        average_bytes: outcome.average() * PAGE_BYTES as f64,
        most_bytes: (outcome.most() as usize * PAGE_BYTES) as f64,
        total_pages: outcome.total(),
        imbalance: outcome.imbalance(),
    })
}

fn times(args: &Args) -> anyhow::Result<()> {
    let memory: Vec<u8> =
        (0..(args.written * PAGE_BYTES / HASH_BYTES) as u64).flat_map(name).collect();
    let dir = tempfile::tempdir_in(&args.dir)?;
    let modes = [
        ("full", None),
        ("collective", Some(Way::TopK(args.written as u32))),
        ("exact", Some(Way::Exact)),
    ];
    let mut lines: Vec<Line> = Vec::new();
    for (mode, way) in modes {
        let mut points = Vec::new();
        for ranks in args.ranks.iter().copied().filter(|ranks| *ranks <= args.writers) {
            let durable_s = durable(ranks, way, &memory, dir.path())?;
            let mode = mode.to_owned();
            args.report
                .point(NAME, &Taken { mode, ranks, pages_per_rank: args.written, durable_s });
            points.push((ranks as f64, durable_s));
        }
        lines.push(Line { label: mode.to_owned(), points });
    }
    let last = |line: &Line| line.points.last().map(|point| point.1);
    if let (Some(full), Some(exact)) = (last(&lines[0]), last(&lines[2])) {
        let saved = 1.0 - exact / full;
        let text = format!("exact takes {:.0} % less time than a full dump", 100.0 * saved);
        args.report.claim(NAME, text, saved > 0.0);
    }
    let title = "Identical ranks: time until durable";
    args.report.draw(&over_ranks("dedup-best-time", title, "seconds", lines))
}

/// Seconds until the pages of all ranks are on the disk: hashed and shared out, or all dumped.
fn durable(ranks: usize, way: Option<Way>, memory: &[u8], dir: &Path) -> anyhow::Result<f64> {
    let told = run_threads(ranks, |comm| -> anyhow::Result<f64> {
        let path = dir.join(format!("rank{}", comm.rank()));
        comm.barrier()?;
        let started = Instant::now();
        match way {
            None => write(&path, memory.chunks(PAGE_BYTES))?,
            Some(way) => {
                let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
                let mut hashes = vec![0; memory.len() / PAGE_BYTES * HASH_BYTES];
                hasher.hash_pages(memory, PAGE_BYTES, &mut hashes);
                let assignment = way.strategy().assign(&comm, &hashes)?;
                let page = |number: u32| &memory[number as usize * PAGE_BYTES..][..PAGE_BYTES];
                write(&path, assignment.mine().map(page))?;
            }
        }
        comm.barrier()?;
        let taken = started.elapsed().as_secs_f64();
        std::fs::remove_file(&path)?;
        Ok(taken)
    });
    let told = told.into_iter().collect::<anyhow::Result<Vec<f64>>>()?;
    Ok(told.into_iter().fold(0.0, f64::max))
}

fn write<'a>(path: &Path, pages: impl Iterator<Item = &'a [u8]>) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    let mut waiting = Vec::with_capacity(WRITE_PAGES * PAGE_BYTES);
    for page in pages {
        waiting.extend_from_slice(page);
        if waiting.len() == WRITE_PAGES * PAGE_BYTES {
            file.write_all(&waiting)?;
            waiting.clear();
        }
    }
    file.write_all(&waiting)?;
    file.sync_data()
}
