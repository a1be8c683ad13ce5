//! `bars`: the measured value of every bar beside its goal and the machine's ceiling.

use std::path::PathBuf;

use anyhow::Context;
use standfast_measure::{Bar, Better, Setting};

/// Measure every bar.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these capabilities: A spine, B deduplication across ranks, C capture, D the write path,
    /// E the ring, F levels, G models and planner, H side by side (others follow as they are built)
    #[arg(long, value_delimiter = ',', value_parser = ["A", "B", "C", "D", "E", "F", "G", "H"])]
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

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let rounds = if args.quick { 3 } else { 13 };
    let setting = Setting { bytes: args.mib << 20, dir: args.dir.clone(), rounds };
    let wanted = |letter: &str| args.only.is_empty() || args.only.iter().any(|one| one == letter);
    let mut missed = 0;
    let mut each = |bar: Bar| {
        missed += usize::from(!bar.met);
        print(&bar, args.json);
    };
    if wanted("A") {
        standfast_measure::bars(&setting, &mut each).context("measuring the spine")?;
    }
    if wanted("B") {
        let corpus = args.corpus.as_deref();
        crate::dedup::bars::bars(args.quick, corpus, &mut each)
            .context("sharing out pages among ranks")?;
        crate::mpi::bars::bars(args.quick, &mut each).context("running ranks under MPI")?;
    }
    if wanted("C") {
        standfast_measure::capture_bars(&setting, &mut each).context("capturing memory")?;
        each(preload(args.quick).context("allocating through the preload library")?);
    }
    if wanted("D") {
        let corpus = args.corpus.as_deref();
        crate::pipeline::bars::bars(args.quick, corpus, &mut each)
            .context("compressing in a pipeline")?;
        crate::aggregation::bars::bars(args.quick, &args.dir, &mut each)
            .context("aggregating the writes of a node")?;
    }
    if wanted("E") {
        crate::ring::bars::bars(rounds, &mut each).context("encoding on a ring")?;
    }
    if wanted("F") {
        crate::levels::bars::bars(args.quick, &args.dir, &mut each)
            .context("draining to global storage")?;
    }
    if wanted("G") {
        let bars = lab_model::bars::bars(args.quick, args.seed).context("checking the models")?;
        bars.iter().map(of_model).for_each(&mut each);
    }
    if wanted("H") {
        crate::compare::bars::bars(args.quick, &args.dir, &mut each)
            .context("comparing side by side")?;
    }
    if missed > 0 && !args.json {
        println!("{missed} not met");
    }
    Ok(())
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

fn print(bar: &Bar, json: bool) {
    if json {
        println!("{}", serde_json::to_string(bar).expect("a bar can be written"));
        return;
    }
    let relation = match bar.better {
        Better::Higher => ">=",
        Better::Lower => "<=",
    };
    let ceiling = match bar.ceiling {
        Some(ceiling) => format!("ceiling {ceiling:.2} {}", bar.ceiling_unit),
        None => String::new(),
    };
    let verdict = if bar.met { "met" } else { "NOT MET" };
    let (issue, name) = (bar.issue, &bar.name);
    // As many digits as it has, three at most.
    let goal = (bar.goal * 1e3).round() / 1e3;
    println!("{issue}  {name:<76}{:>9.3} {relation} {goal:<7} {verdict:<9}{ceiling}", bar.value);
}
