//! `aggregation`: one pool and one writer per node against every rank writing by itself.
//!
//! Eight processes protect pieces in the sizes of a profiled program and take checkpoints in each
//! way of writing: `direct` (each piece as it comes), `wag` (small pieces together, per process),
//! `pool` (per process, behind the program) and `wag-dbi` (the node's agent), with pools of several
//! sizes. Of each checkpoint t1 is the call, t2 its return and t3 when it is durable: t2 - t1 is what
//! the program waits, t3 - t2 is overlapped with its progress.

pub(crate) mod bars;
mod pieces;
pub(crate) mod rank;

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};
use serde::Serialize;
use standfast_agent::Place;

use crate::report::Report;
use rank::Told;

/// Aggregated writes of a node against ranks that write by themselves
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Processes
    #[arg(long, default_value_t = 8)]
    ranks: usize,
    /// Checkpoints measured in each way, after one to warm up
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Times the profile's 23 MiB per rank
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Ways of writing
    #[arg(long, value_delimiter = ',', default_values_t = WAYS.map(str::to_owned))]
    write: Vec<String>,
    /// Pool sizes in MiB: of each process, or of the node with wag-dbi
    #[arg(long, value_delimiter = ',', default_values_t = [8, 64, 256])]
    pool_mib: Vec<u64>,
    /// Codec
    #[arg(long, default_value = "none")]
    codec: String,
    /// Direct or buffered writes: auto, direct, buffered
    #[arg(long, default_value = "auto")]
    io: String,
    /// Directory on the file system to measure
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    #[command(flatten)]
    report: Report,
}

const NAME: &str = "aggregation";
const WAYS: [&str; 4] = ["direct", "wag", "pool", "wag-dbi"];

/// What is measured.
#[derive(Clone)]
pub(crate) struct Case<'a> {
    pub(crate) write: &'a str,
    pub(crate) pool_mib: u64,
    pub(crate) ranks: usize,
    pub(crate) rounds: usize,
    pub(crate) scale: f64,
    pub(crate) codec: &'a str,
    pub(crate) io: &'a str,
    pub(crate) dir: &'a Path,
}

/// One way of writing with one pool.
#[derive(Debug, Serialize)]
pub(crate) struct Point {
    write: String,
    pool_mib: u64,
    ranks: usize,
    captured_mib: f64,
    /// The first checkpoint's t2 - t1, of the slowest rank.
    first_blocked_s: f64,
    /// Median over checkpoints of the slowest rank: t2 - t1.
    pub(crate) blocked_s: f64,
    /// The same of t3 - t1.
    pub(crate) total_s: f64,
    /// Share of t3 - t1 that the program could use.
    overlap: f64,
    /// Work done between t2 and t3 beside what the same time allows without a checkpoint.
    progress: f64,
    writes_per_checkpoint: f64,
    pub(crate) write_mib_average: f64,
    /// Memory of the node beyond the programs' own.
    memory_mib: f64,
    /// Most of the agent's pool in use at once, and the pool.
    pub(crate) pool_peak_mib: Option<f64>,
    pub(crate) pool_size_mib: Option<f64>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<8} pool {:>4} MiB: blocked {:>7.1} ms (first {:>5.0}), durable {:>7.1} ms, overlapped {:>3.0} %, progress {:>3.0} %, {:>6.0} writes of {:>6.3} MiB, memory {:>6.1} MiB{}",
            self.write,
            self.pool_mib,
            self.blocked_s * 1e3,
            self.first_blocked_s * 1e3,
            self.total_s * 1e3,
            self.overlap * 100.0,
            self.progress * 100.0,
            self.writes_per_checkpoint,
            self.write_mib_average,
            self.memory_mib,
            self.pool_peak_mib.map_or(String::new(), |peak| format!(", pool used {peak:.1} MiB")),
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let report = &args.report;
    report.note(
        NAME,
        &format!(
            "{} processes, {} checkpoints each, codec {}, io {}",
            args.ranks, args.rounds, args.codec, args.io
        ),
    );
    let mut points = Vec::new();
    for write in &args.write {
        for pool_mib in &args.pool_mib {
            let case = Case {
                write,
                pool_mib: *pool_mib,
                ranks: args.ranks,
                rounds: args.rounds,
                scale: args.scale,
                codec: &args.codec,
                io: &args.io,
                dir: &args.dir,
            };
            let point = measure(&case)?;
            report.point(NAME, &point);
            points.push(point);
        }
    }
    let best = |write: &str| {
        let of_way = points.iter().filter(|point| point.write == write);
        of_way.map(|point| point.blocked_s).fold(f64::INFINITY, f64::min)
    };
    let (direct, shared) = (best("direct"), best("wag-dbi"));
    if direct.is_finite() && shared.is_finite() {
        let ratio = shared / direct;
        let text = format!("wag-dbi blocks at most 0.25 of direct: {ratio:.3}");
        report.claim(NAME, text, ratio <= 0.25);
    }
    Ok(())
}

