//! Arguments of `drain` and `fetch`.

use std::time::Duration;

use clap::Args;
use standfast_admin::CodecChoice;
use standfast_admin::drain::{Cores, IoPriority};

use super::quantity;

/// Arguments of `drain`.
#[derive(Args)]
pub(crate) struct DrainArgs {
    /// Where to: a directory of a parallel file system, or s3://bucket/prefix [default: the setting
    /// `global`]
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) to: Option<String>,
    /// Go on while the job runs: wait for new checkpoints, and try again whatever fails
    #[arg(long)]
    pub(crate) follow: bool,
    /// Stop after this time, such as 30s; drain the newest checkpoint that fits
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "follow")]
    pub(crate) deadline: Option<Duration>,
    /// Every Nth checkpoint, the older ones too [default: the setting `global_keep`: the newest, as
    /// often as bandwidth allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every: Option<u64>,
    /// Checkpoints kept there, older ones go; 0 keeps all [default: the setting `global_keep`]
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<u32>,
    /// Send at most so much, such as 200MB/s [default: the setting `global_rate`: no limit]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<u64>,
    /// Compress on the way: auto (per block, by data and speed), none, lz4, zstd:LEVEL,
    /// deflate:LEVEL [default: by the setting `codec`: zstd:1]
    #[arg(long, value_name = "CODEC")]
    pub(crate) codec: Option<CodecChoice>,
    /// Threads that read and compress [default: one per core, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// How much to give way to other processes, 0 to 19 [default: 19]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=19))]
    pub(crate) nice: Option<i32>,
    /// When its reads and writes of disks come: 0 (first) to 7 (last), or idle [default: 7]
    #[arg(long, value_name = "N|idle")]
    pub(crate) ionice: Option<IoPriority>,
    /// Run on these cores only, such as 0,2-3 [default: any]
    #[arg(long, value_name = "CORES")]
    pub(crate) cpus: Option<Cores>,
}

/// Arguments of `fetch`.
#[derive(Args)]
pub(crate) struct FetchArgs {
    /// Where from: what checkpoints were drained to [default: the setting `global`]
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) from: Option<String>,
    /// Which checkpoint; the newest if left out
    pub(crate) version: Option<u64>,
}

fn duration(text: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(quantity::time(text)?).map_err(|error| error.to_string())
}

fn rate(text: &str) -> Result<u64, String> {
    match quantity::rate(text)? {
        rate if rate >= 1.0 => Ok(rate as u64),
        _ => Err("at least one byte per second".into()),
    }
}

#[cfg(test)]
mod tests;
