//! `dedup-worst`: the price of looking for duplicates where there are none (Figure 2).
//!
//! All pages of all ranks are different, so that every merge fills its table. Time against ranks
//! for several thresholds, and for the exact strategy beside them.

use std::fmt;

use anyhow::Context;
use lab_model::plot::Line;
use serde::Serialize;

use super::job::{self, Outcome, Way};
use super::names::{self, HASH_BYTES};
use super::watch::Path;
use super::{pace, processes};
use crate::report::{Report, over_ranks};

pub(super) const NAME: &str = "dedup-worst";

/// Time of the collective phase where no page is shared (Figure 2).
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// Most virtual ranks; powers of two up to there are tried
    #[arg(long, default_value_t = 512)]
    ranks: usize,
    /// Pages of each rank; the published figure has 262144
    #[arg(long, default_value_t = 1 << 16)]
    pages: usize,
    /// Thresholds, as powers of two
    #[arg(long, value_delimiter = ',', default_values_t = [16, 17, 18])]
    thresholds: Vec<u32>,
    /// Runs of each point; the least disturbed computing of each round counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// GiB of memory that the tables of all virtual ranks may take: larger jobs are left out
    /// [default: three quarters of what is free]
    #[arg(long)]
    memory: Option<f64>,
}

/// One point of the figure.
#[derive(Serialize)]
struct Point {
    strategy: String,
    ranks: usize,
    pages_per_rank: usize,
    wall_s: f64,
    #[serde(flatten)]
    path: Path,
    stored_pages: u64,
    true_pages: u64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Path { critical_s, critical_bytes, .. } = self.path;
        write!(
            f,
            "{:<14} {:>4} ranks  critical path {:>8.2} ms + {:>7.2} MB   wall {:>9.2} ms",
            self.strategy,
            self.ranks,
            critical_s * 1e3,
            critical_bytes as f64 / 1e6,
            self.wall_s * 1e3,
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.report.note(
        NAME,
        &format!(
            "all pages unique, {} on each rank; critical path: sum over the rounds of the slowest \
         rank's computing (thread clock), and of the largest message; wall: all virtual ranks on \
         this machine's cores",
            args.pages
        ),
    );
    let mut lines = Vec::new();
    for way in ways(args) {
        let points = curve(args, way)?;
        check(args, way, &points);
        let line = |y: fn(&Point) -> f64| points.iter().map(|p| (p.ranks as f64, y(p))).collect();
        lines.push(Line { label: way.name(), points: line(|point| point.path.critical_s) });
    }
    args.report.draw(&over_ranks(
        NAME,
        "Collective phase, all pages unique: critical path",
        "seconds",
        lines,
    ))?;
    let ranks = args.ranks.min(8);
    let unique = |rank| names::unique(rank, args.pages);
    args.report.note(NAME, &pace::on_threads(ranks, args.pages, "unique", unique)?);
    processes::measure(&args.report, ways(args), args.ranks, args.pages)
}

fn ways(args: &Args) -> impl Iterator<Item = Way> {
    args.thresholds.iter().map(|power| Way::TopK(1 << power)).chain([Way::Exact])
}

fn curve(args: &Args, way: Way) -> anyhow::Result<Vec<Point>> {
    let mut points = Vec::new();
    let most = args.memory.map_or_else(free_gib, Ok)?;
    for ranks in doublings(args.ranks) {
        let gib = ranks as f64 * bytes(way, args.pages) / f64::from(1 << 30);
        if gib > most {
            args.report.note(
                NAME,
                &format!(
                    "{} on {ranks} virtual ranks would take {gib:.1} GiB: left out (--memory)",
                    way.name(),
                ),
            );
            break;
        }
        let outcome = job::run(ranks, way, args.rounds, |rank| names::unique(rank, args.pages))?;
        let point = point(way, ranks, args.pages, &outcome);
        args.report.point(NAME, &point);
        points.push(point);
    }
    Ok(points)
}

fn point(way: Way, ranks: usize, pages: usize, outcome: &Outcome) -> Point {
    Point {
        strategy: way.name(),
        ranks,
        pages_per_rank: pages,
        wall_s: outcome.wall_s,
        path: outcome.path,
        stored_pages: outcome.total(),
        true_pages: (ranks * pages) as u64,
    }
}

/// Three quarters of the memory that programs could get now.
fn free_gib() -> anyhow::Result<f64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no MemAvailable")?;
    Ok(0.75 * kib.parse::<f64>()? / f64::from(1 << 20))
}

/// 1, 2, 4 and so on.
pub(super) fn doublings(most: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |ranks| Some(2 * ranks)).take_while(move |ranks| *ranks <= most)
}

/// Memory of a virtual rank: its own table, the one it received, the union, and one in the post.
fn bytes(way: Way, pages: usize) -> f64 {
    let entries = match way {
        Way::TopK(threshold) => pages.max(threshold as usize),
        Way::Exact => pages,
    };
    (5 * entries * (HASH_BYTES + 8)) as f64
}

/// Whether time grows with the logarithm of the ranks, once the tables are full.
fn check(args: &Args, way: Way, points: &[Point]) {
    let Way::TopK(threshold) = way else {
        let all = points.iter().all(|point| point.stored_pages == point.true_pages);
        args.report.claim(NAME, "exact: as many pages stored as there are", all);
        return;
    };
    let full = threshold as usize / args.pages;
    let full = points.iter().filter(|point| point.ranks > 1 && point.ranks >= full);
    let full: Vec<(f64, f64)> =
        full.map(|point| ((point.ranks as f64).log2(), point.path.critical_s)).collect();
    if full.len() < 3 {
        return;
    }
    let fit = Fit::of(&full);
    args.report.claim(
        NAME,
        format!(
            "{}: {:.2} ms + {:.2} ms for each doubling of the ranks; share of the variation that \
             this explains: {:.3} (at least 0.9)",
            way.name(),
            fit.start * 1e3,
            fit.slope * 1e3,
            fit.explained,
        ),
        fit.explained >= 0.9,
    );
}

/// A straight line through points, by least squares.
struct Fit {
    start: f64,
    slope: f64,
    /// Coefficient of determination.
    explained: f64,
}

impl Fit {
    fn of(points: &[(f64, f64)]) -> Self {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
        let start = y - slope * x;
        let left: f64 = points.iter().map(|p| (p.1 - start - slope * p.0).powi(2)).sum();
        let all: f64 = points.iter().map(|point| (point.1 - y).powi(2)).sum();
        Self { start, slope, explained: 1.0 - left / all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found() {
        let fit = Fit::of(&[(1.0, 5.0), (2.0, 7.0), (3.0, 9.0)]);
        assert!((fit.start - 3.0).abs() < 1e-9 && (fit.slope - 2.0).abs() < 1e-9);
        assert!((fit.explained - 1.0).abs() < 1e-9);
        let bent = Fit::of(&[(1.0, 1.0), (2.0, 9.0), (3.0, 1.0)]);
        assert!(bent.explained < 0.1);
    }
}
