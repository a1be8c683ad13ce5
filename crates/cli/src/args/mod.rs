//! Every command and option, defined once: parsing, help, man pages and completions come from
//! here. What helps people further (examples, JSON lines, exit codes) is in [`crate::manual`].

pub(crate) mod agent;
mod demo;
mod drain;
mod plan;
mod quantity;
mod run;

use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, CommandFactory, Parser, Subcommand};

use standfast_admin::Place;

use crate::manual;
pub(crate) use demo::DemoArgs;
pub(crate) use drain::{DrainArgs, FetchArgs};
pub(crate) use plan::PlanArgs;
pub(crate) use run::RunArgs;

/// Checkpoint/restart for parallel programs: look into stores, check them, take data out.
#[derive(Parser)]
#[command(name = "standfast", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command understands.
#[derive(Args)]
pub(crate) struct Global {
    /// Directory or URL below which every job has its store
    #[arg(long, global = true, value_name = "DIR|URL", help_heading = "Global options")]
    pub(crate) store: Option<String>,
    /// Stores of nodes, looked at together (may be given several times); {node} stands for any name
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(crate) stores: Vec<String>,
    /// Name of the job; may be left out where the store holds only one
    #[arg(long, global = true, value_name = "NAME", help_heading = "Global options")]
    pub(crate) job: Option<String>,
    /// File with the key of global storage, or !COMMAND that prints it [default: the setting `global_key`]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) global_key: Option<String>,
    /// Results as JSON lines, each with a "type"
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// No progress, no remarks: results and errors only
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
}

impl Global {
    /// Where to look.
    pub(crate) fn place(&self) -> Place {
        Place {
            store: self.store.clone(),
            stores: self.stores.clone(),
            job: self.job.clone(),
            global_key: self.global_key.clone(),
        }
    }
}

/// The commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Kill a heat solver, restart it, and get the same answer
    Demo(DemoArgs),
    /// Start a program, take checkpoints of it, and start it again when it fails
    Run(RunArgs),
    /// List jobs and their checkpoints
    Ls,
    /// Tell what a checkpoint holds and what each stage saved
    Show(ShowArgs),
    /// Check every manifest, image, segment and page
    Verify(VerifyArgs),
    /// Compare two checkpoints page by page, without reading their data
    Diff(DiffArgs),
    /// Write the regions of a checkpoint to raw files
    Export(ExportArgs),
    /// Remove old checkpoints and what only they needed
    Prune(PruneArgs),
    /// Carry checkpoints to global storage, beside the running job or after its death
    Drain(DrainArgs),
    /// Bring a checkpoint back from global storage
    Fetch(FetchArgs),
    /// Print every effective setting and where it came from
    Config(ConfigArgs),
    /// Start, ask or end the agent that writes for all ranks of this node
    Agent(agent::AgentArgs),
    /// Measure hardware limits and how close each stage comes
    Bench(BenchArgs),
    /// Choose interval, levels, groups and codec, and tell what they will cost
    Plan(Box<PlanArgs>),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them to a directory
    Man(ManArgs),
    #[command(hide = true)]
    DemoWorker(WorkerArgs),
}

/// Arguments of the demonstration's solver, which the demonstration itself starts.
#[derive(Args)]
pub(crate) struct WorkerArgs {
    #[arg(long)]
    pub(crate) size: u32,
    #[arg(long)]
    pub(crate) steps: u64,
    #[arg(long)]
    pub(crate) every: u64,
    /// Where the answer is written
    #[arg(long)]
    pub(crate) answer: PathBuf,
    /// Protect the field and take checkpoints
    #[arg(long)]
    pub(crate) protect: bool,
}

/// Arguments of `show`.
#[derive(Args)]
pub(crate) struct ShowArgs {
    /// Which checkpoint; the newest if left out
    pub(crate) version: Option<u64>,
    /// How its bytes were written: by size, their share of count, bytes and time
    #[arg(long)]
    pub(crate) writes: bool,
    /// Groups, sectors and ring that protect it, and what each loss of nodes would cost
    #[arg(long, conflicts_with = "writes")]
    pub(crate) ring: bool,
    /// Pages of each rank that another rank holds: whose they are, and their hashes
    #[arg(long, conflicts_with_all = ["writes", "ring"])]
    pub(crate) references: bool,
}

/// Arguments of `verify`.
#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// Only these checkpoints; everything if left out
    #[arg(value_name = "VERSION")]
    pub(crate) versions: Vec<u64>,
    /// Check names, lengths, digests and references, but read no data
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print what a restart from these stores would do: what is lost, what brings it back
    #[arg(long, alias = "plan")]
    pub(crate) restart: bool,
}

