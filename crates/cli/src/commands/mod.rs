//! One file per command. Each takes its arguments and the output, and gives the exit code.

mod agent;
mod bench;
mod completions;
mod config;
mod demo;
mod diff;
mod drain;
mod export;
mod ls;
mod man;
mod plan;
mod prune;
mod references;
mod ring;
mod run;
mod show;
mod verify;
mod writes;

use std::process::ExitCode;

use crate::args::{Cli, Command};
use crate::failure::Result;
use crate::heat;
use crate::output::Output;

/// Runs the command that was asked for.
pub(crate) fn run(cli: &Cli, output: &Output) -> Result<ExitCode> {
    let global = &cli.global;
    match &cli.command {
        Command::Demo(args) => demo::run(global, args, output),
        Command::Run(args) => run::run(global, args, output),
        Command::Ls => ls::run(global, output),
        Command::Show(args) => show::run(global, args, output),
        Command::Verify(args) => verify::run(global, args, output),
        Command::Diff(args) => diff::run(global, args, output),
        Command::Export(args) => export::run(global, args, output),
        Command::Prune(args) => prune::run(global, args, output),
        Command::Drain(args) => drain::drain(global, args, output),
        Command::Fetch(args) => drain::fetch(global, args, output),
        Command::Config(args) => config::run(global, args, output),
        Command::Agent(args) => agent::run(global, args, output),
        Command::Bench(args) => bench::run(args, output),
        Command::Plan(args) => plan::run(global, args, output),
        Command::Completions(args) => completions::run(args, output),
        Command::Man(args) => man::run(args, output),
        Command::DemoWorker(args) => heat::worker::run(global, args),
    }
}
