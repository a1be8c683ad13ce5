//! How experiments tell their results: a line for each point and statement, a plot for each
//! figure.

use std::path::PathBuf;
use std::sync::Once;

use anyhow::Context;
use lab_model::plot::{self, Axis, Body, Chart, Line};
use lab_origin::Origin;
use serde::Serialize;

/// Where results go.
#[derive(clap::Args)]
pub(crate) struct Report {
    /// JSON lines instead of text
    #[arg(long)]
    json: bool,
    /// Draw each figure into this directory, as SVG and PNG
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

/// A line with its type and the experiment it belongs to.
#[derive(Serialize)]
struct Record<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    experiment: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

/// A statement that the points must bear out.
#[derive(Serialize)]
pub(crate) struct Claim {
    pub(crate) text: String,
    pub(crate) holds: bool,
}

impl Report {
    /// Tells one point of a figure.
    pub(crate) fn point(&self, experiment: &'static str, point: &(impl Serialize + ToString)) {
        self.record("point", experiment, point, || point.to_string());
    }

    /// Tells whether a statement holds.
    pub(crate) fn claim(&self, experiment: &'static str, text: impl Into<String>, holds: bool) {
        let claim = Claim { text: text.into(), holds };
        let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
        self.record("claim", experiment, &claim, || format!("{}: {verdict}", claim.text));
    }

    /// Tells under which conditions the points were taken.
    pub(crate) fn note(&self, experiment: &'static str, text: &str) {
        let note = serde_json::json!({ "text": text });
        self.record("note", experiment, &note, || text.to_owned());
    }

    /// Tells what the next lines are about; in JSON every line says that itself.
    pub(crate) fn heading(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }

    /// Draws a figure, if plots are wanted.
    pub(crate) fn draw(&self, chart: &Chart) -> anyhow::Result<()> {
        let Some(dir) = &self.plots else { return Ok(()) };
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        for (ending, bytes) in [("svg", plot::svg(chart).into_bytes()), ("png", plot::png(chart)?)]
        {
            let path = dir.join(format!("{}.{ending}", chart.name));
            std::fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }

    fn record<T: Serialize>(
        &self,
        kind: &'static str,
        experiment: &'static str,
        body: &T,
        text: impl Fn() -> String,
    ) {
        if self.json {
            static BEGINS: Once = Once::new();
            BEGINS.call_once(|| {
                let mut origin = serde_json::json!(Origin::look(None));
                origin["type"] = "origin".into();
                println!("{origin}");
            });
            let record = Record { kind, experiment, body };
            println!("{}", serde_json::to_string(&record).expect("a record can be written"));
        } else {
            println!("{}", text());
        }
    }
}

/// A chart of lines over the number of ranks.
pub(crate) fn over_ranks(name: &str, title: &str, label: &str, lines: Vec<Line>) -> Chart {
    let values = || lines.iter().flat_map(|line| &line.points);
    let ranks = values().map(|(ranks, _)| *ranks).fold(2.0, f64::max);
    let high = values().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::log("ranks", 1.0, ranks),
        y: Axis::linear(label, 0.0, 1.05 * high),
        body: Body::Lines(lines),
    }
}
