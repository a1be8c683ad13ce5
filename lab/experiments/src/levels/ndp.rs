//! `ndp`: a running program whose checkpoints go to slow global storage, written by the host itself
//! or drained beside it, compressed or not.
//!
//! Of each way: how much longer the program takes than with local checkpoints only, how old the
//! newest global checkpoint is (the work that a failure at a random instant loses), and beside them
//! what the model says from the size of a checkpoint, the link and the interval alone.

use std::fmt;

use anyhow::Context;
use lab_model::plot::{Axis, Body, Chart, Line};
use serde::Serialize;
use standfast_model::drain::{Drained, Visibility};
use standfast_model::levels::{Hierarchy, Level, Pattern};
use standfast_restart::Inventory;
use standfast_store::Options;

use super::process::{Process, words};
use super::program::{JOB, Told};
use crate::report::Report;

const NAME: &str = "ndp";

/// Host-written against drained checkpoints, over a slow link to global storage
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// MiB of the program's state
    #[arg(long, default_value_t = 24)]
    mib: usize,
    /// Checkpoints that each run takes
    #[arg(long, default_value_t = 16)]
    checkpoints: u64,
    /// Steps between checkpoints
    #[arg(long, default_value_t = 10)]
    every: u64,
    /// Rate of the link, MB/s
    #[arg(long, default_value_t = 12.0)]
    link: f64,
    /// The host writes one of so many checkpoints
    #[arg(long, default_value_t = 4)]
    ratio: u64,
    /// Threads that compute
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Codec of the compressed ways
    #[arg(long, default_value = "zstd:1")]
    codec: String,
}

/// One way of reaching global storage.
#[derive(Debug, Serialize)]
struct Point {
    way: String,
    seconds: f64,
    /// Time beyond that with local checkpoints only, as a share.
    slowdown: f64,
    model_slowdown: f64,
    /// Checkpoints that arrived.
    arrived: usize,
    /// Mean age of the newest global checkpoint.
    lost_s: f64,
    model_lost_s: f64,
    global_mib: f64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<16}{:>6.2} s, slowdown {:>6.1} % (model {:>6.1} %), {:>2} arrived of {:>5.1} MiB each, work lost {:>5.2} s (model {:>5.2} s)",
            self.way,
            self.seconds,
            100.0 * self.slowdown,
            100.0 * self.model_slowdown,
            self.arrived,
            self.global_mib,
            self.lost_s,
            self.model_lost_s
        )
    }
}

/// What one run told.
struct Run {
    seconds: f64,
    taken: Vec<(u64, f64)>,
    arrived: Vec<(u64, f64)>,
    global_bytes: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let report = &args.report;
    report.note(
        NAME,
        &format!(
            "{} MiB that all change, {} checkpoints, link {} MB/s, host writes one of {}",
            args.mib, args.checkpoints, args.link, args.ratio
        ),
    );
    let local = one(args, Way::Local, "none")?;
    let mut ages = Vec::new();
    let mut losses = Vec::new();
    for (name, way, codec) in [
        ("host", Way::Host, "none"),
        ("host + codec", Way::Host, &args.codec),
        ("drained", Way::Drained, "none"),
        ("drained + codec", Way::Drained, &args.codec),
    ] {
        let run = one(args, way, codec)?;
        let point = compare(args, name, way, &local, &run)?;
        report.point(NAME, &point);
        losses.push((name, point.lost_s));
        ages.push(Line { label: name.into(), points: ages_of(&run) });
    }
    let loss = |name: &str| losses.iter().find(|(own, _)| *own == name).map_or(0.0, |own| own.1);
    let text = "drained without codec loses less work than host-written with codec";
    report.claim(NAME, text, loss("drained") < loss("host + codec"));
    let text = "a codec lessens the work lost by a drain";
    report.claim(NAME, text, loss("drained + codec") < loss("drained"));
    report.draw(&chart(ages))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Local,
    Host,
    Drained,
}

/// One run of the program, with a drain beside it where it has one.
fn one(args: &Args, way: Way, codec: &str) -> anyhow::Result<Run> {
    let dir = tempfile::tempdir()?;
    let (store, target) = (dir.path().join("local"), dir.path().join("global"));
    let (store, target) = (store.display(), target.display());
    let rate = args.link * 1e6;
    let steps = args.checkpoints * args.every;
    let carry = if way == Way::Host { args.ratio } else { 0 };
    let link: [&dyn ToString; 6] = [&"--target", &target, &"--rate", &rate, &"--codec", &codec];
    let mut own: Vec<&dyn ToString> = vec![&"levels-program", &"--store", &store];
    own.extend([&"--mib" as &dyn ToString, &args.mib, &"--steps", &steps]);
    own.extend([&"--every" as &dyn ToString, &args.every, &"--threads", &args.threads]);
    own.extend([&"--carry" as &dyn ToString, &carry]);
    own.extend(link);
    let mut beside: Vec<&dyn ToString> = vec![&"levels-drain", &"--store", &store, &"--follow"];
    beside.extend(link);
    let drain = match way {
        Way::Drained => Some(Process::start(&words(&beside), &[])?),
        _ => None,
    };
    let mut told = Process::start(&words(&own), &[])?.wait()?;
    told.extend(drain.map_or(Vec::new(), Process::kill));
    let mut run = Run { seconds: 0.0, taken: Vec::new(), arrived: Vec::new(), global_bytes: 0.0 };
    for line in told {
        match line {
            Told::Taken { version, at_s } => run.taken.push((version, at_s)),
            Told::Arrived { version, at_s } => run.arrived.push((version, at_s)),
            Told::Done { seconds, .. } => run.seconds = seconds,
            Told::Durable { .. } | Told::Back { .. } | Told::Verified { .. } => {}
        }
    }
    let place = format!("{target}/{JOB}");
    let global = standfast_store::open(&place, &Options::default())?;
    if let Ok(inventory) = Inventory::read(&*global) {
        let of_one = |manifest: &standfast_format::Manifest| {
            manifest.segments.iter().map(|segment| segment.file_bytes).sum::<u64>() as f64
        };
        let all: Vec<f64> = inventory.checkpoints.iter().map(of_one).collect();
        run.global_bytes = all.iter().sum::<f64>() / all.len().max(1) as f64;
    }
    Ok(run)
}

