//! `star`: encoding time against the number of nodes, group size and block size.
//!
//! Nodes are threads of this process and share its processors, so growing jobs take longer by the
//! clock; what must stay flat is the processor time of a node. The cost model
//! T = m t (a + b z + 2 c z) gets its constants from messages and arithmetic alone.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use standfast_model::ring::StarCost;
use standfast_protect::measure::{StarTime, star_time};
use standfast_protect::{Options, Order};

use crate::report::Report;

const NAME: &str = "star";

/// Encoding time of the star: nodes, groups, blocks, orders, and the cost model
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// Numbers of virtual nodes
    #[arg(long, value_delimiter = ',', default_values_t = [8, 16, 32, 64, 128])]
    nodes: Vec<usize>,
    /// Members of a group, and shards
    #[arg(long, value_delimiter = ',', default_values_t = [4, 8])]
    groups: Vec<usize>,
    /// KiB of every node's checkpoint
    #[arg(long, default_value_t = 2048)]
    kib: usize,
    /// KiB of a block, where blocks are compared
    #[arg(long, value_delimiter = ',', default_values_t = [16, 32, 64, 128, 256, 512])]
    blocks: Vec<u32>,
    /// Repetitions of which the least counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

#[derive(Serialize)]
struct Point {
    nodes: usize,
    k: usize,
    order: &'static str,
    block_bytes: u32,
    star_s: f64,
    node_s: f64,
    model_s: Option<f64>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, k, order, block_bytes, star_s, node_s, model_s } = self;
        write!(
            f,
            "{nodes:>4} nodes, k={k}, {order:<8} blocks of {:>4} KiB: {:>8.2} ms, {:>6.2} ms of processor a node",
            block_bytes >> 10,
            star_s * 1e3,
            node_s * 1e3
        )?;
        match model_s {
            Some(model) => write!(f, ", model {:.2} ms", model * 1e3),
            None => Ok(()),
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    for &k in &args.groups {
        over_nodes(args, k)?;
    }
    over_blocks(args)
}

fn over_nodes(args: &Args, k: usize) -> anyhow::Result<()> {
    let mut per_node = Vec::new();
    for &nodes in &args.nodes {
        for order in [Order::Star, Order::Together] {
            let options = Options { order, ..Options::default() };
            let time = star_time(nodes, k, args.kib << 10, options, args.rounds)?;
            if order == Order::Star {
                per_node.push(time.node.as_secs_f64());
            }
            tell(args, nodes, k, options, &time, None);
        }
    }
    if let (Some(first), Some(last)) = (per_node.first(), per_node.last()) {
        let (few, many) = (args.nodes[0], args.nodes[args.nodes.len() - 1]);
        let text = format!(
            "k={k}: a node of {many} takes {:.2} times the processor time of one of {few}; flat up to noise of 1.5",
            last / first
        );
        args.report.claim(NAME, text, last / first <= 1.5);
    }
    Ok(())
}

/// Measured beside the model, on the smallest job.
fn over_blocks(args: &Args) -> anyhow::Result<()> {
    let (nodes, k, bytes) = (8, 4, args.kib << 10);
    let timed = |kib: u32| -> anyhow::Result<(Options, StarTime)> {
        let options = Options { block_bytes: kib << 10, ..Options::default() };
        Ok((options, star_time(nodes, k, bytes, options, args.rounds)?))
    };
    let (Some(&small), Some(&large)) = (args.blocks.iter().min(), args.blocks.iter().max()) else {
        return Ok(());
    };
    let (of_small, of_large) = (timed(small)?.1, timed(large)?.1);
    let messages = |kib: u32| (k * bytes.div_ceil((kib as usize) << 10)) as f64;
    // Two sizes give latency and rate; both as they are with all nodes at work.
    let seconds = |time: Duration| time.as_secs_f64();
    let (many, few) = (messages(small), messages(large));
    let spare = (seconds(of_small.messages) - seconds(of_large.messages)).max(0.0);
    let latency = if many > few { spare / (many - few) } else { 0.0 };
    let moved = (k * bytes) as f64;
    let rate = moved / (seconds(of_large.messages) - few * latency).max(1e-9);
    let multiply = 2.0 * moved / seconds(of_large.arithmetic);
    let cost = StarCost::new(latency.max(1e-9), rate, multiply)?;
    args.report.note(
        NAME,
        &format!(
            "model: latency {:.1} us, {:.2} GB/s of messages, {:.2} GB/s of products or sums, with {nodes} nodes on this machine",
            latency * 1e6,
            rate / 1e9,
            multiply / 1e9
        ),
    );
    for &kib in &args.blocks {
        let (options, time) = timed(kib)?;
        let model = cost.time_s(bytes as f64, k as u64, f64::from(options.block_bytes))?;
        tell(args, nodes, k, options, &time, Some(model));
    }
    Ok(())
}

fn tell(
    args: &Args,
    nodes: usize,
    k: usize,
    options: Options,
    time: &StarTime,
    model: Option<f64>,
) {
    let order = match options.order {
        Order::Star => "star",
        Order::Together => "all to one",
    };
    let point = Point {
        nodes,
        k,
        order,
        block_bytes: options.block_bytes,
        star_s: time.star.as_secs_f64(),
        node_s: time.node.as_secs_f64(),
        model_s: model,
    };
    args.report.point(NAME, &point);
}
