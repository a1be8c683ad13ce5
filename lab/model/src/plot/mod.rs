//! Plots: one description, drawn as SVG, as PNG, or bundled into an HTML report.
//!
//! Data: [`Chart`] -> [`svg`] text -> optionally [`png`] bytes; many -> [`report`] page.
//!
//! Why a writer of our own for SVG: a plot is a few hundred elements, and direct control over
//! labels, spacing and colours is the whole point. Colours are the Okabe-Ito palette, which
//! colour-blind readers can tell apart; lines also differ by marker.
//!
//! Invariants:
//! - The same chart always gives the same bytes.

mod canvas;
mod chart;
mod lines;
mod raster;
mod report;
mod stacks;
mod ticks;

pub use chart::{Axis, Body, Chart, Line, Part};
pub use report::report;

/// Draws a chart as a standalone SVG document.
pub fn svg(chart: &Chart) -> String {
    match &chart.body {
        Body::Lines(series) => lines::draw(chart, series),
        Body::Stacks { categories, parts } => stacks::draw_stacked(chart, categories, parts),
        Body::Groups { categories, parts } => stacks::draw_grouped(chart, categories, parts),
    }
}

/// Draws a chart as PNG at twice its nominal size.
pub fn png(chart: &Chart) -> crate::Result<Vec<u8>> {
    raster::png(chart, &svg(chart))
}

#[cfg(test)]
mod tests;
