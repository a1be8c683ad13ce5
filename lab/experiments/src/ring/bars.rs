//! Bars of letter E: what the ring survives, counted, and what it costs, measured.

use standfast_measure::{Bar, Better};

use crate::bars::Sheet;
use standfast_ring::{Shape, Topology};

use super::sets::Loss;

const LETTER: &str = "E";
const NO_ISAL: &str = "built without --features isal, which needs Debian's libisal-dev";

pub(crate) fn bars(rounds: usize, sheet: &mut Sheet) -> anyhow::Result<()> {
    let name = "sets of up to m nodes of a sector that are survived, all k, m <= 6";
    sheet.bar(Bar::new(LETTER, name, within_sectors()?, Better::Higher, 1.0));
    let name = "whole groups, and half of all nodes well spread, survived with m = k <= 6";
    sheet.bar(Bar::new(LETTER, name, groups_and_halves()?, Better::Higher, 1.0));
    if !cfg!(feature = "isal") {
        sheet.unmeasured(LETTER, "kernels against ISA-L", NO_ISAL);
    }
    lab_ring::bars(rounds, |reading| {
        let better = if reading.higher_is_better { Better::Higher } else { Better::Lower };
        let (ceiling, unit) = reading.ceiling;
        let bar = Bar::new(LETTER, reading.name.clone(), reading.value, better, reading.goal);
        sheet.bar(bar.ceiling(ceiling, unit));
    })?;
    Ok(())
}

/// The share of all failure sets of up to `m` nodes within a sector that are survived.
fn within_sectors() -> anyhow::Result<f64> {
    let (mut survived, mut sets) = (0u64, 0u64);
    for (k, m) in (1..=6).flat_map(|k| (1..=k).map(move |m| (k, m))) {
        for nodes in 2 * k..=3 * k + 1 {
            let topology = Topology::of_nodes(nodes, Shape::new(k, m))?;
            for sector in (0..topology.sectors()).map(|sector| topology.sector_nodes(sector)) {
                for lost in 1..=m {
                    let loss = Loss { nodes: sector.len(), lost, module: 1 };
                    let mut failed = Ok(());
                    loss.each(0, 1, |set| {
                        let set: Vec<usize> = set.iter().map(|at| sector.start + at).collect();
                        sets += 1;
                        match topology.survives(&set) {
                            Ok(survives) => survived += u64::from(survives),
                            Err(error) => failed = Err(error),
                        }
                    });
                    failed?;
                }
            }
        }
    }
    Ok(survived as f64 / sets as f64)
}

fn groups_and_halves() -> anyhow::Result<f64> {
    let (mut survived, mut sets) = (0u64, 0u64);
    for k in 1..=6 {
        let nodes = 4 * k;
        let topology = Topology::of_nodes(nodes, Shape::full(k))?;
        let groups = (0..4).map(|sector| (sector * k..(sector + 1) * k).collect::<Vec<_>>());
        // Every other sector as a whole, and half of each.
        let halves = [
            (0..nodes).filter(|node| node / k % 2 == 0).collect::<Vec<_>>(),
            (0..nodes).filter(|node| node % k < k / 2).collect(),
        ];
        for set in groups.chain(halves) {
            sets += 1;
            survived += u64::from(topology.survives(&set)?);
        }
    }
    Ok(survived as f64 / sets as f64)
}
