//! What a plot shows, without how it is drawn.
//!
//! Data: models and reproductions -> [`Chart`] -> `svg`, `png`, `report`.
//!
//! Invariants:
//! - Every axis names its quantity and unit.

use serde::Serialize;

/// One axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Lowest value shown.
    pub low: f64,
    /// Highest value shown.
    pub high: f64,
    /// Logarithmic scale; both ends are above zero then.
    pub log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str, low: f64, high: f64) -> Self {
        Self { label: label.to_owned(), low, high, log: false }
    }

    /// A logarithmic axis.
    pub fn log(label: &str, low: f64, high: f64) -> Self {
        Self { log: true, ..Self::linear(label, low, high) }
    }

    /// Where a value lies between the ends, 0 to 1.
    pub(crate) fn place(&self, value: f64) -> f64 {
        if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// A line with a label at its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Its name.
    pub label: String,
    /// Points in order of x.
    pub points: Vec<(f64, f64)>,
}

/// One colour of a bar chart: a value for every category.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Its name.
    pub label: String,
    /// One value per category.
    pub values: Vec<f64>,
}

/// What fills the frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Body {
    /// Lines over a common x axis.
    Lines(Vec<Line>),
    /// One bar per category, made of parts on top of each other.
    Stacks {
        /// Names below the bars.
        categories: Vec<String>,
        /// Parts from bottom to top.
        parts: Vec<Part>,
    },
    /// Several bars per category, side by side.
    Groups {
        /// Names below the groups.
        categories: Vec<String>,
        /// One colour per part.
        parts: Vec<Part>,
    },
}

/// A complete plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Short name, usable as a file name.
    pub name: String,
    /// One line that says what is seen.
    pub title: String,
    /// Horizontal axis; of bar charts only the label counts.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The data.
    pub body: Body,
}