fn compare(args: &Args, name: &str, way: Way, local: &Run, run: &Run) -> anyhow::Result<Point> {
    let lost_s = mean_age_s(run).with_context(|| {
        format!(
            "{name}: no checkpoint arrived: the run is too short, or the drain got no processor"
        )
    })?;
    let interval_s = local.seconds / args.checkpoints as f64;
    let carry_s = run.global_bytes / (args.link * 1e6);
    let (model_slowdown, model_lost_s) = match way {
        Way::Host => {
            let writes = (args.checkpoints / args.ratio) as f64;
            let period = args.ratio as f64 * interval_s + carry_s;
            (writes * carry_s / local.seconds, carry_s + period / 2.0)
        }
        _ => (0.0, drained_age_s(interval_s, carry_s)?),
    };
    Ok(Point {
        way: name.into(),
        seconds: run.seconds,
        slowdown: run.seconds / local.seconds - 1.0,
        model_slowdown,
        arrived: run.arrived.len(),
        lost_s,
        model_lost_s,
        global_mib: run.global_bytes / f64::from(1 << 20),
    })
}

/// The model's mean age of the newest drained checkpoint: one drain spans whole intervals, and what
/// has arrived is one to two drains old.
fn drained_age_s(interval_s: f64, drain_s: f64) -> anyhow::Result<f64> {
    let levels = vec![Level::new(0.0, 0.0, 0.5)?, Level::new(drain_s, drain_s, 0.5)?];
    let drained = Drained::new(Hierarchy::new(1e6, levels)?, drain_s, Visibility::Published)?;
    let pattern = Pattern { interval_s, every: vec![] };
    Ok(1.5 * drained.units_per_drain(&pattern) as f64 * interval_s)
}

/// When each checkpoint was taken that has arrived, and when it arrived, in this order.
fn arrivals(run: &Run) -> Vec<(f64, f64)> {
    let taken = |version: u64| run.taken.iter().find(|own| own.0 == version).map(|own| own.1);
    let mut all: Vec<(f64, f64)> =
        run.arrived.iter().filter_map(|(version, at)| Some((taken(*version)?, *at))).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    all
}

/// Mean age of the newest global checkpoint from the first arrival to the last checkpoint taken.
fn mean_age_s(run: &Run) -> Option<f64> {
    let all = arrivals(run);
    let end = run.taken.last()?.1.max(all.last()?.1);
    let ends = all.iter().skip(1).map(|own| own.1).chain([end]);
    let (mut area, mut newest) = (0.0, f64::MIN);
    for ((taken, from), to) in all.iter().zip(ends) {
        newest = f64::max(newest, *taken);
        // The age grows from the one at the arrival to the one at the next.
        area += ((from - newest) + (to - newest)) / 2.0 * (to - from);
    }
    let span = end - all.first()?.1;
    (span > 0.0).then_some(area / span)
}

/// The age over time, as a saw.
fn ages_of(run: &Run) -> Vec<(f64, f64)> {
    let all = arrivals(run);
    let Some(start) = run.taken.first().map(|own| own.1) else { return Vec::new() };
    let last = run.taken.iter().map(|own| own.1).chain(all.iter().map(|own| own.1));
    let end = last.fold(start, f64::max);
    let mut points = Vec::new();
    let ends = all.iter().skip(1).map(|own| own.1).chain([end]);
    for ((taken, from), to) in all.iter().zip(ends) {
        points.push((from - start, from - taken));
        points.push((to - start, to - taken));
    }
    points
}

fn chart(lines: Vec<Line>) -> Chart {
    let most = |pick: fn(&(f64, f64)) -> f64| {
        lines.iter().flat_map(|line| &line.points).map(pick).fold(1.0, f64::max)
    };
    Chart {
        name: "ndp-age".to_owned(),
        title: "Age of the newest global checkpoint".to_owned(),
        x: Axis::linear("time, s", 0.0, most(|point| point.0)),
        y: Axis::linear("age, s", 0.0, 1.05 * most(|point| point.1)),
        body: Body::Lines(lines),
    }
}
