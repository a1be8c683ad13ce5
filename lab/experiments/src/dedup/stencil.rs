//! `dedup-stencil`: a storm crossing a quiet domain, with more and more ranks (Figures 4 and 5).
//!
//! What each mode stores at the second of two checkpoints:
//!
//! | mode | stores |
//! |---|---|
//! | full | every page |
//! | incremental | pages of arrays that the program writes: writes are seen, not changes |
//! | local | each page once in a rank, zero pages not at all |
//! | collective | the same over all ranks, as far as the top-K view reaches |
//! | exact | each page once over all ranks |
//! | exact, in time | of these, what the first checkpoint has not stored |
//!
//! Subdomains are computed and hashed one after the other: only hashes are kept.

use std::fmt;
use std::time::Instant;

use lab_model::plot::Line;
use serde::Serialize;
use standfast_format::HashKind;
use standfast_reduce::{PageHasher, is_zero};

use super::job::{self, Outcome, Way};
use super::names::{HASH_BYTES, Name};
use super::storm::Subdomain;
use crate::report::{Report, over_ranks};

pub(super) const NAME: &str = "dedup-stencil";
const PAGE_BYTES: usize = 4096;
/// Entries of the top-K view: as published, 0.7 for each page of a rank.
pub(super) const THRESHOLD: u32 = 3072;
/// Times of the two checkpoints.
const TIMES: [f64; 2] = [0.45, 0.55];
/// Runs of the collective phase, of which the least disturbed computing counts.
const ROUNDS: usize = 3;
/// Ranks that share a node and its disk.
const NODE_RANKS: usize = 24;

/// A storm crossing a quiet domain (Figures 4 and 5).
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// Numbers of virtual ranks
    #[arg(long, value_delimiter = ',', default_values_t = [1, 24, 48, 96, 192, 384, 768])]
    ranks: Vec<usize>,
    /// Threshold of the top-K view
    #[arg(long, default_value_t = THRESHOLD)]
    threshold: u32,
    /// MB/s of a node's disk, for the time until durable
    #[arg(long, default_value_t = 100.0)]
    disk: f64,
}

/// What one rank has at a checkpoint.
struct Memory {
    pages: u64,
    written_pages: u64,
    /// Different pages that are not zero: the candidates.
    names: Vec<u8>,
}

/// Both checkpoints of all ranks, and how long hashing took for each page.
pub(super) struct Job {
    first: Vec<Memory>,
    second: Vec<Memory>,
    page_s: f64,
}

impl Job {
    /// Computes and hashes the memory of all ranks.
    pub(super) fn compute(ranks: usize) -> Self {
        let mut hashing = Hashing::new();
        let mut at = |time: f64| -> Vec<Memory> {
            (0..ranks).map(|rank| hashing.take(Subdomain::of(rank, ranks), time)).collect()
        };
        let [first, second] = TIMES.map(&mut at);
        Self { first, second, page_s: hashing.seconds / hashing.pages as f64 }
    }

    fn ranks(&self) -> usize {
        self.second.len()
    }

    /// Runs one way of sharing out at the second checkpoint, so many times.
    pub(super) fn share(&self, way: Way, rounds: usize) -> anyhow::Result<Outcome> {
        job::run(self.ranks(), way, rounds, |rank| self.second[rank].names.clone())
    }

    /// Most pages that a rank stores which looks only at itself.
    pub(super) fn local_most(&self) -> u64 {
        self.second.iter().map(Memory::local_pages).max().unwrap_or(0)
    }

    /// How many more pages an outcome has than there are different ones.
    pub(super) fn beyond(&self, outcome: &Outcome) -> i64 {
        outcome.beyond(&names(&self.second))
    }
}

fn names(memories: &[Memory]) -> Vec<&[u8]> {
    memories.iter().map(|memory| memory.names.as_slice()).collect()
}

impl Memory {
    fn local_pages(&self) -> u64 {
        (self.names.len() / HASH_BYTES) as u64
    }
}

/// Hashes memory and takes the time.
struct Hashing {
    hasher: PageHasher,
    seconds: f64,
    pages: u64,
}

impl Hashing {
    fn new() -> Self {
        Self { hasher: PageHasher::new(HashKind::Xxh3, &[7; 32]), seconds: 0.0, pages: 0 }
    }

    fn take(&mut self, subdomain: Subdomain, time: f64) -> Memory {
        let mut memory = Memory { pages: 0, written_pages: 0, names: Vec::new() };
        let mut seen = std::collections::HashSet::new();
        let mut bytes = Vec::new();
        subdomain.for_each_array(time, |values, written| {
            bytes.clear();
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            let names = self.hash(&bytes);
            memory.pages += names.len() as u64;
            memory.written_pages += if written { names.len() as u64 } else { 0 };
            for (name, page) in names.into_iter().zip(bytes.chunks_exact(PAGE_BYTES)) {
                if !is_zero(page) && seen.insert(name) {
                    memory.names.extend_from_slice(&name);
                }
            }
        });
        memory
    }

    fn hash(&mut self, bytes: &[u8]) -> Vec<Name> {
        let pages = bytes.len() / PAGE_BYTES;
        let mut names = vec![[0; HASH_BYTES]; pages];
        let started = Instant::now();
        self.hasher.hash_pages(bytes, PAGE_BYTES, names.as_flattened_mut());
        self.seconds += started.elapsed().as_secs_f64();
        self.pages += pages as u64;
        names
    }
}