/// Arguments of `diff`.
#[derive(Args)]
pub(crate) struct DiffArgs {
    /// The one checkpoint
    #[arg(value_name = "A")]
    pub(crate) before: u64,
    /// The other checkpoint
    #[arg(value_name = "B")]
    pub(crate) after: u64,
    /// List the ranges of bytes that differ, in whole pages
    #[arg(long)]
    pub(crate) ranges: bool,
}

/// Arguments of `export`.
#[derive(Args)]
pub(crate) struct ExportArgs {
    /// Which checkpoint
    pub(crate) version: u64,
    /// Directory for the files; made if need be
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Only this region (may be given several times)
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Vec<String>,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
}

/// A checkpoint as `ls` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointName {
    pub(crate) version: u64,
    /// The beginning of its attempt.
    pub(crate) attempt: String,
}

impl std::str::FromStr for CheckpointName {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (version, attempt) = text.split_once('.').unwrap_or((text, ""));
        let version = version.parse().map_err(|_| format!("{text:?} is no checkpoint"))?;
        Ok(Self { version, attempt: attempt.to_owned() })
    }
}

/// Arguments of `prune`.
#[derive(Args)]
pub(crate) struct PruneArgs {
    /// Keep so many of the newest checkpoints [default: the setting `keep`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
    /// Keep this checkpoint in any case (may be given several times)
    #[arg(long, value_name = "VERSION")]
    pub(crate) keep_version: Vec<u64>,
    /// Keep one of so many, by their order of commit [default: the setting `keep`]
    #[arg(long, value_name = "K")]
    pub(crate) keep_every: Option<u64>,
    /// Remove this checkpoint, also an abandoned one, as `ls` names it (may be given several times)
    #[arg(long, value_name = "VERSION[.ATTEMPT]")]
    pub(crate) version: Vec<CheckpointName>,
    /// Remove checkpoints whose manifests are damaged, and free what only they may have needed
    #[arg(long)]
    pub(crate) damaged: bool,
    /// Do it without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Arguments of `config`.
#[derive(Args)]
pub(crate) struct ConfigArgs {
    /// Print the reference of all settings (Markdown)
    #[arg(long, conflicts_with = "toml")]
    pub(crate) reference: bool,
    /// Print a commented standfast.toml to start from
    #[arg(long)]
    pub(crate) toml: bool,
    /// Print what only experiments set, and what it is now
    #[arg(long, conflicts_with_all = ["reference", "toml"])]
    pub(crate) lab: bool,
}

/// A part of `bench` on its own.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum BenchPart {
    /// Snapshots, trackers and lazy restarts
    Capture,
    /// The GPU, if there is one
    Gpu,
}

/// Arguments of `bench`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Only this part: capture (snapshots, trackers, lazy restarts), gpu [default: the whole path]
    #[arg(value_enum)]
    pub(crate) part: Option<BenchPart>,
    /// Memory to protect and data to write, such as 512MiB
    #[arg(long, default_value = "1GiB", value_name = "SIZE", value_parser = bench_mib)]
    pub(crate) size: u32,
    /// Directory on the file system to measure [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Repetitions: the best counts in memory, the median on the disk
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
}

/// Arguments of `completions`.
#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Args)]
pub(crate) struct ManArgs {
    /// Write standfast.1 and a page per command to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// The whole definition, with what the manual adds to each command's help.
pub(crate) fn command() -> clap::Command {
    let mut command = Cli::command().after_help(manual::exit_codes());
    for page in manual::PAGES.iter() {
        command = command.mut_subcommand(page.command, |own| {
            own.after_help(page.help()).mut_subcommands(|part| part.after_help(page.help()))
        });
    }
    command
}

/// What the command line says; whoever gets it wrong is told so, and the process ends.
pub(crate) fn matches() -> ArgMatches {
    command().try_get_matches().unwrap_or_else(|error| with_tip(error).exit())
}

/// MiB of a size that `bench` can do something with.
fn bench_mib(text: &str) -> Result<u32, String> {
    let mib = quantity::size(text)? / 1_048_576.0;
    let fits = (16.0..=65536.0).contains(&mib);
    fits.then_some(mib as u32).ok_or_else(|| "not between 16MiB and 64GiB".into())
}

/// Many commands of others take the place that they look into by itself.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let tip = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(place)) if error.kind() == ErrorKind::UnknownArgument => {
            let is_place = Path::new(place).is_dir() || place.contains("://");
            is_place.then(|| format!("stores are named by an option: '--store {place}'"))
        }
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[cfg(test)]
mod tests;
