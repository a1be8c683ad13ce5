//! `bench`: this machine's ceilings, and beside each what the stages reach of it.
//!
//! Every figure is printed as soon as it is measured. The bars at the end are the project's own
//! goals, from the same run.

use std::process::ExitCode;

use standfast_measure::{Bar, Better, Figure, Measured, Setting};

use crate::args::{BenchArgs, BenchPart};
use crate::failure::{Failure, Result};
use crate::output::{BAD, FAINT, GOOD, Output, TITLE};

/// Measures and prints.
pub(crate) fn run(args: &BenchArgs, output: &Output) -> Result<ExitCode> {
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let setting = Setting { bytes: (args.size as usize) << 20, dir, rounds: args.rounds as usize };
    let gpu = match args.part {
        Some(BenchPart::Gpu) => match found_gpu(output)? {
            Some(gpu) => Some(gpu),
            None => return Ok(ExitCode::SUCCESS),
        },
        _ => None,
    };
    output.remark(format_args!(
        "measuring with {} MiB in {}, {} rounds; needs twice the memory and space for two copies",
        args.size,
        setting.dir.display(),
        args.rounds
    ));
    output.line(output.paint(TITLE, title("what", "rate", "of its ceiling")))?;
    let mut outcome = Ok(());
    let mut bars = 0;
    let each = |measured: Measured| {
        let printed = match &measured {
            _ if output.json => json_line(&measured, output),
            Measured::Figure(figure) => figure_line(figure, output),
            Measured::Bar(bar) => {
                bars += 1;
                bar_line(bar, bars == 1, output)
            }
        };
        if outcome.is_ok() {
            outcome = printed;
        }
    };
    let measured = match (args.part, gpu) {
        (_, Some(gpu)) => standfast_measure::bench_gpu(&gpu, &setting, each),
        (Some(BenchPart::Capture), _) => standfast_measure::bench_capture(&setting, each),
        _ => standfast_measure::bench(&setting, each),
    };
    measured.map_err(|error| Failure::new(error.kind(), error.to_string()))?;
    outcome?;
    Ok(ExitCode::SUCCESS)
}

/// Tells which GPU was found, or why none is used.
fn found_gpu(output: &Output) -> Result<Option<standfast_measure::Gpu>> {
    let (found, gpu) = standfast_measure::find_gpu();
    if output.json {
        let line = serde_json::to_string(&found).expect("what was found can be written");
        output.raw(format_args!("{line}\n"))?;
        return Ok(gpu);
    }
    match (&found.driver, &found.capability, found.memory_bytes) {
        (Some(driver), Some(capability), Some(bytes)) => output.line(format_args!(
            "{}: {} ({} free), compute capability {capability}, driver for CUDA {driver}",
            found.text,
            standfast_admin::human_bytes(bytes as u64),
            standfast_admin::human_bytes(found.free_bytes.unwrap_or(0) as u64),
        ))?,
        _ => output.line(format_args!("no GPU is used: {}", found.text))?,
    }
    Ok(gpu)
}

fn json_line(measured: &Measured, output: &Output) -> Result<()> {
    let line = serde_json::to_string(measured).expect("a figure can be written");
    output.raw(format_args!("{line}\n"))
}

fn title(what: &str, rate: &str, share: &str) -> String {
    format!("  {what:<38}{rate:>12}   {share}")
}

fn figure_line(figure: &Figure, output: &Output) -> Result<()> {
    let share = match (figure.share(), figure.ceiling_name) {
        (Some(share), Some(name)) => format!("{:>4.0} % of {name}", 100.0 * share),
        _ => String::new(),
    };
    let note = figure.note.as_ref().map_or(String::new(), |note| {
        let gap = if share.is_empty() { "" } else { ", " };
        format!("{gap}{}", output.paint(FAINT, note))
    });
    let rate = format!("{:.2} {}", figure.value, figure.unit);
    output.line(format_args!("  {:<38}{rate:>12}   {share}{note}", figure.name))
}

fn bar_line(bar: &Bar, first: bool, output: &Output) -> Result<()> {
    if first {
        output.line("")?;
        output.line(output.paint(TITLE, title("bar", "value", "goal")))?;
    }
    let relation = match bar.better {
        Better::Higher => "at least",
        Better::Lower => "at most",
    };
    let verdict = match bar.met {
        true => output.paint(GOOD, "met"),
        false => output.paint(BAD, "not met"),
    };
    output.line(format_args!(
        "  {:<46}{:>7.3}   {relation} {}: {verdict}",
        bar.name, bar.value, bar.goal
    ))
}
