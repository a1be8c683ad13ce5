//! Arguments of `run`: what to start, how its checkpoints are made, and when it starts again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use standfast::config::{RestartFrom, Signal};

use super::quantity;

/// Arguments of `run`.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// Checkpoint the whole program by a preloaded library: heap, globals, stacks, threads
    #[arg(long, conflicts_with = "criu")]
    pub(crate) preload: bool,
    /// Checkpoint the whole process by CRIU, which must be installed
    #[arg(long)]
    pub(crate) criu: bool,
    /// Time between checkpoints, such as 10min; without it only the signal and the program ask
    #[arg(long, alias = "every", value_name = "TIME", value_parser = period)]
    pub(crate) interval: Option<Duration>,
    /// Signal that asks for a checkpoint, sent to this command or to the program [default: the
    /// setting signal, or USR1]
    #[arg(long, value_name = "SIGNAL")]
    pub(crate) signal: Option<Signal>,
    /// Where to start: from the newest checkpoint unless the job has finished (auto), from the
    /// beginning (never), from a given checkpoint, or from the newest in spite of another input
    /// (force) [default: the setting restart, or auto]
    #[arg(long, value_name = "auto|never|VERSION|force")]
    pub(crate) restart: Option<RestartFrom>,
    /// What --restart is
    #[arg(long, hide = true, value_parser = is_restart)]
    from: Option<String>,
    /// How often to start again after the program has failed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retries: u32,
    /// Pause before the first new start; it doubles with every further one, up to 5 minutes
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub(crate) backoff: Duration,
    /// How long SIGTERM is held back until a last checkpoint is durable; 0s passes it on at once
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = span)]
    pub(crate) grace: Duration,
    /// The library to preload [default: beside this command, or in lib next to its bin]
    #[arg(long, value_name = "FILE", requires = "preload")]
    pub(crate) library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

fn is_restart(_: &str) -> Result<String, String> {
    Err("the word is --restart: auto, never, force, or the number of a checkpoint".into())
}

fn period(text: &str) -> Result<Duration, String> {
    let seconds = quantity::time(text)?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time >= Duration::from_millis(10) => Ok(time),
        _ => Err("a time of at least 10ms is needed".into()),
    }
}

fn span(text: &str) -> Result<Duration, String> {
    let seconds = quantity::time(text)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "a time from 0s on is needed".into())
}

#[cfg(test)]
mod tests;