/// One mode with one number of ranks.
#[derive(Clone, Debug, Serialize)]
struct Point {
    mode: &'static str,
    ranks: usize,
    pages_per_rank: u64,
    average_bytes: f64,
    most_bytes: f64,
    /// Of all that a rank holds.
    average_share: f64,
    /// Hashing, the collective phase, and the most loaded node's disk.
    checkpoint_s: f64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<15} {:>4} ranks  stored {:>7.3} MB on average ({:>5.1} %), {:>7.3} MB at most; {:>7.3} s",
            self.mode,
            self.ranks,
            self.average_bytes / 1e6,
            100.0 * self.average_share,
            self.most_bytes / 1e6,
            self.checkpoint_s,
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut points: Vec<Point> = Vec::new();
    for ranks in args.ranks.iter().copied() {
        let job = Job::compute(ranks);
        let modes = modes(args, &job)?;
        modes.iter().for_each(|point| args.report.point(NAME, point));
        points.extend(modes);
    }
    claims(args, &points);
    plots(args, &points)
}

fn modes(args: &Args, job: &Job) -> anyhow::Result<Vec<Point>> {
    let pages = job.second[0].pages;
    let hash_s = job.page_s * pages as f64;
    let of = |count: fn(&Memory) -> u64| job.second.iter().map(count).collect::<Vec<u64>>();
    let collective = job.share(Way::TopK(args.threshold), ROUNDS)?;
    let exact = job.share(Way::Exact, ROUNDS)?;
    args.report.claim(
        NAME,
        format!("{} ranks: exact stores as many pages as there are", job.ranks()),
        job.beyond(&exact) == 0,
    );
    let in_time = job::run_in_time(&names(&job.first), &names(&job.second))?;
    let modes = [
        ("full", of(|memory| memory.pages), 0.0),
        ("incremental", of(|memory| memory.written_pages), 0.0),
        ("local", of(Memory::local_pages), hash_s),
        ("collective", collective.stored.clone(), hash_s + collective.path.critical_s),
        ("exact", exact.stored.clone(), hash_s + exact.path.critical_s),
        ("exact, in time", in_time, hash_s + exact.path.critical_s),
    ];
    let point = |(mode, stored, reduce_s): (&'static str, Vec<u64>, f64)| {
        let bytes = |pages: f64| pages * PAGE_BYTES as f64;
        let average = stored.iter().sum::<u64>() as f64 / stored.len() as f64;
        let node = stored.chunks(NODE_RANKS).map(|node| node.iter().sum::<u64>()).max();
        Point {
            mode,
            ranks: stored.len(),
            pages_per_rank: pages,
            average_bytes: bytes(average),
            most_bytes: bytes(stored.iter().copied().max().unwrap_or(0) as f64),
            average_share: average / pages as f64,
            checkpoint_s: reduce_s + bytes(node.unwrap_or(0) as f64) / (args.disk * 1e6),
        }
    };
    Ok(modes.into_iter().map(point).collect())
}

/// What the published figures show, at the largest number of ranks.
fn claims(args: &Args, points: &[Point]) {
    let curve =
        |mode: &str| -> Vec<&Point> { points.iter().filter(|point| point.mode == mode).collect() };
    let last = |mode: &str| curve(mode).last().copied();
    let (Some(full), Some(local)) = (last("full"), last("local")) else { return };
    for mode in ["collective", "exact"] {
        let Some(end) = last(mode) else { return };
        let falls =
            curve(mode).windows(2).all(|p| p[1].average_bytes <= p[0].average_bytes * 1.001);
        args.report.claim(NAME, format!("{mode}: the average falls as ranks grow"), falls);
        let ratio = local.average_bytes / end.average_bytes;
        let text = format!("{mode}: {ratio:.1} times below local on average (at least 5)");
        args.report.claim(NAME, text, ratio >= 5.0);
        let share = end.most_bytes / local.most_bytes;
        let text = format!("{mode}: the most loaded rank has {share:.2} of local's (at most 0.5)");
        args.report.claim(NAME, text, share <= 0.5);
        let saved = 1.0 - end.checkpoint_s / full.checkpoint_s;
        let text = format!("{mode}: {:.0} % less time than full (at least 85)", 100.0 * saved);
        args.report.claim(NAME, text, saved >= 0.85);
    }
}

/// A figure: end of its name, title, unit and what it shows of a point.
struct Figure(&'static str, &'static str, &'static str, fn(&Point) -> f64);

fn plots(args: &Args, points: &[Point]) -> anyhow::Result<()> {
    let modes = ["full", "incremental", "local", "collective", "exact", "exact, in time"];
    let figures = [
        Figure("average", "Storm: stored by a rank on average", "MB", |p| p.average_bytes / 1e6),
        Figure("most", "Storm: stored by the most loaded rank", "MB", |p| p.most_bytes / 1e6),
        Figure("time", "Storm: time of a checkpoint", "seconds", |p| p.checkpoint_s),
    ];
    for Figure(name, title, unit, value) in figures {
        let points_of = |mode: &str| {
            let points = points.iter().filter(|point| point.mode == mode);
            points.map(|point| (point.ranks as f64, value(point))).collect()
        };
        let line = |mode: &str| Line { label: mode.to_owned(), points: points_of(mode) };
        let lines = modes.into_iter().map(line).collect();
        args.report.draw(&over_ranks(&format!("{NAME}-{name}"), title, unit, lines))?;
    }
    Ok(())
}
