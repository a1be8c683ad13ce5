//! Arguments of `agent`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use standfast::config::TimeSpan;

/// Arguments of `agent`.
#[derive(Args)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    pub(crate) command: AgentCommand,
}

/// What can be asked of the agent.
#[derive(Subcommand)]
pub(crate) enum AgentCommand {
    /// Start the agent of this node and user, unless one runs
    Start(StartArgs),
    /// Tell what the agent does
    Status(PlaceArgs),
    /// End the agent when it has finished what it holds
    Stop(StopArgs),
    /// Be the agent (what start runs in the background)
    #[command(hide = true)]
    Run(StartArgs),
}

/// Where the agent is.
#[derive(Args)]
pub(crate) struct PlaceArgs {
    /// Directory of its socket and log [default: the setting `agent`]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Arguments of `agent start`.
#[derive(Args)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// End after so long without work [default: 1min]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) idle: Option<TimeSpan>,
}

/// Arguments of `agent stop`.
#[derive(Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Also if ranks use it: they go on without it
    #[arg(long)]
    pub(crate) now: bool,
}

fn time(text: &str) -> Result<TimeSpan, String> {
    text.parse()
}
