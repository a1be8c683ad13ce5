//! NDP figures 8 and 9: efficiency over checkpoint size and over MTTI.
//!
//! Data: [`Exascale`] with one parameter swept -> five curves, quoted rows, claims.
//!
//! Invariants:
//! - 85 % of failures recover from local storage; the interval follows Daly at every point.

use super::exascale::{Assumptions, Exascale};
use super::ndp_figures::with_setup;
use super::study::{GB, mean_of};
use super::{Reproduction, claim, row};
use crate::plot::{Axis, Body, Chart, Line};
use standfast_model::Result;

const NEAR: f64 = 0.85;
const OPEN: &str = "the interval is Daly's for each local commit time, not 150 s throughout";

/// One curve: local rate, who writes the global level, whether compressed.
struct Curve {
    label: &'static str,
    local_gb_s: f64,
    host: bool,
    compressed: bool,
}

const CURVES: [Curve; 5] = [
    Curve { label: "NDP + compr., 15 GB/s", local_gb_s: 15.0, host: false, compressed: true },
    Curve { label: "NDP, 15 GB/s", local_gb_s: 15.0, host: false, compressed: false },
    Curve { label: "NDP + compr., 2 GB/s", local_gb_s: 2.0, host: false, compressed: true },
    Curve { label: "NDP, 2 GB/s", local_gb_s: 2.0, host: false, compressed: false },
    Curve { label: "host + compr., 15 GB/s", local_gb_s: 15.0, host: true, compressed: true },
];

fn efficiency(curve: &Curve, memory_share: f64, mtti_min: f64) -> Result<f64> {
    let mut machine = Exascale::new(Assumptions::fitting());
    machine.bytes = memory_share * 140.0 * GB;
    machine.mtti_s = mtti_min * 60.0;
    machine.local_bps = curve.local_gb_s * GB;
    machine.interval_s = None;
    let factor = if curve.compressed { mean_of(0).0 } else { 0.0 };
    let outcome =
        if curve.host { machine.host(NEAR, factor)? } else { machine.drained(NEAR, factor)? };
    Ok(100.0 * outcome.efficiency)
}

fn lines(xs: &[f64], at: impl Fn(&Curve, f64) -> Result<f64>) -> Result<Vec<Line>> {
    CURVES
        .iter()
        .map(|curve| {
            let points = xs.iter().map(|&x| Ok((x, at(curve, x)?))).collect::<Result<Vec<_>>>()?;
            Ok(Line { label: curve.label.to_owned(), points })
        })
        .collect()
}

/// Whether one curve lies above another, by at least `margin` points, everywhere.
fn above(lines: &[Line], upper: usize, lower: usize, margin: f64) -> bool {
    (lines[upper].points.iter().zip(&lines[lower].points)).all(|(a, b)| a.1 >= b.1 + margin)
}

pub(super) fn figure8() -> Result<Reproduction> {
    let shares: Vec<f64> = (10..=80).step_by(2).map(f64::from).collect();
    let lines = lines(&shares, |curve, x| efficiency(curve, x / 100.0, 30.0))?;
    let last = shares.len() - 1;
    Ok(Reproduction {
        name: "ndp-figure8",
        title: "NDP Figure 8: efficiency over checkpoint size",
        assumptions: with_setup(OPEN),
        rows: vec![
            row("NDP + compression, 10 % of memory", "%", 96.0, lines[0].points[0].1, 3.0),
            row("host + compression, 10 % of memory", "%", 88.0, lines[4].points[0].1, 3.0),
            row("NDP + compression, 80 % of memory", "%", 87.0, lines[0].points[last].1, 3.0),
            row("host + compression, 80 % of memory", "%", 65.0, lines[4].points[last].1, 3.0),
        ],
        claims: vec![
            claim(
                "slow local storage with NDP and compression beats fast storage with the host",
                above(&lines, 2, 4, 0.0),
            ),
            claim(
                "slow local storage with plain NDP is within 3 points of fast storage with the host",
                above(&lines, 3, 4, -3.0),
            ),
        ],
        charts: vec![Chart {
            name: "ndp-figure8".to_owned(),
            title: "The larger the checkpoint, the more the background drain gains".to_owned(),
            x: Axis::linear("checkpoint size, % of memory", 10.0, 80.0),
            y: Axis::linear("efficiency, % (axis starts at 50 %)", 50.0, 100.0),
            body: Body::Lines(lines),
        }],
    })
}

pub(super) fn figure9() -> Result<Reproduction> {
    let minutes: Vec<f64> = (30..=150).step_by(5).map(f64::from).collect();
    let lines = lines(&minutes, |curve, x| efficiency(curve, 0.8, x))?;
    let gain: Vec<f64> =
        (lines[0].points.iter().zip(&lines[4].points)).map(|(a, b)| a.1 - b.1).collect();
    Ok(Reproduction {
        name: "ndp-figure9",
        title: "NDP Figure 9: efficiency over MTTI",
        assumptions: with_setup(OPEN),
        rows: vec![],
        claims: vec![
            claim(
                "the gain of NDP shrinks from each half hour of MTTI to the next",
                gain.chunks(6).collect::<Vec<_>>().windows(2).all(|p| p[1][0] < p[0][0]),
            ),
            claim(
                "slow local storage with NDP and compression beats fast storage with the host",
                above(&lines, 2, 4, 0.0),
            ),
            claim(
                "slow local storage with plain NDP is within 3 points of fast storage with the host",
                above(&lines, 3, 4, -3.0),
            ),
        ],
        charts: vec![Chart {
            name: "ndp-figure9".to_owned(),
            title: "The rarer the failures, the less the background drain gains".to_owned(),
            x: Axis::linear("MTTI, minutes", 30.0, 150.0),
            y: Axis::linear("efficiency, % (axis starts at 50 %)", 50.0, 100.0),
            body: Body::Lines(lines),
        }],
    })
}
