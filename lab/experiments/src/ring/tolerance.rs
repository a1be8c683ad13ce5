//! `tolerance`: which losses of nodes are survived, by scheme, at the same storage.
//!
//! The same sets of nodes are put to every scheme: all there are where they are few, else drawn.
//! Modules of neighbouring nodes that fail together stand for shared boards and power supplies.

use std::fmt;

use lab_model::plot::{Axis, Body, Chart, Line};
use serde::Serialize;
use standfast_model::ring::Bursts;

use super::schemes::Scheme;
use super::sets::Loss;
use crate::report::Report;

const NAME: &str = "tolerance";

/// Losses of nodes that are survived: the ring beside XOR groups, partner copies and LWC
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// Numbers of nodes
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64, 1024, 10_000])]
    nodes: Vec<usize>,
    /// Members of a group
    #[arg(long, default_value_t = 8)]
    k: usize,
    /// Nodes (or modules) lost at once
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16])]
    lost: Vec<usize>,
    /// Neighbouring nodes that fail together
    #[arg(long, value_delimiter = ',', default_values_t = [1, 3])]
    modules: Vec<usize>,
    /// Nodes (or modules) that an incident takes on the average
    #[arg(long, default_value_t = 1.2)]
    per_incident: f64,
    /// Sets drawn where there are too many for all
    #[arg(long, default_value_t = 1000)]
    samples: usize,
    /// Where drawing starts
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct Point {
    scheme: String,
    storage: f64,
    nodes: usize,
    lost: usize,
    module: usize,
    sets: u64,
    exhaustive: bool,
    fatal: f64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.exhaustive { "all" } else { "drawn" };
        write!(
            f,
            "{:<14} {:.2} bytes/byte, {:>5} nodes, {:>2} lost at once, modules of {}: fatal {:.4} of {} sets ({how})",
            self.scheme, self.storage, self.nodes, self.lost, self.module, self.fatal, self.sets
        )
    }
}

#[derive(Serialize)]
struct Incident {
    scheme: String,
    storage: f64,
    nodes: usize,
    module: usize,
    per_incident: f64,
    fatal: f64,
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<14} {:.2} bytes/byte, {:>5} nodes, modules of {}: an incident of {} on the average is fatal with {:.6}",
            self.scheme, self.storage, self.nodes, self.module, self.per_incident, self.fatal
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(args.k >= 2, "groups have at least two members");
    anyhow::ensure!(args.modules.iter().all(|module| *module > 0), "modules have nodes");
    let mut best = true;
    for &nodes in &args.nodes {
        let schemes = [
            Scheme::ring(nodes, args.k, args.k)?,
            Scheme::Partner,
            Scheme::Localized { k: args.k },
            Scheme::ring(nodes, args.k, 1)?,
            // As many bytes as the ring with one shard.
            Scheme::Xor { k: args.k + 1 },
        ];
        for &module in &args.modules {
            let mut lines: Vec<Line> = schemes
                .iter()
                .map(|scheme| Line { label: scheme.label(), points: vec![(0.0, 0.0)] })
                .collect();
            for &lost in args.lost.iter().filter(|lost| **lost * module <= nodes / 2) {
                let loss = Loss { nodes, lost, module };
                let fatal = measure(args, &schemes, loss)?;
                // At twice the bytes: the ring, partners and LWC.
                best &= fatal[1..3].iter().all(|other| fatal[0] <= *other);
                for (line, fatal) in lines.iter_mut().zip(&fatal) {
                    line.points.push((lost as f64, *fatal));
                }
            }
            incidents(args, (nodes, module), &schemes, &lines)?;
            draw(args, (nodes, module), lines)?;
        }
    }
    args.report.claim(NAME, "at twice the bytes the ring is fatal least often", best);
    table_two(args)
}

