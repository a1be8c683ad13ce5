//! The comparison as a table: times as ratios to memcpy and to plain files, bytes as shares.

use std::fmt;

use serde::Serialize;

use super::{NAME, Point, way};
use crate::report::Report;

/// A point beside plain files of the same pattern.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    point: &'a Point,
    blocked_by_memcpy: f64,
    /// None where plain files were not measured.
    blocked_by_plain: Option<f64>,
    durable_by_plain: Option<f64>,
    restart_by_plain: Option<f64>,
    stored_share: f64,
}

/// Tells the points of one pattern.
pub(super) fn tell(report: &Report, points: &[Point]) {
    let mut told = Vec::new();
    for point in points {
        if !told.contains(&&point.pattern) {
            told.push(&point.pattern);
            let of_pattern: Vec<&Point> =
                points.iter().filter(|other| other.pattern == point.pattern).collect();
            tell_rows(report, &of_pattern);
        }
    }
}

fn tell_rows(report: &Report, points: &[&Point]) {
    let plain = points.iter().find(|point| point.way == way::PLAIN);
    report.heading(&heading(points[0], plain.copied()));
    for point in points {
        report.point(NAME, &row(point, plain.copied()));
    }
}

fn heading(first: &Point, plain: Option<&Point>) -> String {
    let gib = first.bytes as f64 / f64::from(1 << 30);
    let plain = plain.map_or(String::new(), |plain| {
        let rate = plain.stored_bytes as f64 / plain.durable_s / 1e9;
        format!(", write+fsync {:.0} ms ({rate:.2} GB/s)", plain.durable_s * 1e3)
    });
    format!(
        "\n{} ({gib:.2} GiB; memcpy {:.0} ms{plain})\n{:<22}{:>9}{:>10}{:>10}{:>10}{:>10}{:>11}{:>10}{:>10}{:>10}",
        first.pattern,
        first.memcpy_s * 1e3,
        "way",
        "blocked",
        "/ memcpy",
        "/ write",
        "durable",
        "/ write",
        "stored",
        "restart",
        "/ read",
        "memory",
    )
}

fn row<'a>(point: &'a Point, plain: Option<&Point>) -> Row<'a> {
    let plain_restart = plain.and_then(|plain| plain.restart_s);
    Row {
        blocked_by_memcpy: point.blocked_s / point.memcpy_s,
        blocked_by_plain: plain.map(|plain| point.blocked_s / plain.blocked_s),
        durable_by_plain: plain.map(|plain| point.durable_s / plain.durable_s),
        restart_by_plain: point.restart_s.zip(plain_restart).map(|(ours, plain)| ours / plain),
        stored_share: point.stored_bytes as f64 / point.bytes as f64,
        point,
    }
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = self.point;
        let ms = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
        let ratio =
            |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        write!(
            f,
            "{:<22}{:>9}{:>10.2}{:>10}{:>10}{:>10}{:>9.1} %{:>10}{:>10}{:>6.0} MiB",
            point.way,
            ms(point.blocked_s),
            self.blocked_by_memcpy,
            ratio(self.blocked_by_plain),
            ms(point.durable_s),
            ratio(self.durable_by_plain),
            self.stored_share * 100.0,
            point.restart_s.map_or("-".to_owned(), ms),
            ratio(self.restart_by_plain),
            point.memory_bytes as f64 / f64::from(1 << 20),
        )
    }
}
