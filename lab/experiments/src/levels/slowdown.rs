//! `slowdown`: how much a drain slows a program down that computes and takes checkpoints.
//!
//! ```text
//! checkpoints   |  warm-up  |       |       |       |       |
//! drain            goes       stopped  goes    goes   stopped  ...
//!                             `--- a pair ---' `--- a pair ---'
//! ```
//! One run of one program, and a drain that is stopped and let go again at its checkpoints: stretches of
//! one pair follow each other within a second or two, so whatever else slows a machine down meets both,
//! and every other pair begins with the drain, so that what grows or shrinks in time counts for nothing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::ensure;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::process::{Process, words};
use super::program::Told;
use crate::report::Report;

const NAME: &str = "slowdown";

/// Steps of a stretch, for each thread: each thread more makes them shorter.
const STEPS: usize = 6;
/// Stretches before the first pair.
const WARM_UP: usize = 2;

/// How much a drain slows a program down, by its niceness and the program's threads
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    report: Report,
    /// How nice the drain is to other processes
    #[arg(long, value_delimiter = ',', default_values_t = [0, 10, 15, 19])]
    #[arg(value_parser = clap::value_parser!(i32).range(0..=19))]
    nice: Vec<i32>,
    /// Threads of the program; none: as many as there are cores, and one less
    #[arg(long, value_delimiter = ',')]
    threads: Vec<usize>,
    /// Stretches with the drain, and as many without
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u16).range(1..))]
    pairs: u16,
    /// Directory on the file system to measure
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

/// What was found.
#[derive(Serialize)]
pub(crate) struct Slowdown {
    nice: i32,
    threads: usize,
    /// Time of a stretch with the drain by that of its neighbour without, less one: the median.
    pub(crate) slowdown: f64,
    /// Seconds of a stretch without: the median.
    pub(crate) alone_s: f64,
    /// Checkpoints that have arrived meanwhile, of those that were taken.
    arrived: usize,
    taken: usize,
}

impl fmt::Display for Slowdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "drain of niceness {:>2} beside {} threads: {:>5.1} % slower than {:.2} s, {} of {} checkpoints arrived",
            self.nice,
            self.threads,
            100.0 * self.slowdown,
            self.alone_s,
            self.arrived,
            self.taken
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    let threads = match &*args.threads {
        [] => vec![cores.saturating_sub(1).max(1), cores],
        given => given.to_vec(),
    };
    for threads in threads {
        for nice in &args.nice {
            let found = measure(&args.dir, threads.max(1), *nice, args.pairs.into())?;
            args.report.point(NAME, &found);
        }
    }
    Ok(())
}

/// Whether the drain goes in a stretch.
fn goes(stretch: usize) -> bool {
    stretch.checked_sub(WARM_UP).is_none_or(|at| at.div_ceil(2) % 2 == 1)
}

/// Measures so many pairs, with a program of so many threads and a drain of this niceness.
pub(crate) fn measure(
    dir: &Path,
    threads: usize,
    nice: i32,
    pairs: usize,
) -> anyhow::Result<Slowdown> {
    let home = tempfile::tempdir_in(dir)?;
    let (store, target) = (home.path().join("local"), home.path().join("global"));
    let (store, target) = (store.display(), target.display());
    let beside = words(&[
        &"levels-drain",
        &"--store",
        &store,
        &"--follow",
        &"--rate",
        &20e6,
        &"--target",
        &target,
        &"--nice",
        &nice,
    ]);
    let every = STEPS * threads;
    let own = words(&[
        &"levels-program",
        &"--store",
        &store,
        &"--mib",
        &32,
        &"--steps",
        &(every * (1 + WARM_UP + 2 * pairs)),
        &"--every",
        &every,
        &"--threads",
        &threads,
    ]);
    let drain = Process::start(&beside, &[])?;
    let pid = drain.pid()?;
    let taken = Arc::new(Mutex::new(Vec::new()));
    let hears = {
        let taken = Arc::clone(&taken);
        move |told: &Told| {
            if let Told::Taken { at_s, .. } = told {
                let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
                stop_or_let_go(pid, goes(taken.len()));
                taken.push(*at_s);
            }
        }
    };
    Process::start_heard(&own, &[], hears)?.wait()?;
    let arrived = drain.kill().len();
    ensure!(arrived > 0, "nothing was drained");
    let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(taken.len() > WARM_UP + 2 * pairs, "the program has not taken its checkpoints");
    let (slowdown, alone_s) = compare(&taken, pairs);
    Ok(Slowdown { nice, threads, slowdown, alone_s, arrived, taken: taken.len() })
}

fn stop_or_let_go(drain: Pid, goes: bool) {
    // One that has ended is missed later.
    let _ = kill_process(drain, if goes { Signal::CONT } else { Signal::STOP });
}

/// Slowdown and time alone, from the instants of checkpoints.
fn compare(taken: &[f64], pairs: usize) -> (f64, f64) {
    let (mut ratios, mut alone) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let first = WARM_UP + 2 * pair;
        let (mut with_s, mut without_s) = (0.0, 0.0);
        for stretch in [first, first + 1] {
            let seconds = taken[stretch + 1] - taken[stretch];
            *if goes(stretch) { &mut with_s } else { &mut without_s } = seconds;
        }
        ratios.push(with_s / without_s - 1.0);
        alone.push(without_s);
    }
    ratios.sort_by(f64::total_cmp);
    alone.sort_by(f64::total_cmp);
    (ratios[pairs / 2], alone[pairs / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_one_stretch_of_each_kind_and_they_take_turns_to_begin() {
        let going: Vec<bool> = (0..WARM_UP + 8).map(goes).collect();
        let pairs = [false, true, true, false, false, true, true, false];
        assert_eq!(going, [&[true; WARM_UP][..], &pairs].concat());
    }

    #[test]
    fn what_a_drain_costs_is_told_and_what_only_grows_with_time_is_not() {
        let mut now = 0.0;
        let mut taken = vec![now];
        for stretch in 0..WARM_UP + 20 {
            now += (1.0 + stretch as f64 * 1e-3) * if goes(stretch) { 1.05 } else { 1.0 };
            taken.push(now);
        }
        let (slowdown, alone_s) = compare(&taken, 10);
        assert!((slowdown - 0.05).abs() < 2e-3, "{slowdown}");
        assert!((alone_s - 1.0).abs() < 0.03, "{alone_s}");
    }
}
