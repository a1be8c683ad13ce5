//! `star`: encoding time against the number of nodes, group size, file size, block size and form.
//!
//! Nodes are threads of this process and share its processors. So that only the size of a job
//! differs, as many virtual nodes run at every point, as one job or as several side by side; what
//! must stay flat is the processor time of a node. The cost model T = m t (a + b z + 2 c z) gets its
//! constants from messages and arithmetic alone.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use lab_model::plot::{Axis, Body, Chart, Line};
use lab_ring::{Form, StarTime, node_time, star_time};
use serde::Serialize;
use standfast_model::ring::StarCost;
use standfast_ring::Options;

use crate::report::Report;

const NAME: &str = "star";
/// Growth of a node's time from the fewest nodes to the most that is taken for noise.
const FLAT: f64 = 1.25;
/// Forms that are compared, and what they are called.
const FORMS: [(Form, &str); 3] = [
    (Form::Folded, "folded star"),
    (Form::TwoSteps, "two steps, as in the paper"),
    (Form::AllToOne, "all to one"),
];

/// Encoding time of the star: nodes, groups, file sizes, blocks, forms, and the cost model
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// Numbers of virtual nodes
    #[arg(long, value_delimiter = ',', default_values_t = [16, 32, 64, 128])]
    nodes: Vec<usize>,
    /// Members of a group, and shards
    #[arg(long, value_delimiter = ',', default_values_t = [4, 8])]
    groups: Vec<usize>,
    /// KiB of every node's checkpoint, where nodes are compared
    #[arg(long, default_value_t = 2048)]
    kib: usize,
    /// MiB of a node's checkpoint, where sizes, forms and blocks are compared
    #[arg(long, value_delimiter = ',', default_values_t = [4, 16, 64])]
    sizes: Vec<usize>,
    /// KiB of a block, where blocks are compared
    #[arg(long, value_delimiter = ',', default_values_t = [16, 32, 64, 128, 256, 512])]
    blocks: Vec<u32>,
    /// Repetitions of which the least counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

#[derive(Serialize)]
struct Point {
    sweep: &'static str,
    nodes: usize,
    k: usize,
    form: &'static str,
    bytes: usize,
    block_bytes: u32,
    /// By the clock; none where jobs run side by side.
    star_s: Option<f64>,
    /// Processor time of a node.
    node_s: f64,
    model_s: Option<f64>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<6} {:>4} nodes, k={}, {:<26} {:>5} KiB in blocks of {:>4} KiB: {:>7.2} ms of processor a node",
            self.sweep,
            self.nodes,
            self.k,
            self.form,
            self.bytes >> 10,
            self.block_bytes >> 10,
            self.node_s * 1e3
        )?;
        if let Some(star_s) = self.star_s {
            write!(f, ", {:.2} ms in all", star_s * 1e3)?;
        }
        match self.model_s {
            Some(model) => write!(f, ", model {:.2} ms", model * 1e3),
            None => Ok(()),
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let all = args.nodes.iter().copied().max().unwrap_or(0);
    anyhow::ensure!(
        args.nodes.iter().all(|nodes| *nodes > 0 && all % nodes == 0),
        "numbers of nodes divide the largest"
    );
    for &k in &args.groups {
        over_nodes(args, k, all)?;
    }
    over_sizes(args)?;
    over_blocks(args)
}

fn over_nodes(args: &Args, k: usize, all: usize) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for (how, form) in FORMS {
        let block_bytes = Options::default().block_bytes;
        let bytes = args.kib << 10;
        let mut points = Vec::new();
        for &nodes in &args.nodes {
            let time = node_time((all / nodes, nodes), k, bytes, (how, block_bytes), args.rounds)?;
            let node_s = time.as_secs_f64();
            points.push((nodes as f64, node_s * 1e3));
            let point = Point {
                sweep: "nodes",
                nodes,
                k,
                form,
                bytes,
                block_bytes,
                star_s: None,
                node_s,
                model_s: None,
            };
            args.report.point(NAME, &point);
        }
        if let (Form::Folded, Some(first), Some(last)) = (how, points.first(), points.last()) {
            let text = format!(
                "k={k}: a node of {} takes {:.2} times the processor time of one of {}, flat up to {FLAT}",
                last.0,
                last.1 / first.1,
                first.0
            );
            args.report.claim(NAME, text, last.1 / first.1 <= FLAT);
        }
        lines.push(Line { label: form.to_owned(), points });
    }
    let title = format!("Encoding {} KiB a node, groups of {k} with {k} shards", args.kib);
    draw(
        args,
        &format!("star-nodes-k{k}"),
        &title,
        ("nodes of a job", "processor time of a node, ms"),
        lines,
    )
}

