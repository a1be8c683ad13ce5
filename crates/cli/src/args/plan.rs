//! Arguments of `plan`: what is known about job, failures and machine, and where to read it.

use std::path::PathBuf;

use clap::Args;
use standfast_admin::model::plan::CodecInput;

use super::quantity;

/// Arguments of `plan`. What is not given is measured, read or assumed, and the output says so.
#[derive(Args)]
pub(crate) struct PlanArgs {
    /// Print a standfast.toml with the planned settings, and nothing else
    #[arg(long, conflicts_with = "json")]
    pub(crate) toml: bool,
    /// Take size, change, capture rate and drain rate from what a job, running or not, has done so
    /// far (see --store, --job)
    #[arg(long)]
    pub(crate) from_job: bool,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) failures: FailureArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}

/// What is known about the job.
#[derive(Args)]
#[command(next_help_heading = "Job")]
pub(crate) struct JobArgs {
    /// Nodes of the job [default: what Slurm, PBS or LSF say in their environment]
    #[arg(long, value_name = "N")]
    pub(crate) nodes: Option<u64>,
    /// Ranks on each node [default: what Slurm or PBS say in their environment]
    #[arg(long, value_name = "N")]
    pub(crate) ranks_per_node: Option<u64>,
    /// Protected memory per node, such as 64GiB
    #[arg(long, value_name = "BYTES", value_parser = quantity::size, allow_hyphen_values = true)]
    pub(crate) size: Option<f64>,
    /// Share of it that a checkpoint has to store after dedup, such as 0.6 or 60%
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, allow_hyphen_values = true)]
    pub(crate) changed: Option<f64>,
}

/// What is known about failures.
#[derive(Args)]
#[command(next_help_heading = "Failures")]
pub(crate) struct FailureArgs {
    /// Mean time between failures of the whole job, such as 6h or 2d
    #[arg(long, value_name = "TIME", value_parser = quantity::time, allow_hyphen_values = true)]
    pub(crate) mtti: Option<f64>,
    /// File with the time of a failure per line (ISO 8601 or seconds since 1970), instead of --mtti
    #[arg(long, value_name = "FILE", conflicts_with = "mtti")]
    pub(crate) failure_log: Option<PathBuf>,
    /// Share of failures that leave the data of every node in place
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, allow_hyphen_values = true)]
    pub(crate) process_share: Option<f64>,
    /// Mean number of nodes that go down together
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) nodes_per_incident: Option<f64>,
    /// Wanted chance that shards on other nodes survive such an incident
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, allow_hyphen_values = true)]
    pub(crate) survival: Option<f64>,
    /// Time to get the job running again, before any data is read
    #[arg(long, value_name = "TIME", value_parser = quantity::time, allow_hyphen_values = true)]
    pub(crate) relaunch: Option<f64>,
}

/// What is known about the machine. Rates are per node unless said otherwise.
#[derive(Args)]
#[command(next_help_heading = "Machine (rates per node, such as 1.5GB/s or 100Gbit/s)")]
pub(crate) struct MachineArgs {
    /// File with the output of 'standfast bench --json': rates and codecs of this machine
    #[arg(long, value_name = "FILE")]
    pub(crate) bench: Option<PathBuf>,
    /// How fast pages are captured while the job stands still
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, allow_hyphen_values = true)]
    pub(crate) capture: Option<f64>,
    #[command(flatten)]
    pub(crate) storage: StorageArgs,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    /// A codec to choose from, NAME=SAVED,COMPRESS,DECOMPRESS (may be given several times)
    #[arg(long, value_name = "CODEC", value_parser = quantity::codec)]
    pub(crate) codec: Vec<CodecInput>,
    /// Most memory that the pool may take
    #[arg(long, value_name = "BYTES", value_parser = quantity::size, allow_hyphen_values = true)]
    pub(crate) pool_max: Option<f64>,
    /// No agent: the job itself waits for shards and for the global store
    #[arg(long)]
    pub(crate) no_agent: bool,
    #[command(flatten)]
    pub(crate) ring: RingArgs,
}

/// What is known about local storage and the global store.
#[derive(Args)]
pub(crate) struct StorageArgs {
    /// Local storage, writing
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, allow_hyphen_values = true)]
    pub(crate) local_write: Option<f64>,
    /// Local storage, reading
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, allow_hyphen_values = true)]
    pub(crate) local_read: Option<f64>,
    /// Space on local storage
    #[arg(long, value_name = "BYTES", value_parser = quantity::size, allow_hyphen_values = true)]
    pub(crate) local_space: Option<f64>,
    /// Global store, writing, all nodes together
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, allow_hyphen_values = true)]
    pub(crate) global_write: Option<f64>,
    /// Global store, reading, all nodes together
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, allow_hyphen_values = true)]
    pub(crate) global_read: Option<f64>,
}

/// What is known about the network, and what goes over it.
#[derive(Args)]
pub(crate) struct NetworkArgs {
    /// Network between two nodes
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, allow_hyphen_values = true)]
    pub(crate) network: Option<f64>,
    /// Latency of the network
    #[arg(long, value_name = "TIME", value_parser = quantity::time, allow_hyphen_values = true)]
    pub(crate) network_latency: Option<f64>,
    /// Making shards
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, allow_hyphen_values = true)]
    pub(crate) encode: Option<f64>,
}

/// Groups of nodes.
#[derive(Args)]
pub(crate) struct RingArgs {
    /// Largest group of nodes to consider
    #[arg(long, value_name = "N")]
    pub(crate) group_max: Option<u64>,
    /// Nodes per group, if that is not to be planned
    #[arg(long, value_name = "K")]
    pub(crate) group: Option<u64>,
    /// Shards per group, if that is not to be planned; at most K
    #[arg(long, value_name = "M")]
    pub(crate) shards: Option<u64>,
}
