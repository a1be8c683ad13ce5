//! `completions`: a shell's completions, from the same definitions as the help.

use std::process::ExitCode;

use serde_json::json;

use crate::args::{self, CompletionsArgs};
use crate::failure::Result;
use crate::output::Output;

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs, output: &Output) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "standfast", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.record("text", json!({ "name": args.shell.to_string(), "text": script }))?;
    output.line(script.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
