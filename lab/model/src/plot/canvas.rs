//! An SVG document under construction: frame, axes, legend, text.
//!
//! Data: drawing calls in pixels -> [`Canvas::finish`] -> SVG text.
//!
//! Invariants:
//! - All text passes through [`escape`]; sizes are at least 13 px.

use std::fmt::Write as _;

use super::chart::{Axis, Chart};
use super::ticks::ticks;

/// Okabe and Ito's palette, black last because text is black too.
pub(crate) const PALETTE: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000"];

pub(crate) const WIDTH: f64 = 860.0;
pub(crate) const HEIGHT: f64 = 480.0;
pub(crate) const LEFT: f64 = 80.0;
pub(crate) const TOP: f64 = 56.0;
pub(crate) const BOTTOM: f64 = 400.0;
/// Right edge of the frame; the legend stands beyond it.
pub(crate) const RIGHT: f64 = 610.0;

pub(crate) struct Canvas {
    text: String,
}

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    /// A white page with the chart's title.
    pub(crate) fn new(chart: &Chart) -> Self {
        let mut canvas = Self {
            text: format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
                 viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"DejaVu Sans, Verdana, sans-serif\" \
                 role=\"img\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                escape(&chart.title)
            ),
        };
        canvas.words(16.0, 28.0, 16.0, Anchor::Start, "#000000", &chart.title);
        canvas
    }

    pub(crate) fn words(
        &mut self,
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        colour: &str,
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>",
            escape(text)
        );
    }

    pub(crate) fn rule(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let _ = writeln!(
            self.text,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    pub(crate) fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        );
    }

    pub(crate) fn path(&mut self, points: &[(f64, f64)], colour: &str) {
        let mut d = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{x:.1} {y:.1} ", if index == 0 { 'M' } else { 'L' });
        }
        let _ = writeln!(
            self.text,
            "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" stroke-linejoin=\"round\"/>",
            d.trim_end()
        );
    }

    /// A marker whose form depends on the series, for readers who do not see the colour.
    pub(crate) fn marker(&mut self, series: usize, x: f64, y: f64, colour: &str) {
        let r = 4.5;
        let polygon = |corners: &[(f64, f64)]| {
            let points: Vec<String> = corners
                .iter()
                .map(|(dx, dy)| format!("{:.1},{:.1}", x + r * dx, y + r * dy))
                .collect();
            format!("<polygon points=\"{}\"", points.join(" "))
        };
        let shape = match series % 6 {
            0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\""),
            1 => polygon(&[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]),
            2 => polygon(&[(0.0, -1.3), (1.2, 1.0), (-1.2, 1.0)]),
            3 => polygon(&[(0.0, -1.4), (1.4, 0.0), (0.0, 1.4), (-1.4, 0.0)]),
            4 => polygon(&[(0.0, 1.3), (1.2, -1.0), (-1.2, -1.0)]),
            _ => polygon(&[(-1.6, -0.6), (1.6, -0.6), (1.6, 0.6), (-1.6, 0.6)]),
        };
        let _ = writeln!(self.text, "{shape} fill=\"{colour}\"/>");
    }

    /// Grid, ticks and label of the vertical axis, and the base line.
    pub(crate) fn y_axis(&mut self, axis: &Axis) {
        for (value, text) in ticks(axis) {
            let y = y_of(axis, value);
            self.rule((LEFT, y), (RIGHT, y), "#DDDDDD", 1.0);
            self.words(LEFT - 8.0, y + 4.5, 13.0, Anchor::End, "#222222", &text);
        }
        let middle = 0.5 * (TOP + BOTTOM);
        let _ = writeln!(
            self.text,
            "<text transform=\"translate(22 {middle:.1}) rotate(-90)\" font-size=\"14\" text-anchor=\"middle\" fill=\"#000000\">{}</text>",
            escape(&axis.label)
        );
        self.rule((LEFT, BOTTOM), (RIGHT, BOTTOM), "#000000", 1.2);
    }

    /// Ticks and label of the horizontal axis.
    pub(crate) fn x_axis(&mut self, axis: &Axis) {
        for (value, text) in ticks(axis) {
            let x = x_of(axis, value);
            self.rule((x, BOTTOM), (x, BOTTOM + 5.0), "#000000", 1.2);
            self.words(x, BOTTOM + 22.0, 13.0, Anchor::Middle, "#222222", &text);
        }
        self.x_label(&axis.label, BOTTOM + 50.0);
    }

    pub(crate) fn x_label(&mut self, label: &str, y: f64) {
        let x = 0.5 * (LEFT + RIGHT);
        self.words(x, y, 14.0, Anchor::Middle, "#000000", label);
    }

    /// Names of the series right of the frame, in the order given.
    pub(crate) fn legend(&mut self, names: &[(usize, &str)], with_markers: bool) {
        for (row, (series, name)) in names.iter().enumerate() {
            let y = TOP + 14.0 + row as f64 * 24.0;
            let colour = PALETTE[series % PALETTE.len()];
            if with_markers {
                self.rule((RIGHT + 18.0, y), (RIGHT + 42.0, y), colour, 2.5);
                self.marker(*series, RIGHT + 30.0, y, colour);
            } else {
                self.bar(RIGHT + 20.0, y - 7.0, 20.0, 14.0, colour);
            }
            self.words(RIGHT + 50.0, y + 4.5, 13.0, Anchor::Start, "#000000", name);
        }
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

pub(crate) fn x_of(axis: &Axis, value: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * axis.place(value)
}

pub(crate) fn y_of(axis: &Axis, value: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * axis.place(value)
}

/// Text that is safe inside SVG and HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
