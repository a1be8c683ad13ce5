//! Line charts.
//!
//! Data: [`Chart`] with lines -> SVG text.
//!
//! Why few markers: they tell series apart without hiding the curve.

use super::canvas::{Canvas, PALETTE, x_of, y_of};
use super::chart::{Axis, Chart, Line};

const MARKERS_MAX: usize = 6;

pub(crate) fn draw(chart: &Chart, series: &[Line]) -> String {
    let mut canvas = Canvas::new(chart);
    canvas.y_axis(&chart.y);
    canvas.x_axis(&chart.x);
    for (index, line) in series.iter().enumerate() {
        let colour = PALETTE[index % PALETTE.len()];
        for run in visible_runs(&chart.y, &line.points) {
            let points: Vec<(f64, f64)> =
                run.iter().map(|&(x, y)| (x_of(&chart.x, x), y_of(&chart.y, y))).collect();
            canvas.path(&points, colour);
            let step = points.len().div_ceil(MARKERS_MAX).max(1);
            // Each series starts elsewhere, so that markers of lines that meet do not cover each other.
            let first = step * (2 * index + 1) / (2 * series.len());
            for (x, y) in points.iter().skip(first).step_by(step) {
                canvas.marker(index, *x, *y, colour);
            }
        }
    }
    canvas.legend(&legend_order(series), true);
    canvas.finish()
}

/// Stretches of a line that lie within the frame, cut where they cross its edges.
fn visible_runs(axis: &Axis, points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let inside = |y: f64| (-1e-9..=1.0 + 1e-9).contains(&axis.place(y));
    let mut runs: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for (index, &point) in points.iter().enumerate() {
        let before = index.checked_sub(1).map(|i| points[i]);
        if let Some(before) = before.filter(|b| inside(b.1) != inside(point.1)) {
            let edge = if inside(before.1) { point.1 } else { before.1 };
            let y = edge.clamp(axis.low, axis.high);
            let part = (y - before.1) / (point.1 - before.1);
            let cut = (before.0 + part * (point.0 - before.0), y);
            runs.last_mut().expect("never empty").push(cut);
            if inside(before.1) {
                runs.push(Vec::new());
            }
        }
        if inside(point.1) {
            runs.last_mut().expect("never empty").push(point);
        }
    }
    runs.retain(|run| run.len() > 1);
    runs
}

/// Legend rows in the order of the lines' right ends, so that the eye need not cross.
fn legend_order(series: &[Line]) -> Vec<(usize, &str)> {
    let mut rows: Vec<(usize, &str, f64)> = series
        .iter()
        .enumerate()
        .map(|(i, line)| (i, line.label.as_str(), line.points.last().map_or(0.0, |p| p.1)))
        .collect();
    rows.sort_by(|a, b| b.2.total_cmp(&a.2));
    rows.into_iter().map(|(i, label, _)| (i, label)).collect()
}