/// Runs the ranks of one case.
pub(crate) fn measure(case: &Case<'_>) -> anyhow::Result<Point> {
    let dir = tempfile::tempdir_in(case.dir)?;
    // Sockets have short paths.
    let meeting = tempfile::tempdir()?;
    let place = Place::open(Some(&meeting.path().join("agent")))?;
    let mut ranks = Vec::new();
    for rank in 0..case.ranks {
        ranks.push(start(case, dir.path(), meeting.path(), rank)?);
    }
    let told = ranks.iter_mut().map(listen).collect::<anyhow::Result<Vec<Told>>>();
    let agent = standfast_agent::status(&place).ok();
    let agent_bytes =
        agent.as_ref().and_then(|status| pss_bytes(&status.pid.to_string())).unwrap_or(0);
    for mut rank in ranks {
        drop(rank.stdin.take());
        rank.wait()?;
    }
    if agent.is_some() {
        standfast_agent::stop(&place, true)?;
    }
    let told = told?;
    if let Some(note) = told.iter().flat_map(|told| &told.notes).next() {
        bail!("{} was not written as asked for: {note}", case.write);
    }
    Ok(point(case, &told, agent.as_ref(), agent_bytes))
}

fn start(case: &Case<'_>, dir: &Path, meeting: &Path, rank: usize) -> anyhow::Result<Child> {
    let exe = std::env::current_exe()?;
    let mut command = Command::new(&exe);
    command.arg("aggregation-rank").arg("--meeting").arg(meeting);
    for (name, value) in [
        ("rank", rank.to_string()),
        ("ranks", case.ranks.to_string()),
        ("rounds", case.rounds.to_string()),
        ("scale", case.scale.to_string()),
    ] {
        command.arg(format!("--{name}")).arg(value);
    }
    for (name, value) in [
        ("store", dir.display().to_string()),
        ("lab.write", case.write.to_owned()),
        ("lab.pool", format!("{}MiB", case.pool_mib)),
        ("lab.mode", "full".to_owned()),
        ("codec", case.codec.to_owned()),
        ("lab.io", case.io.to_owned()),
        ("keep", "1".to_owned()),
        ("lab.threads", "1".to_owned()),
        ("lab.agent_dir", meeting.join("agent").display().to_string()),
        ("lab.agent_command", exe.display().to_string()),
    ] {
        command.arg("--set").arg(format!("{name}={value}"));
    }
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().context("starting a rank")
}

fn listen(rank: &mut Child) -> anyhow::Result<Told> {
    let out = rank.stdout.take().context("it is piped")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    serde_json::from_str(&line).with_context(|| format!("a rank said {line:?}"))
}

fn point(
    case: &Case<'_>,
    told: &[Told],
    agent: Option<&standfast_agent::Status>,
    agent_bytes: u64,
) -> Point {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let slowest = |pick: fn(&(f64, f64)) -> f64| {
        let of_round =
            |round: usize| told.iter().map(|told| pick(&told.rounds[round])).fold(0.0, f64::max);
        median((0..case.rounds).map(of_round).collect())
    };
    let (blocked_s, total_s) = (slowest(|round| round.0), slowest(|round| round.1));
    let own = |pick: fn(&Told) -> u64| told.iter().map(pick).sum::<u64>();
    let writes = own(|told| told.writes) + agent.map_or(0, |status| status.writes);
    let written = own(|told| told.written_bytes) + agent.map_or(0, |status| status.written_bytes);
    let memory: i64 = told.iter().map(|told| told.memory_bytes).sum::<i64>() + agent_bytes as i64;
    let session = agent.and_then(|status| status.sessions.first());
    let unit_bytes =
        session.map(|session| session.pool_bytes as f64 / f64::from(session.units.max(1)));
    Point {
        write: case.write.to_owned(),
        pool_mib: case.pool_mib,
        ranks: case.ranks,
        captured_mib: mib(own(|told| told.bytes) as f64),
        first_blocked_s: told.iter().map(|told| told.first_s).fold(0.0, f64::max),
        blocked_s,
        total_s,
        overlap: 1.0 - blocked_s / total_s,
        progress: told.iter().map(|told| told.progress).sum::<f64>() / told.len() as f64,
        writes_per_checkpoint: writes as f64 / (case.rounds + 1) as f64,
        write_mib_average: if writes > 0 { mib(written as f64 / writes as f64) } else { 0.0 },
        memory_mib: mib(memory.max(0) as f64),
        pool_peak_mib: session
            .zip(unit_bytes)
            .map(|(session, unit)| mib(f64::from(session.units_peak) * unit)),
        pool_size_mib: session.map(|session| mib(session.pool_bytes as f64)),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// A process's share of memory, shared pages counted by their users.
fn pss_bytes(process: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = text.lines().find(|line| line.starts_with("Pss:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}