/// The chance that an incident is fatal, where it takes a number of nodes (or modules) that falls
/// geometrically: what a scheme comes to in a job's life.
fn incidents(
    args: &Args,
    (nodes, module): (usize, usize),
    schemes: &[Scheme],
    lines: &[Line],
) -> anyhow::Result<()> {
    let bursts = Bursts::geometric(args.per_incident)?;
    for (scheme, line) in schemes.iter().zip(lines) {
        let fatal_of = |lost: usize| {
            let above = line.points.iter().find(|(counted, _)| *counted >= lost as f64);
            above.map_or(1.0, |(_, fatal)| *fatal)
        };
        let chances = bursts.chances().iter().zip(1..);
        let fatal = chances.map(|(chance, lost)| chance * fatal_of(lost)).sum();
        let (scheme, storage) = (scheme.name(), scheme.storage());
        let per_incident = args.per_incident;
        args.report.point(NAME, &Incident { scheme, storage, nodes, module, per_incident, fatal });
    }
    Ok(())
}

fn draw(args: &Args, (nodes, module): (usize, usize), lines: Vec<Line>) -> anyhow::Result<()> {
    let most =
        lines.iter().flat_map(|line| &line.points).map(|(lost, _)| *lost).fold(1.0, f64::max);
    let what = if module == 1 { "nodes".to_owned() } else { format!("modules of {module} nodes") };
    args.report.draw(&Chart {
        name: format!("tolerance-{nodes}-modules-{module}"),
        title: format!("Losses of {what} that are fatal, {nodes} nodes, k = {}", args.k),
        x: Axis::linear(&format!("{what} lost at once"), 0.0, most),
        y: Axis::linear("share of sets that are fatal", 0.0, 1.05),
        body: Body::Lines(lines),
    })
}

/// The share of sets that are fatal, by scheme.
fn measure(args: &Args, schemes: &[Scheme], loss: Loss) -> anyhow::Result<Vec<f64>> {
    let mut fatal = vec![0u64; schemes.len()];
    let (mut sets, mut failed) = (0u64, Ok(()));
    loss.each(args.samples, args.seed, |lost| {
        sets += 1;
        for (scheme, fatal) in schemes.iter().zip(&mut fatal) {
            match scheme.survives(loss.nodes, lost) {
                Ok(survives) => *fatal += u64::from(!survives),
                Err(error) => failed = Err(error),
            }
        }
    });
    failed?;
    let shares: Vec<f64> = fatal.iter().map(|fatal| *fatal as f64 / sets.max(1) as f64).collect();
    for (scheme, fatal) in schemes.iter().zip(&shares) {
        let Loss { nodes, lost, module } = loss;
        let (exhaustive, fatal) = (loss.is_exhaustive(), *fatal);
        let (scheme, storage) = (scheme.name(), scheme.storage());
        let point = Point { scheme, storage, nodes, lost, module, sets, exhaustive, fatal };
        args.report.point(NAME, &point);
    }
    Ok(shares)
}

/// DDC's Table II, by asking the schemes themselves.
fn table_two(args: &Args) -> anyhow::Result<()> {
    let (nodes, k) = (8 * args.k, args.k);
    let root = k.isqrt();
    let ring = Scheme::ring(nodes, k, k)?;
    // In a group: its first nodes. In the whole job: as many of every group.
    let in_group =
        |scheme: &Scheme, lost: usize| scheme.survives(nodes, &(0..lost).collect::<Vec<_>>());
    let spread =
        |lost: usize| -> Vec<usize> { (0..nodes).filter(|node| node % k < lost).collect() };
    let (xor, lwc) = (Scheme::Xor { k }, Scheme::Localized { k });
    let rows = [
        ("ring survives a whole group", in_group(&ring, k)?),
        ("lwc survives the root of a group", in_group(&lwc, root)? && !in_group(&lwc, root + 1)?),
        ("xor survives one of a group", in_group(&xor, 1)? && !in_group(&xor, 2)?),
        ("ring survives half of all nodes when well spread", ring.survives(nodes, &spread(k / 2))?),
        ("lwc survives n sqrt(k) / k when well spread", lwc.survives(nodes, &spread(root))?),
        ("xor survives n / k when well spread", xor.survives(nodes, &spread(1))?),
    ];
    for (text, holds) in rows {
        args.report.claim(NAME, format!("Table II: {text}"), holds);
    }
    Ok(())
}
