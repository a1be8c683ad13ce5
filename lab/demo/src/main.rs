//! The demonstration: an MPI job loses a node, then all of them, and ends with the same bits.
//!
//! `make demo` builds what it needs and starts it: the command, the C library and the solver in
//! Rust lie beside this program. Where there is no Open MPI, `standfast demo` shows one process.

mod closing;
mod interrupt;
mod job;
mod nodes;
mod output;
mod play;
mod program;
mod tools;
mod watch;

use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};

use interrupt::Interrupted;
use output::Output;
use tools::Tools;

/// What the MPI solver is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    C,
    Fortran,
    Rust,
}

/// Kills the nodes of a heat solver, restarts it, and gets the same answer.
#[derive(Parser)]
#[command(name = "demo", version)]
struct Args {
    /// What the MPI solver is written in
    #[arg(long, value_enum, default_value = "c")]
    language: Language,
    /// Cells along each side of the plate
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(80..=8192))]
    size: u32,
    /// Steps in time [default: as many as take some 18 s here]
    #[arg(long, value_parser = clap::value_parser!(u64).range(10..))]
    steps: Option<u64>,
    /// Steps between checkpoints; at most a fifth of all steps [default: a sixth]
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// JSON lines instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    interrupt::listen();
    let played = match Tools::find(args.language) {
        Ok(tools) => play::play(&args, &tools, &Output::new(args.json)),
        Err(missing) => return solo(&missing),
    };
    match played {
        Ok(identical) => Ok(ExitCode::from(u8::from(!identical))),
        Err(error) if error.is::<Interrupted>() => Ok(ExitCode::from(130)),
        Err(error) => Err(error),
    }
}

/// One process, where there is no MPI.
fn solo(missing: &str) -> Result<ExitCode> {
    eprintln!("{missing}: this is the demonstration with one process\n");
    let status = Command::new(tools::beside(&["standfast"]).map_err(anyhow::Error::msg)?)
        .arg("demo")
        .status()?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// What the solver has to do.
struct Work {
    /// Cells along each side of the plate.
    size: u32,
    /// Steps in time.
    steps: u64,
    /// Steps between checkpoints.
    every: u64,
}

impl Work {
    /// What was asked for, with defaults where nothing was.
    fn of(args: &Args, steps: u64, checkpoints: u64) -> Result<Self> {
        let steps = args.steps.unwrap_or(steps);
        let every = args.every.unwrap_or_else(|| (steps / checkpoints).max(1));
        ensure!(every.saturating_mul(5) <= steps, "--every is more than a fifth of --steps");
        Ok(Self { size: args.size, steps, every })
    }
}
