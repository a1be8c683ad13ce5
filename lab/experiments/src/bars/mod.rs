//! `bars`: the measured value of every bar beside its goal and the machine's ceiling.
//!
//! The exit code is 0 when every bar was measured and met, 1 when one was missed, and 3 when none
//! was missed and some could not be measured.

pub(crate) mod agent;
mod cost;
mod sheet;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use standfast_measure::{Bar, Better, Measured, Setting};

pub(crate) use sheet::Sheet;

/// Measure every bar.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these capabilities: A spine, B deduplication across ranks, C capture, D the write path,
    /// E the ring, F levels, G models and planner, H side by side, K trust, L what capturing costs
    #[arg(long, value_delimiter = ',', value_parser = LETTERS.map(|(letter, _)| letter))]
    only: Vec<String>,
    /// Fewer repetitions and random machines: under a minute per letter
    #[arg(long)]
    quick: bool,
    /// JSON lines instead of text
    #[arg(long)]
    json: bool,
    /// Directory on the file system to measure
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    /// MiB of memory to protect
    #[arg(long, default_value_t = 1024)]
    mib: usize,
    /// Seed of the random machines of G
    #[arg(long, default_value_t = lab_model::bars::SEED)]
    seed: u64,
    /// Directory of the corpus of real pages
    #[arg(long, env = "STANDFAST_CORPUS", value_name = "DIR")]
    corpus: Option<PathBuf>,
}

type Measure = fn(&Args, &mut Sheet) -> anyhow::Result<()>;

/// Every letter and what measures it.
const LETTERS: [(&str, Measure); 10] = [
    ("A", spine),
    ("B", dedup),
    ("C", capture),
    ("D", write_path),
    ("E", ring),
    ("F", levels),
    ("G", models),
    ("H", side_by_side),
    ("K", trust),
    ("L", capture_costs),
];

pub(crate) fn run(args: &Args) -> ExitCode {
    let mut sheet = Sheet::begin(args.json);
    for (letter, measure) in LETTERS {
        if !args.only.is_empty() && !args.only.iter().any(|one| one == letter) {
            continue;
        }
        if let Err(error) = measure(args, &mut sheet) {
            sheet.unmeasured(letter, "the rest of this letter", format!("{error:#}"));
        }
    }
    sheet.end()
}

impl Args {
    fn setting(&self) -> Setting {
        Setting { bytes: self.mib << 20, dir: self.dir.clone(), rounds: self.rounds() }
    }

    fn rounds(&self) -> usize {
        if self.quick { 3 } else { 13 }
    }
}

fn spine(args: &Args, sheet: &mut Sheet) -> anyhow::Result<()> {
    standfast_measure::bars(&args.setting(), |bar| sheet.bar(bar)).context("measuring the spine")
}

fn dedup(args: &Args, sheet: &mut Sheet) -> anyhow::Result<()> {
    crate::dedup::bars::bars(args.quick, args.corpus.as_deref(), sheet)
        .context("sharing out pages among ranks")?;
    crate::mpi::bars::bars(args.quick, sheet).context("running ranks under MPI")
}

fn capture(args: &Args, sheet: &mut Sheet) -> anyhow::Result<()> {
    let each = |measured| {
        if let Measured::Bar(bar) = measured {
            sheet.bar(bar);
        }
    };
    standfast_measure::bench_capture(&args.setting(), each).context("capturing memory")?;
    sheet.bar(preload(args.quick).context("allocating through the preload library")?);
    Ok(())
}

fn write_path(args: &Args, sheet: &mut Sheet) -> anyhow::Result<()> {
    crate::pipeline::bars::bars(args.quick, args.corpus.as_deref(), sheet)
        .context("compressing in a pipeline")?;
    crate::aggregation::bars::bars(args.quick, &args.dir, sheet)
        .context("aggregating the writes of a node")
}

fn ring(args: &Args, sheet: &mut Sheet) -> anyhow::Result<()> {
    crate::ring::bars::bars(args.rounds(), sheet).context("encoding on a ring")
}

fn levels(args: &Args, sheet: &mut Sheet) -> anyhow::Result<()> {
    crate::levels::bars::bars(args.quick, &args.dir, sheet).context("draining to global storage")
}

fn models(args: &Args, sheet: &mut Sheet) -> anyhow::Result<()> {
    let bars = lab_model::bars::bars(args.quick, args.seed).context("checking the models")?;
    bars.iter().for_each(|bar| sheet.bar(of_model(bar)));
    Ok(())
}

fn side_by_side(args: &Args, sheet: &mut Sheet) -> anyhow::Result<()> {
    crate::compare::bars::bars(args.quick, &args.dir, sheet).context("comparing side by side")
}

fn trust(args: &Args, sheet: &mut Sheet) -> anyhow::Result<()> {
    crate::trust::bars::bars(args.quick, &args.dir, sheet);
    Ok(())
}

fn capture_costs(args: &Args, sheet: &mut Sheet) -> anyhow::Result<()> {
    cost::bars(&args.setting(), sheet).context("capturing memory in every way")
}

/// The preload library's malloc against the allocator that it is built on.
fn preload(quick: bool) -> anyhow::Result<Bar> {
    let (turns, rounds) = if quick { (5, 300_000) } else { (25, 1_000_000) };
    let library = preload_bench::library()?;
    let compared = preload_bench::compare(&library, turns, rounds)?;
    let name = format!("preload malloc, {} threads, time by plain mimalloc's", compared.threads);
    let plain_ms = compared.plain_best_s() * 1e3;
    Ok(Bar::new("C", name, compared.ratio(), Better::Lower, 1.1).ceiling(plain_ms, "ms"))
}

/// A bar of the models, whose values have no ceiling of this machine but a best possible value.
fn of_model(bar: &lab_model::bars::Bar) -> Bar {
    let better = match bar.better {
        lab_model::bars::Better::Higher => Better::Higher,
        lab_model::bars::Better::Lower => Better::Lower,
    };
    let same = Bar::new("G", format!("{}, {}", bar.name, bar.unit), bar.value, better, bar.goal);
    match bar.ceiling {
        Some(ceiling) => same.ceiling(ceiling, bar.unit),
        None => same,
    }
}
