//! `aggregation-rank`: what one process does; started by the experiment, not by people.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use standfast::config::Loaded;
use standfast::{Job, Level};
use standfast_comm::Comm;
use standfast_testkit::Processes;

use super::pieces::{Noise, sizes};

/// One rank of the experiment.
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// Where the ranks find each other
    #[arg(long)]
    meeting: PathBuf,
    #[arg(long)]
    rank: usize,
    #[arg(long)]
    ranks: usize,
    #[arg(long)]
    rounds: usize,
    /// Times the profile's bytes
    #[arg(long)]
    scale: f64,
    /// Settings of the job
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
}

/// What a rank tells, one line.
#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    /// The first checkpoint's t2 - t1, in s.
    pub(super) first_s: f64,
    /// Per round after it: the call returned (t2 - t1), and the checkpoint was durable (t3 - t1), in s.
    pub(super) rounds: Vec<(f64, f64)>,
    /// Work done between t2 and t3, as a share of what the same time allows without a checkpoint.
    pub(super) progress: f64,
    pub(super) bytes: u64,
    pub(super) writes: u64,
    pub(super) written_bytes: u64,
    /// Memory beyond the program's own.
    pub(super) memory_bytes: i64,
    pub(super) notes: Vec<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let comm = Processes::meet(&args.meeting, args.rank, args.ranks)?;
    let mut memory: Vec<Vec<u8>> =
        sizes(args.rank, args.scale).into_iter().map(|bytes| vec![0; bytes]).collect();
    change(&mut memory, args.rank, 0);
    // Before there is a job: what it makes ready beside the program takes time as well.
    let alone = work_rate(&comm)?;
    let before = super::pss_bytes("self").unwrap_or(0);
    let pairs = args.settings.iter().filter_map(|text| text.split_once('='));
    let pairs: Vec<(String, String)> =
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let job = Job::open_comm(Loaded::load(&pairs)?, &comm)?;
    for (at, piece) in memory.iter_mut().enumerate() {
        // SAFETY: the vectors outlive the job and are not resized; this thread alone writes to
        // them, and not during calls.
        unsafe { job.protect(&format!("piece-{at}"), piece.as_mut_ptr(), piece.len(), 8)? };
    }
    let (mut rounds, mut worked, mut time) = (Vec::new(), 0.0, 0.0);
    let mut first_s = 0.0;
    let mut notes = Vec::new();
    for round in 0..=args.rounds {
        change(&mut memory, args.rank, round + 1);
        comm.barrier()?;
        let t1 = Instant::now();
        let version = job.checkpoint(None)?;
        let blocked_s = t1.elapsed().as_secs_f64();
        let (work, total_s) = work_until_durable(&job, version, t1)?;
        comm.barrier()?;
        // The first checkpoint touches memory for the first time.
        match round {
            0 => first_s = blocked_s,
            _ => {
                rounds.push((blocked_s, total_s));
                worked += work;
                time += total_s - blocked_s;
            }
        }
        notes.extend(job.report(version)?.notes);
    }
    let after = super::pss_bytes("self").unwrap_or(before);
    let written = standfast_store::written();
    let told = Told {
        first_s,
        rounds,
        progress: if time > 0.0 { worked / time / alone } else { 1.0 },
        bytes: memory.iter().map(|piece| piece.len() as u64).sum(),
        writes: written.writes,
        written_bytes: written.bytes,
        memory_bytes: after as i64 - before as i64,
        notes,
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&told)?)?;
    // The experiment looks at the agent before the last rank leaves it.
    std::io::read_to_string(std::io::stdin())?;
    Ok(job.close()?)
}

/// New contents: every page of every piece differs from all others.
fn change(memory: &mut [Vec<u8>], rank: usize, round: usize) {
    let mut noise = Noise((rank << 20 | round) as u64);
    for piece in memory {
        for word in piece.chunks_mut(8) {
            let bytes = noise.next().to_le_bytes();
            word.copy_from_slice(&bytes[..word.len()]);
        }
    }
}

/// A piece of computing that touches little memory.
fn work(noise: &mut Noise) -> f64 {
    let mut sum = 0u64;
    for _ in 0..2000 {
        sum = sum.wrapping_add(noise.next());
    }
    std::hint::black_box(sum);
    1.0
}

/// Work per second while all ranks work and nobody writes.
fn work_rate(comm: &dyn Comm) -> anyhow::Result<f64> {
    let mut noise = Noise(1);
    comm.barrier()?;
    let (began, mut done) = (Instant::now(), 0.0);
    while began.elapsed().as_secs_f64() < 0.1 {
        done += work(&mut noise);
    }
    let rate = done / began.elapsed().as_secs_f64();
    comm.barrier()?;
    Ok(rate)
}

/// Works until the checkpoint is durable: the work done, and t3 - t1.
fn work_until_durable(
    job: &Job,
    version: standfast::Version,
    t1: Instant,
) -> anyhow::Result<(f64, f64)> {
    let durable = AtomicBool::new(false);
    let mut noise = Noise(2);
    let mut done = 0.0;
    let total_s = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let waited = job.wait(version, Level::Local);
            let total_s = t1.elapsed().as_secs_f64();
            durable.store(true, Ordering::SeqCst);
            waited.map(|()| total_s)
        });
        while !durable.load(Ordering::SeqCst) {
            done += work(&mut noise);
        }
        waiting.join().expect("waiting does not panic")
    })?;
    Ok((done, total_s))
}
