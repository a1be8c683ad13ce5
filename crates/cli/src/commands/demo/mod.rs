//! `demo`: a heat solver is killed, restarted, and ends with the same bits.
//!
//! - [`whole`]: MPI ranks over several nodes through every stage; a node is lost, then all of them.
//! - [`solo`]: one process, killed and restarted; what is left to show where there is no MPI.

mod compare;
mod solo;
mod whole;

use std::process::ExitCode;

use standfast::Kind;

use crate::args::{DemoArgs, Global};
use crate::failure::{Failure, Result, exit_code};
use crate::interrupt;
use crate::output::{Output, TITLE};

/// Shows as much as this machine allows.
pub(crate) fn run(global: &Global, args: &DemoArgs, output: &Output) -> Result<ExitCode> {
    interrupt::listen();
    // A store that shall stay is that of one process.
    let identical = if args.solo || global.store.is_some() {
        solo::play(global, args, output)?
    } else {
        match whole::Tools::find(args.language) {
            Ok(tools) => whole::play(args, &tools, output)?,
            Err(missing) => {
                output.remark(format_args!(
                    "{missing}: this is the demonstration with one process. \
                     'make demo' in the sources installs what the whole one needs.\n"
                ));
                solo::play(global, args, output)?
            }
        }
    };
    Ok(if identical { ExitCode::SUCCESS } else { exit_code(Kind::Corrupt) })
}

/// What a solver has to do.
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
    fn of(args: &DemoArgs, size: u32, steps: u64, checkpoints: u64) -> Result<Self> {
        let steps = args.steps.unwrap_or(steps);
        let every = args.every.unwrap_or_else(|| (steps / checkpoints).max(1));
        if every.saturating_mul(5) > steps {
            return Err(Failure::new(Kind::Invalid, "--every is more than a fifth of --steps")
                .advise("the demonstration needs some checkpoints before and after the kill"));
        }
        Ok(Self { size: args.size.unwrap_or(size), steps, every })
    }
}

/// The title of a part.
fn act(number: u32, what: &str, output: &Output) -> Result<()> {
    let number = output.paint(TITLE, number);
    output.line(format_args!("\n{number}  {}", output.paint(TITLE, what)))
}

/// A temporary directory that goes with the command, however it ends.
fn scratch() -> Result<tempfile::TempDir> {
    let made = tempfile::Builder::new().prefix("standfast-demo-").tempdir();
    made.map_err(|error| Failure::os("make", "a temporary directory", error))
}

/// A number from 0 to 1 that nobody can foresee.
fn random() -> Result<f64> {
    let bits = getrandom::u32().map_err(|error| Failure::new(Kind::Io, error.to_string()))?;
    Ok(f64::from(bits) / f64::from(u32::MAX))
}