/// Forms and sizes of files, by the clock, on the smallest job of two groups.
fn over_sizes(args: &Args) -> anyhow::Result<()> {
    for &k in &args.groups {
        let mut lines: BTreeMap<usize, Line> = BTreeMap::new();
        for &mib in &args.sizes {
            let mut times = Vec::new();
            for (at, (how, form)) in FORMS.into_iter().enumerate() {
                let options = Options::default();
                let trial = (how, options.block_bytes);
                let time = star_time(2 * k, k, mib << 20, trial, args.rounds)?;
                times.push(time.star.as_secs_f64());
                tell(args, ("size", form), (2 * k, k), mib << 20, options, (&time, None));
                let line = lines
                    .entry(at)
                    .or_insert_with(|| Line { label: form.to_owned(), points: vec![] });
                line.points.push((mib as f64, 1e3 * time.star.as_secs_f64()));
            }
            let text = format!(
                "k={k}, {mib} MiB: two steps take {:.2} times, all to one {:.2} times the folded star",
                times[1] / times[0],
                times[2] / times[0]
            );
            args.report.claim(NAME, text, times[1] >= times[0]);
        }
        let title = format!("Encoding on {} nodes, groups of {k} with {k} shards", 2 * k);
        draw(
            args,
            &format!("star-sizes-k{k}"),
            &title,
            ("MiB of a node", "time of all, ms"),
            lines.into_values().collect(),
        )?;
    }
    Ok(())
}

/// Measured beside the model, on the smallest job.
fn over_blocks(args: &Args) -> anyhow::Result<()> {
    let (nodes, k, bytes) = (8, 4, args.sizes.first().copied().unwrap_or(4) << 20);
    let timed = |kib: u32| -> anyhow::Result<(Options, StarTime)> {
        let options = Options { block_bytes: kib << 10, ..Options::default() };
        Ok((options, star_time(nodes, k, bytes, (Form::Folded, kib << 10), args.rounds)?))
    };
    let all: Vec<(Options, StarTime)> =
        args.blocks.iter().map(|kib| timed(*kib)).collect::<anyhow::Result<_>>()?;
    let (Some(small), Some(large)) = (
        all.iter().min_by_key(|(options, _)| options.block_bytes),
        all.iter().max_by_key(|(options, _)| options.block_bytes),
    ) else {
        return Ok(());
    };
    let cost = cost(args, (nodes, k, bytes), small, large)?;
    let (mut measured, mut modelled) = (Vec::new(), Vec::new());
    for (options, time) in &all {
        let model = cost.time_s(bytes as f64, k as u64, f64::from(options.block_bytes))?;
        let kib = f64::from(options.block_bytes >> 10);
        measured.push((kib, 1e3 * time.star.as_secs_f64()));
        modelled.push((kib, 1e3 * model));
        tell(args, ("blocks", FORMS[0].1), (nodes, k), bytes, *options, (time, Some(model)));
    }
    let lines = vec![
        Line { label: "measured".to_owned(), points: measured },
        Line { label: "model, step by step".to_owned(), points: modelled },
    ];
    let title = format!("Encoding {} MiB a node on {nodes} nodes, groups of {k}", bytes >> 20);
    draw(args, "star-blocks", &title, ("KiB of a block", "time of all, ms"), lines)
}

/// The model's constants: two sizes of messages give latency and rate, both as they are with all
/// nodes at work; arithmetic alone gives its rate.
fn cost(
    args: &Args,
    (nodes, k, bytes): (usize, usize, usize),
    small: &(Options, StarTime),
    large: &(Options, StarTime),
) -> anyhow::Result<StarCost> {
    let messages = |options: &Options| (k * bytes.div_ceil(options.block_bytes as usize)) as f64;
    let seconds = |time: Duration| time.as_secs_f64();
    let (many, few) = (messages(&small.0), messages(&large.0));
    let spare = (seconds(small.1.messages) - seconds(large.1.messages)).max(0.0);
    let latency = if many > few { spare / (many - few) } else { 0.0 };
    let moved = (k * bytes) as f64;
    let rate = moved / (seconds(large.1.messages) - few * latency).max(1e-9);
    let multiply = 2.0 * moved / seconds(large.1.arithmetic);
    let text = format!(
        "model: latency {:.1} us, {:.2} GB/s of messages, {:.2} GB/s of products or sums, with {nodes} nodes on this machine; the star makes several products in one pass and may be faster",
        latency * 1e6,
        rate / 1e9,
        multiply / 1e9
    );
    args.report.note(NAME, &text);
    Ok(StarCost::new(latency.max(1e-9), rate, multiply)?)
}

fn tell(
    args: &Args,
    (sweep, form): (&'static str, &'static str),
    (nodes, k): (usize, usize),
    bytes: usize,
    options: Options,
    (time, model_s): (&StarTime, Option<f64>),
) {
    let block_bytes = options.block_bytes;
    let (star_s, node_s) = (Some(time.star.as_secs_f64()), time.node.as_secs_f64());
    let point = Point { sweep, nodes, k, form, bytes, block_bytes, star_s, node_s, model_s };
    args.report.point(NAME, &point);
}

fn draw(
    args: &Args,
    name: &str,
    title: &str,
    (x, y): (&str, &str),
    lines: Vec<Line>,
) -> anyhow::Result<()> {
    let values = || lines.iter().flat_map(|line| &line.points);
    let low = values().map(|(x, _)| *x).fold(f64::MAX, f64::min);
    let most = values().map(|(x, _)| *x).fold(low * 2.0, f64::max);
    let high = values().map(|(_, y)| *y).fold(f64::MIN_POSITIVE, f64::max);
    args.report.draw(&Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::log(x, low, most),
        y: Axis::linear(y, 0.0, 1.1 * high),
        body: Body::Lines(lines),
    })
}
