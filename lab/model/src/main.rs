//! `paper`: published tables and figures, computed again from their inputs.
//!
//! Data: a name -> reproductions -> text or JSON lines; plots and a report go to files.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Parser;
use lab_model::paper::{self, Reproduction};
use lab_model::plot::{self, Chart};
use lab_model::render;
use serde_json::json;

/// Compares published tables and figures with our models: paper, ours, difference, assumptions.
#[derive(Parser)]
#[command(name = "paper", version)]
struct Args {
    /// A table or figure, "all" of them, or "list" to see their names
    #[arg(value_name = "NAME|all|list")]
    name: String,
    /// Draw it to this file, .svg or .png; several plots go to FILE-PLOT.svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Bundle tables and plots into one HTML page
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// JSON lines instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let plot = args.plot.as_deref().map(PlotFile::new).transpose()?;
    let items = match args.name.as_str() {
        "list" | "all" => paper::names()
            .into_iter()
            .map(paper::reproduce)
            .collect::<lab_model::Result<Vec<_>>>()?,
        name => vec![paper::reproduce(name)?],
    };
    match args.name.as_str() {
        "list" => list(&items, args.json),
        _ if args.json => {
            items.iter().for_each(|item| println!("{}", render::reproduction_line(item)))
        }
        _ => items.iter().for_each(|item| println!("{}", render::reproduction(item))),
    }
    if let Some(file) = plot {
        file.draw(&items)?;
    }
    if let Some(file) = &args.report {
        write(file, plot::report("Published results, computed again", &items).as_bytes())?;
    }
    Ok(())
}

fn list(items: &[Reproduction], json: bool) {
    if !json {
        println!("  {:<13}  PLOTS", "NAME");
    }
    for item in items {
        let (name, plots, title) = (item.name, item.charts.len(), item.title);
        if json {
            println!(
                "{}",
                json!({ "type": "paper", "name": name, "title": title, "plots": plots })
            );
        } else {
            println!("  {name:<13}  {plots:>5}  {title}");
        }
    }
}

/// Where plots go, and as what.
struct PlotFile<'a> {
    path: &'a Path,
    extension: &'static str,
}

impl<'a> PlotFile<'a> {
    fn new(path: &'a Path) -> anyhow::Result<Self> {
        let given = path.extension().unwrap_or_default();
        let known = ["svg", "png"].into_iter().find(|known| given.eq_ignore_ascii_case(known));
        let Some(extension) = known else {
            bail!("--plot {}: name it FILE.svg or FILE.png", path.display());
        };
        Ok(Self { path, extension })
    }

    /// The first plot of one reproduction goes to the file itself; its others, and those of
    /// several reproductions, to files beside it, each with its own name.
    fn draw(&self, items: &[Reproduction]) -> anyhow::Result<()> {
        let charts: Vec<&Chart> = items.iter().flat_map(|item| &item.charts).collect();
        let (first, others) = match (items.len(), charts.as_slice()) {
            (_, []) => {
                let names: Vec<&str> = items.iter().map(|item| item.name).collect();
                bail!(
                    "--plot: {} has no plot; 'paper list' tells which have one",
                    names.join(", ")
                );
            }
            (1, [first, others @ ..]) => (Some(first), others),
            (_, all) => (None, all),
        };
        if let Some(chart) = first {
            write(self.path, &self.bytes(chart)?)?;
        }
        let beside = |chart: &&Chart| write(&self.beside(&chart.name), &self.bytes(chart)?);
        others.iter().try_for_each(beside)
    }

    fn beside(&self, name: &str) -> PathBuf {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!("{stem}-{name}.{}", self.extension))
    }

    fn bytes(&self, chart: &Chart) -> anyhow::Result<Vec<u8>> {
        match self.extension {
            "svg" => Ok(plot::svg(chart).into_bytes()),
            _ => Ok(plot::png(chart)?),
        }
    }
}

fn write(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::write(file, bytes).with_context(|| format!("writing {}", file.display()))?;
    eprintln!("wrote {}", file.display());
    Ok(())
}
