//! Arguments of `drain` and `fetch`.

use std::time::Duration;

use clap::Args;
use standfast_reduce::CodecChoice;

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
    /// Make the best of this time, such as 30s, and say what made it
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "follow")]
    pub(crate) deadline: Option<Duration>,
    /// Every Nth checkpoint, the older ones too [default: the newest, as often as bandwidth allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every: Option<u64>,
    /// Checkpoints kept there, older ones go; 0 keeps all [default: the setting `keep_global`]
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<u32>,
    /// Send at most so much, such as 200MB/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<u64>,
    /// Compress on the way: auto (per block, what arrives soonest), none, lz4, zstd:LEVEL,
    /// deflate:LEVEL
    #[arg(long, value_name = "CODEC", default_value = "zstd:1")]
    pub(crate) codec: CodecChoice,
    /// Threads that read and compress [default: the setting `threads`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// How much to give way to other processes, 0 to 19
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(i32).range(0..=19))]
    pub(crate) nice: i32,
    /// Run on these cores only, such as 0,2-3
    #[arg(long, value_name = "CORES", value_parser = cores)]
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

/// A set of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores(pub(crate) Vec<usize>);

fn duration(text: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(quantity::time(text)?).map_err(|error| error.to_string())
}

fn rate(text: &str) -> Result<u64, String> {
    match quantity::rate(text)? {
        rate if rate >= 1.0 => Ok(rate as u64),
        _ => Err("at least one byte per second".into()),
    }
}

fn cores(text: &str) -> Result<Cores, String> {
    let refuse = || "not a list of cores such as 0,2-3".to_owned();
    let number = |text: &str| text.parse::<usize>().ok().filter(|core| *core < 1024);
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first).ok_or_else(refuse)?, number(last).ok_or_else(refuse)?);
        if last < first {
            return Err(refuse());
        }
        cores.extend(first..=last);
    }
    Ok(Cores(cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_read() {
        assert_eq!(cores("0,2-3"), Ok(Cores(vec![0, 2, 3])));
        for text in ["", "a", "3-1", "0,", "2000"] {
            assert!(cores(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_and_times_are_read() {
        assert_eq!(rate("200MB/s"), Ok(200_000_000));
        assert!(rate("0").is_err());
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
    }
}
