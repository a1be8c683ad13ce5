//! `model paper`: published tables and figures, computed again from their inputs.
//!
//! Data: a name -> reproductions of `standfast_model` -> text or JSON lines; plots and a report
//! go to files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use standfast::Kind;
use standfast_model::paper::{self, Reproduction};
use standfast_model::plot::{self, Chart};
use standfast_model::{ModelError, render};

use crate::args::{ModelArgs, ModelCommand, PaperArgs};
use crate::failure::{Failure, Result};
use crate::output::{Align, Column, Output};

/// Runs the model that was asked for.
pub(crate) fn run(args: &ModelArgs, output: &Output) -> Result<ExitCode> {
    match &args.command {
        ModelCommand::Paper(args) => paper(args, output)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn paper(args: &PaperArgs, output: &Output) -> Result<()> {
    let plot = args.plot.as_deref().map(PlotFile::new).transpose()?;
    let items = match args.name.as_str() {
        "list" | "all" => paper::names().into_iter().map(reproduce).collect::<Result<Vec<_>>>()?,
        name => vec![reproduce(name)?],
    };
    match args.name.as_str() {
        "list" => list(&items, output)?,
        _ => items.iter().try_for_each(|item| print(item, output))?,
    }
    if let Some(file) = plot {
        file.draw(&items, output)?;
    }
    if let Some(file) = &args.report {
        let page = plot::report("Published results, computed again", &items);
        write(file, page.as_bytes(), output)?;
    }
    Ok(())
}

fn reproduce(name: &str) -> Result<Reproduction> {
    paper::reproduce(name).map_err(|error| {
        let failure = Failure::new(error.kind(), error.to_string());
        match error {
            ModelError::Unknown { .. } => failure.advise("'standfast model paper list' tells more"),
            _ => failure,
        }
    })
}

fn list(items: &[Reproduction], output: &Output) -> Result<()> {
    let plots = |item: &Reproduction| item.charts.len();
    for item in items {
        output.record(
            "paper",
            json!({ "name": item.name, "title": item.title, "plots": plots(item) }),
        )?;
    }
    let columns =
        [Column("NAME", Align::Left), Column("PLOTS", Align::Right), Column("", Align::Left)];
    let row =
        |item: &Reproduction| vec![item.name.into(), plots(item).to_string(), item.title.into()];
    output.table(&columns, items.iter().map(row).collect())
}

fn print(item: &Reproduction, output: &Output) -> Result<()> {
    if output.json {
        return output.raw(format_args!("{}\n", render::reproduction_line(item)));
    }
    output.line(render::reproduction(item))
}

/// Where plots go, and as what.
struct PlotFile<'a> {
    path: &'a Path,
    extension: &'static str,
}

impl<'a> PlotFile<'a> {
    fn new(path: &'a Path) -> Result<Self> {
        let given = path.extension().unwrap_or_default();
        let known = ["svg", "png"].into_iter().find(|known| given.eq_ignore_ascii_case(known));
        let extension = known.ok_or_else(|| {
            let what =
                format!("--plot {}: its name ends neither in .svg nor in .png", path.display());
            Failure::new(Kind::Invalid, what).advise("name it FILE.svg or FILE.png")
        })?;
        Ok(Self { path, extension })
    }

    /// The first plot of one reproduction goes to the file itself; its others, and those of
    /// several reproductions, to files beside it, each with its own name.
    fn draw(&self, items: &[Reproduction], output: &Output) -> Result<()> {
        let charts: Vec<&Chart> = items.iter().flat_map(|item| &item.charts).collect();
        let (first, others) = match (items.len(), charts.as_slice()) {
            (_, []) => return Err(no_plot(items)),
            (1, [first, others @ ..]) => (Some(first), others),
            (_, all) => (None, all),
        };
        if let Some(chart) = first {
            write(self.path, &self.bytes(chart)?, output)?;
        }
        let beside = |chart: &&Chart| write(&self.beside(&chart.name), &self.bytes(chart)?, output);
        others.iter().try_for_each(beside)
    }

    fn beside(&self, name: &str) -> PathBuf {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!("{stem}-{name}.{}", self.extension))
    }

    fn bytes(&self, chart: &Chart) -> Result<Vec<u8>> {
        match self.extension {
            "svg" => Ok(plot::svg(chart).into_bytes()),
            _ => plot::png(chart).map_err(|error| Failure::new(error.kind(), error.to_string())),
        }
    }
}

fn no_plot(items: &[Reproduction]) -> Failure {
    let names: Vec<&str> = items.iter().map(|item| item.name).collect();
    Failure::new(Kind::Invalid, format!("--plot: {} has no plot", names.join(", ")))
        .advise("'standfast model paper list' tells which have one; --report takes tables as well")
}

fn write(file: &Path, bytes: &[u8], output: &Output) -> Result<()> {
    std::fs::write(file, bytes).map_err(|error| Failure::os("write", file.display(), error))?;
    output.record("file", json!({ "file": file.to_string_lossy(), "bytes": bytes.len() }))?;
    output.remark(format_args!("wrote {}", file.display()));
    Ok(())
}
