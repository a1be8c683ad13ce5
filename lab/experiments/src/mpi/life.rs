//! A job whose memory follows from rank and step, so that any restart can be checked bit by bit.
//!
//! Prints, for whoever kills it: `pid N` of each rank, `begins STEP` once all ranks have checked
//! what they restarted from, `durable STEP` after each checkpoint, `ends` at the end.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use standfast::config::Loaded;
use standfast::{Job, Level, Version};
use standfast_comm::Comm;

/// How the job goes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where its checkpoints are
    #[arg(long)]
    store: PathBuf,
    /// Steps until its end
    #[arg(long)]
    steps: u64,
    /// MiB that each rank protects
    #[arg(long, default_value_t = 4)]
    mib: usize,
    /// Checkpoints are acknowledged when they are on the ring
    #[arg(long)]
    ring: bool,
}

const WORDS: usize = 512;

/// Fills memory with what a rank has at a step: pages that never change, that change with the
/// step, that all ranks share and that are its own, and some zeros.
fn fill(memory: &mut [u64], rank: u64, step: u64) {
    for (at, page) in memory.chunks_mut(WORDS).enumerate() {
        let at = at as u64;
        let seed = match at % 5 {
            0 => 0,
            1 => at,
            2 => at + (rank + 1) * 1_000_003,
            3 => at + step * 7_000_001,
            _ => at + (rank + 1) * 1_000_003 + step * 7_000_001,
        };
        let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for place in page {
            *place = word;
            word = word.rotate_left(5).wrapping_mul(0x2545_f491_4f6c_dd1d) ^ seed;
        }
    }
}

pub(crate) fn run(args: &Args, comm: &dyn Comm) -> anyhow::Result<()> {
    let rank = comm.rank() as u64;
    say(format_args!("pid {}", std::process::id()));
    let store = args.store.to_string_lossy();
    let settings = [("store", &*store), ("job", "life"), ("keep", "2"), ("lab.pool", "8MiB")];
    let settings = settings.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let job = Job::open_comm(Loaded::load(&settings)?, comm)?;
    let words = args.mib << 17;
    let memory = job.alloc::<u64>("memory", words)?;
    let mut expected = vec![0; words];
    let first = match job.restart().context("restarting")? {
        Some(restarted) => {
            fill(&mut expected, rank, restarted.version.0);
            if memory.read()[..] != expected[..] {
                bail!("rank {rank}: checkpoint {} came back wrong", restarted.version);
            }
            restarted.version.0
        }
        None => 0,
    };
    comm.barrier()?;
    if rank == 0 {
        say(format_args!("begins {first}"));
    }
    for step in first + 1..=args.steps {
        fill(&mut memory.write(), rank, step);
        job.checkpoint(Some(Version(step)))?;
        // Half of them are waited for, the others are overtaken by the next.
        if step % 2 == 0 {
            job.wait(Version(step), if args.ring { Level::Ring } else { Level::Local })?;
            if rank == 0 {
                say(format_args!("durable {step}"));
            }
        }
    }
    job.close()?;
    comm.barrier()?;
    if rank == 0 {
        say(format_args!("ends"));
    }
    Ok(())
}

/// At once: a rank that is killed says nothing more.
fn say(text: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    // Nobody may be listening any more.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
