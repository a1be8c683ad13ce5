//! The bars of jobs of many ranks that need real processes under MPI.

use anyhow::Context;
use serde::Deserialize;
use standfast_measure::{Bar, Better};

use super::Launcher;
use crate::kill;

const LETTER: &str = "B";
const RANKS: usize = 8;
/// 256 MiB of pages of 4 KiB.
const PAGES: usize = 1 << 16;
const THRESHOLD: u32 = 1 << 17;

#[derive(Deserialize)]
struct Pace {
    collective_s: f64,
    hashing_s: f64,
}

/// Measures them, where an MPI is installed.
pub(crate) fn bars(quick: bool, mut each: impl FnMut(Bar)) -> anyhow::Result<()> {
    let Some(launcher) = Launcher::find()? else {
        eprintln!("bars of MPI jobs are left out: no mpicc is installed");
        return Ok(());
    };
    let rounds = if quick { 5 } else { 15 };
    let exact = pace(&launcher, rounds, None)?;
    let name = format!("exact dedup, {RANKS} MPI ranks of 256 MiB, share of hashing them");
    let share = exact.collective_s / exact.hashing_s;
    each(Bar::new(LETTER, name, share, Better::Lower, 1.0).ceiling(exact.hashing_s * 1e3, "ms"));
    let top_k = pace(&launcher, rounds, Some(THRESHOLD))?;
    let name = format!("top-K of 2^17, {RANKS} MPI ranks, share of hashing per doubling");
    let doublings = RANKS.ilog2() as f64;
    let share = top_k.collective_s / top_k.hashing_s / doublings;
    each(Bar::new(LETTER, name, share, Better::Lower, 0.5).ceiling(top_k.hashing_s * 1e3, "ms"));
    let kills = if quick { 3 } else { 50 };
    let seen = kill::campaign(&launcher, RANKS, kills, 7, |_, _| {})?;
    let name = format!("wrong restarts of {RANKS} MPI ranks, killed {kills} times");
    each(Bar::new(LETTER, name, f64::from(seen.wrong), Better::Lower, 0.0));
    Ok(())
}

fn pace(launcher: &Launcher, rounds: usize, threshold: Option<u32>) -> anyhow::Result<Pace> {
    let mut args = vec!["pace".into(), format!("--pages={PAGES}"), format!("--rounds={rounds}")];
    args.extend(threshold.map(|pages| format!("--threshold={pages}")));
    let told = launcher.output(RANKS, &args)?;
    serde_json::from_str(told.trim()).with_context(|| format!("the ranks said {told:?}"))
}
