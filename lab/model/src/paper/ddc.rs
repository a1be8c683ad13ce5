//! DDC tables I and II: local write times, and what three diskless schemes survive.
//!
//! Data: device rates; groups on a ring -> rows.
//!
//! Table II prints formulas and words. We evaluate them on a job of 64 nodes in groups of 16, by
//! asking the ring itself which failures it survives, and replace the words for risk by the
//! chance that random failures are fatal.
//!
//! Invariants:
//! - Times are cut to whole seconds, as printed.

use super::{Reproduction, claim, row};
use standfast_model::Result;
use standfast_model::ring::{Groups, choose};

const NODES: u64 = 64;
const GROUP: u64 = 16;

pub(super) fn table1() -> Result<Reproduction> {
    let devices: [(&str, f64); 3] = [("HDD", 55.0), ("SSD", 215.0), ("ioDrive", 685.0)];
    let paper = [[145.0, 37.0, 11.0], [290.0, 74.0, 23.0], [581.0, 148.0, 46.0]];
    let mut rows = Vec::new();
    for (size, times) in [8.0, 16.0, 32.0].iter().zip(paper) {
        for ((device, mb_s), expected) in devices.iter().zip(times) {
            let time = (size * 1000.0 / mb_s).floor();
            rows.push(row(format!("{size:.0} GB to {device}"), "s", expected, time, 0.0));
        }
    }
    // Shares of an hourly interval, cut after one decimal.
    for ((device, mb_s), expected) in [(devices[0], 16.1), (devices[2], 1.2)] {
        let share = (32_000.0 / mb_s / 3600.0 * 1000.0).floor() / 10.0;
        rows.push(row(format!("32 GB hourly to {device}"), "%", expected, share, 0.0));
    }
    Ok(Reproduction {
        name: "ddc-table1",
        title: "DDC Table I: local write times",
        assumptions: vec!["1 GB is 1000 MB; times are cut, not rounded".to_owned()],
        rows,
        claims: vec![],
        charts: vec![],
    })
}

pub(super) fn table2() -> Result<Reproduction> {
    let ddc = Groups::new(NODES, GROUP, GROUP)?;
    let root = (GROUP as f64).sqrt() as u64;
    let groups = NODES / GROUP;
    let per_group = |limit: u64| (groups * limit) as f64;
    let risk = |failures: u64| {
        [1.0 - separate(root, failures), 1.0 - separate(1, failures), 1.0 - ddc.survival(failures)]
    };
    let ordered = (5..=16).all(|failures| {
        let [lwc, scr, ddc] = risk(failures);
        ddc < lwc && lwc < scr
    });
    let k = GROUP as f64;
    let n = NODES as f64;
    Ok(Reproduction {
        name: "ddc-table2",
        title: "DDC Table II: failures survived by three diskless schemes",
        assumptions: vec![
            format!("{NODES} nodes in groups of {GROUP}; the table's formulas evaluated there"),
            "LWC survives sqrt(k) and SCR one failure per group, by construction of their codes"
                .to_owned(),
            format!(
                "chance that 8 random failures are fatal: LWC {:.3}, SCR {:.3}, DDC {:.3}",
                risk(8)[0],
                risk(8)[1],
                risk(8)[2]
            ),
        ],
        rows: vec![
            row("LWC, per group", "nodes", k.sqrt(), root as f64, 0.0),
            row("SCR, per group", "nodes", 1.0, 1.0, 0.0),
            row("DDC, per group", "nodes", k, in_one_group(&ddc)? as f64, 0.0),
            row("LWC, whole job", "nodes", n * k.sqrt() / k, per_group(root), 0.0),
            row("SCR, whole job", "nodes", n / k, per_group(1), 0.0),
            row("DDC, whole job", "nodes", n / 2.0, in_whole_job(&ddc)? as f64, 0.0),
        ],
        claims: vec![claim(
            "risk of a fatal failure: SCR high, LWC medium, DDC lowest, for 5 to 16 failures",
            ordered,
        )],
        charts: vec![],
    })
}

/// Most failures one group survives while its neighbours stand.
fn in_one_group(groups: &Groups) -> Result<u64> {
    let mut best = 0;
    for count in 1..=GROUP {
        let failed: Vec<u64> = (0..count).collect();
        if groups.survives(&failed)? {
            best = count;
        }
    }
    Ok(best)
}

/// Failures survived when added node by node, every other group first.
fn in_whole_job(groups: &Groups) -> Result<u64> {
    let even = (0..NODES).filter(|node| (node / GROUP).is_multiple_of(2));
    let odd = (0..NODES).filter(|node| !(node / GROUP).is_multiple_of(2));
    let mut failed = Vec::new();
    for node in even.chain(odd) {
        failed.push(node);
        if !groups.survives(&failed)? {
            failed.pop();
        }
    }
    Ok(failed.len() as u64)
}

/// Chance that no group loses more than `limit` nodes, groups keeping their codes to themselves.
fn separate(limit: u64, failures: u64) -> f64 {
    let mut ways = vec![0.0; failures as usize + 1];
    ways[0] = 1.0;
    for _ in 0..NODES / GROUP {
        let mut next = vec![0.0; ways.len()];
        for (before, way) in ways.iter().enumerate() {
            for lost in 0..=limit.min(failures - before as u64) {
                next[before + lost as usize] += way * choose(GROUP, lost);
            }
        }
        ways = next;
    }
    ways[failures as usize] / choose(NODES, failures)
}
