//! Bar charts: parts on top of each other, or side by side.
//!
//! Data: [`Chart`] with categories and parts -> SVG text.
//!
//! Invariants:
//! - Bars start at the axis' low end; values beyond the ends are cut there.

use super::canvas::{Anchor, BOTTOM, Canvas, LEFT, PALETTE, RIGHT, y_of};
use super::chart::{Chart, Part};

pub(crate) fn draw_stacked(chart: &Chart, categories: &[String], parts: &[Part]) -> String {
    let mut canvas = Canvas::new(chart);
    canvas.y_axis(&chart.y);
    let slot = (RIGHT - LEFT) / categories.len() as f64;
    let width = slot * 0.62;
    for (column, category) in categories.iter().enumerate() {
        let x = LEFT + (column as f64 + 0.5) * slot;
        let mut base = 0.0;
        for (index, part) in parts.iter().enumerate() {
            let top = base + part.values[column];
            bar(&mut canvas, chart, x - width / 2.0, width, base, top, index);
            base = top;
        }
        name(&mut canvas, x, category);
    }
    canvas.x_label(&chart.x.label, BOTTOM + 62.0);
    let rows: Vec<(usize, &str)> =
        parts.iter().enumerate().rev().map(|(i, part)| (i, part.label.as_str())).collect();
    canvas.legend(&rows, false);
    canvas.finish()
}

pub(crate) fn draw_grouped(chart: &Chart, categories: &[String], parts: &[Part]) -> String {
    let mut canvas = Canvas::new(chart);
    canvas.y_axis(&chart.y);
    let slot = (RIGHT - LEFT) / categories.len() as f64;
    let width = slot * 0.82 / parts.len() as f64;
    for (column, category) in categories.iter().enumerate() {
        let middle = LEFT + (column as f64 + 0.5) * slot;
        for (index, part) in parts.iter().enumerate() {
            let x = middle - slot * 0.41 + index as f64 * width;
            let value = part.values[column];
            bar(&mut canvas, chart, x + 0.5, width - 1.0, chart.y.low, value, index);
        }
        name(&mut canvas, middle, category);
    }
    canvas.x_label(&chart.x.label, BOTTOM + 62.0);
    let rows: Vec<(usize, &str)> =
        parts.iter().enumerate().map(|(i, part)| (i, part.label.as_str())).collect();
    canvas.legend(&rows, false);
    canvas.finish()
}

fn bar(canvas: &mut Canvas, chart: &Chart, x: f64, width: f64, from: f64, to: f64, series: usize) {
    let cut = |value: f64| y_of(&chart.y, value.clamp(chart.y.low, chart.y.high));
    let (low, high) = (cut(from), cut(to));
    if low - high > 0.05 {
        canvas.bar(x, high, width, low - high, PALETTE[series % PALETTE.len()]);
    }
}

/// A category's name, on two lines where it holds a line break.
fn name(canvas: &mut Canvas, x: f64, category: &str) {
    for (row, text) in category.split('\n').enumerate() {
        let y = BOTTOM + 20.0 + row as f64 * 17.0;
        canvas.words(x, y, 13.0, Anchor::Middle, "#222222", text);
    }
}
