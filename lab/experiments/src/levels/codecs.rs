//! `codecs`: the seed's compression study on our corpus: what codecs save and how fast one thread is,
//! and what a node would need of each to keep its share of global storage busy.
//!
//! Data: pages as a checkpoint stores them -> the system's gzip, bzip2, xz and lz4 as commands, our
//! codecs as a drain uses them (blocks, a filter chosen by sample) -> factor and speed, by processor
//! time -> Table 3 by [`standfast_model::codec`].

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use standfast_model::codec::Codec;
use standfast_reduce::{BlockEncoder, CodecSpec, FilterChoice};

use crate::pipeline::data::{self, Data};
use crate::report::Report;

const NAME: &str = "codecs";
/// What blocks are usually made of.
const BLOCK_BYTES: usize = 128 << 10;
/// The seed's node: what it checkpoints, and its share of global storage.
const NODE_BYTES: f64 = 112e9;
const GLOBAL_BPS: f64 = 100e6;

/// Factor and speed of codecs on our corpus, and what a node needs of each
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// Directory of the corpus
    #[arg(long, env = "STANDFAST_CORPUS", value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// MiB of each sort of data
    #[arg(long, default_value_t = 16)]
    mib: usize,
    /// Only data of these names [default: the programs of the corpus, if one is named]
    #[arg(long, value_delimiter = ',')]
    data: Vec<String>,
}

/// The commands of the study.
const UTILITIES: [(&str, &str, &str); 7] = [
    ("gzip(1)", "gzip", "-1"),
    ("gzip(6)", "gzip", "-6"),
    ("bzip2(1)", "bzip2", "-1"),
    ("bzip2(9)", "bzip2", "-9"),
    ("xz(1)", "xz", "-1"),
    ("xz(6)", "xz", "-6"),
    ("lz4(1)", "lz4", "-1"),
];
const OURS: [&str; 4] = ["lz4", "zstd:1", "zstd:3", "deflate:1"];

/// One codec on one sort of data.
#[derive(Clone, Serialize)]
struct Point {
    data: String,
    codec: String,
    /// Share of bytes removed.
    factor: f64,
    mb_s: f64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { data, codec, factor, mb_s } = self;
        write!(f, "{data:<10}{codec:<12}{:>6.1} %  {mb_s:>8.1} MB/s", 100.0 * factor)
    }
}

/// A line of Table 3.
#[derive(Serialize)]
struct Need {
    codec: String,
    factor: f64,
    mb_s: f64,
    required_mb_s: f64,
    cores: u64,
    interval_s: f64,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<12}average {:>5.1} %, {:>7.1} MB/s: needs {:>5.0} MB/s, {:>3} cores, a checkpoint every {:>4.0} s",
            self.codec,
            100.0 * self.factor,
            self.mb_s,
            self.required_mb_s,
            self.cores,
            self.interval_s
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let report = &args.report;
    report.note(NAME, "factor: share of bytes removed; speed: one thread, by processor time");
    let wanted = |data: &Data| args.data.is_empty() || args.data.contains(&data.name);
    let all = match &args.corpus {
        Some(corpus) if args.data.is_empty() => data::programs(corpus, args.mib)?,
        corpus => data::all(corpus.as_deref(), args.mib)?,
    };
    let mut points: Vec<Point> = Vec::new();
    for data in all.iter().filter(|data| wanted(data)) {
        for point in study(data)? {
            report.point(NAME, &point);
            points.push(point);
        }
    }
    let mut names: Vec<String> = points.iter().map(|point| point.codec.clone()).collect();
    names.dedup();
    names.truncate(UTILITIES.len() + OURS.len());
    for name in names {
        report.point(NAME, &need(&name, &points)?);
    }
    Ok(())
}

/// All codecs on one sort of data.
fn study(data: &Data) -> anyhow::Result<Vec<Point>> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("pages");
    std::fs::write(&file, &data.bytes)?;
    let point = |codec: &str, stored: u64, time: Duration| Point {
        data: data.name.clone(),
        codec: codec.into(),
        factor: 1.0 - stored as f64 / data.bytes.len() as f64,
        mb_s: data.bytes.len() as f64 / time.as_secs_f64().max(1e-6) / 1e6,
    };
    let mut points = Vec::new();
    for (name, command, level) in UTILITIES {
        let (stored, time) = utility(command, level, &file)?;
        points.push(point(name, stored, time));
    }
    for name in OURS {
        let (stored, time) = own(name.parse()?, &data.bytes);
        points.push(point(&format!("our {name}"), stored, time));
    }
    Ok(points)
}

/// What a command makes of a file, and the processor time that it takes.
fn utility(command: &str, level: &str, file: &Path) -> anyhow::Result<(u64, Duration)> {
    let mut child = Command::new(command)
        .args([level, "-c"])
        .stdin(File::open(file)?)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {command}"))?;
    let mut out = child.stdout.take().context("it is piped")?;
    let (mut stored, mut buf) = (0, vec![0; 1 << 20]);
    loop {
        match out.read(&mut buf)? {
            0 => break,
            bytes => stored += bytes as u64,
        }
    }
    let mut status = 0;
    // SAFETY: all fields of this plain structure may be zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is this process's and is waited for only here.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    let status = std::process::ExitStatus::from_raw(status);
    ensure!(waited > 0 && status.success(), "{command} ended with {status}");
    let time = |value: libc::timeval| {
        Duration::new(value.tv_sec as u64, 0) + Duration::from_micros(value.tv_usec as u64)
    };
    Ok((stored, time(usage.ru_utime) + time(usage.ru_stime)))
}

/// What a drain makes of it, block by block.
fn own(codec: CodecSpec, bytes: &[u8]) -> (u64, Duration) {
    let mut encoder = BlockEncoder::new(codec, FilterChoice::Auto, BLOCK_BYTES);
    let began = thread_time();
    let stored = bytes.chunks(BLOCK_BYTES).map(|raw| encoder.encode(raw, 8).bytes.len() as u64);
    (stored.sum(), thread_time().saturating_sub(began))
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}

/// What a node needs of a codec, by its averages over all data.
fn need(name: &str, points: &[Point]) -> anyhow::Result<Need> {
    let own: Vec<&Point> = points.iter().filter(|point| point.codec == name).collect();
    let mean = |value: fn(&Point) -> f64| {
        own.iter().map(|point| value(point)).sum::<f64>() / own.len() as f64
    };
    let factor = mean(|point| point.factor).max(0.0);
    // What takes long counts long: data that nobody compresses pass at any speed.
    let mb_s = 1.0 / mean(|point| 1.0 / point.mb_s);
    let codec = Codec::new(factor, mb_s * 1e6, mb_s * 1e6)?;
    Ok(Need {
        codec: name.into(),
        factor,
        mb_s,
        required_mb_s: codec.saturating_bps(GLOBAL_BPS)? / 1e6,
        cores: codec.saturating_cores(GLOBAL_BPS)?,
        interval_s: codec.stored_bytes(NODE_BYTES) / GLOBAL_BPS,
    })
}
