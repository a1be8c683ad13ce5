//! NDP tables 1 and 4 from their inputs.
//!
//! Data: Titan's sizes, stated growth factors, the machine's rates -> rows.

use super::exascale::{Assumptions, Exascale};
use super::study::{GB, MB, mean_of};
use super::{Reproduction, claim, row};
use standfast_model::Result;
use standfast_model::search::peak;
use standfast_model::single::{Single, efficiency_of_ratio};

/// The petascale machine that is scaled up.
struct Titan {
    nodes: f64,
    node_teraflops: f64,
    node_gb: f64,
    interconnect_gb_s: f64,
    io_gb_s: f64,
    failures_per_day: f64,
}

const TITAN: Titan = Titan {
    nodes: 18_688.0,
    node_teraflops: 1.44,
    node_gb: 38.0,
    interconnect_gb_s: 20.0,
    io_gb_s: 1000.0,
    failures_per_day: 9.0,
};

pub(super) fn table1() -> Result<Reproduction> {
    let node_teraflops: f64 = 10.0;
    let nodes = 1e6 / node_teraflops;
    let node_gb = 64.0 * 2.0 + 2.0 * 6.0;
    let titan_petaflops = TITAN.nodes * TITAN.node_teraflops / 1000.0;
    let titan_tb = TITAN.nodes * TITAN.node_gb / 1000.0;
    let system_pb = nodes * node_gb / 1e6;
    let titan_mtti_min = 24.0 * 60.0 / TITAN.failures_per_day;
    let five_years_min = 5.0 * 365.0 * 24.0 * 60.0;
    let mtti_min = five_years_min / nodes;
    // The paper rounds the projected MTTI up to half an hour.
    let used_mtti_min = (mtti_min / 10.0).ceil() * 10.0;
    let rows = vec![
        row("nodes", "", 100_000.0, nodes, 0.0),
        row("node count factor", "x", 5.35, nodes / TITAN.nodes, 0.005),
        row("Titan system peak", "PF", 27.0, titan_petaflops, 0.5),
        row("system peak factor", "x", 37.0, 1000.0 / titan_petaflops, 0.5),
        row("node peak factor", "x", 7.0, node_teraflops / TITAN.node_teraflops, 0.5),
        row("Titan system memory", "TB", 710.0, titan_tb, 0.5),
        row("node memory", "GB", 140.0, node_gb, 0.0),
        row("system memory", "PB", 14.0, system_pb, 0.0),
        row("system memory factor", "x", 19.72, 1000.0 * system_pb / titan_tb, 0.02),
        row("node memory factor", "x", 3.68, node_gb / TITAN.node_gb, 0.005),
        row("interconnect factor", "x", 2.5, 50.0 / TITAN.interconnect_gb_s, 0.0),
        row("I/O factor", "x", 10.0, 10_000.0 / TITAN.io_gb_s, 0.0),
        row("Titan MTTI", "min", 160.0, titan_mtti_min, 0.0),
        row("MTTI from 5 years per node", "min", 26.28, mtti_min, 0.005),
        row("MTTI used", "min", 30.0, used_mtti_min, 0.0),
        row("MTTI factor, inverse", "x", 5.33, titan_mtti_min / used_mtti_min, 0.005),
    ];
    Ok(Reproduction {
        name: "ndp-table1",
        title: "NDP Table 1: an exascale machine scaled from Titan",
        assumptions: vec![
            "nodes of 10 TF with 64 cores of 2 GB and accelerators of 12 GB".to_owned(),
            "interconnect 50 GB/s and global I/O 10 TB/s are inputs".to_owned(),
            "a node fails every five years; the resulting MTTI is rounded up to 10 minutes"
                .to_owned(),
        ],
        rows,
        claims: vec![],
        charts: vec![],
    })
}

pub(super) fn table4() -> Result<Reproduction> {
    let machine = Exascale::new(Assumptions::fitting());
    let ratio = ratio_for(0.9)?;
    let commit_s = machine.mtti_s / ratio;
    let needed = machine.bytes / commit_s / GB;
    let daly = Single::new(machine.mtti_s, machine.local_s(), machine.local_s())?.daly_interval_s();
    let (_, gzip) = mean_of(0);
    let rows = vec![
        row("checkpoint size", "GB", 112.0, 0.8 * 140.0, 1e-9),
        row("MTTI over commit time for 90 %", "", 200.0, ratio, 10.0),
        row("local rate needed for 90 %", "GB/s", 12.44, needed, 0.6),
        row("interval to local", "s", 150.0, daly, 15.0),
        row("compression on 4 agent cores", "MB/s", 440.4, 4.0 * gzip / MB, 0.3),
        row("decompression on 64 host cores", "GB/s", 22.4, 64.0 * 0.35, 1e-9),
        row("global commit, raw", "min", 18.67, machine.bytes / machine.global_bps / 60.0, 0.005),
    ];
    Ok(Reproduction {
        name: "ndp-table4",
        title: "NDP Table 4: parameters of the evaluation",
        assumptions: vec![
            "80 % of memory is checkpointed; restores take as long as commits".to_owned(),
            "the interval is Daly's for the local level; the paper uses a rounder 150 s".to_owned(),
            "the paper takes 15 GB/s, a little above the rate needed, and 16 GB/s of 22.4"
                .to_owned(),
        ],
        rows,
        claims: vec![claim(
            "15 GB/s is enough for 90 % with one local level",
            machine.local_bps / GB >= needed,
        )],
        charts: vec![],
    })
}

/// MTTI over commit time at which the best efficiency reaches a value.
pub(super) fn ratio_for(efficiency: f64) -> Result<f64> {
    Ok(peak(1.0, 1e6, |ratio| {
        let here = efficiency_of_ratio(ratio).unwrap_or(0.0);
        -(here - efficiency).abs()
    }))
}
