//! `standfast`: looks into stores, checks them, takes data out, and shows a kill and a restart.
//!
//! Data: arguments -> [`args`] -> one file of [`commands`] -> results on stdout, everything else
//! on stderr -> an exit code. The command links no MPI and starts no job of its own, except the
//! demonstration.
//!
//! Invariants:
//! - Stores are untrusted bytes: whatever they hold gives an answer or an error, never a panic,
//!   and no text of theirs reaches a terminal unescaped.
//! - Commands that read create nothing in a place that is not a store.

mod args;
mod bar;
mod commands;
mod escape;
mod failure;
mod heat;
mod interrupt;
mod manual;
mod moment;
mod output;

use std::process::ExitCode;

use clap::FromArgMatches;

use args::Cli;
use output::Output;

fn main() -> ExitCode {
    let matches = args::matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let output = Output::new(cli.global.json, cli.global.quiet);
    match commands::run(&cli, &output) {
        Ok(code) => code,
        Err(failure) => failure.report(&output),
    }
}
