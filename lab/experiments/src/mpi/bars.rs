//! The bars of jobs of many ranks that need real processes under MPI.

use standfast_measure::{Bar, Better};

use crate::bars::Sheet;

use super::Launcher;
use crate::kill;

const LETTER: &str = "B";
const RANKS: usize = 8;
/// 256 MiB of pages of 4 KiB.
const PAGES: usize = 1 << 16;
const THRESHOLD: u32 = 1 << 17;

/// Measures them, where an MPI is installed.
pub(crate) fn bars(quick: bool, sheet: &mut Sheet) -> anyhow::Result<()> {
    let Some(launcher) = Launcher::find()? else {
        sheet.unmeasured(LETTER, "jobs under MPI", "no mpicc is installed");
        return Ok(());
    };
    let rounds = if quick { 5 } else { 15 };
    let exact = launcher.pace(RANKS, PAGES, rounds, None)?;
    let name = format!("exact dedup, {RANKS} MPI ranks of 256 MiB, share of hashing them");
    let share = exact.collective_s / exact.hashing_s;
    sheet.bar(
        Bar::new(LETTER, name, share, Better::Lower, 1.0).ceiling(exact.hashing_s * 1e3, "ms"),
    );
    let top_k = launcher.pace(RANKS, PAGES, rounds, Some(THRESHOLD))?;
    let name = format!("top-K of 2^17, {RANKS} MPI ranks, share of hashing per doubling");
    let doublings = RANKS.ilog2() as f64;
    let share = top_k.collective_s / top_k.hashing_s / doublings;
    sheet.bar(
        Bar::new(LETTER, name, share, Better::Lower, 0.5).ceiling(top_k.hashing_s * 1e3, "ms"),
    );
    let kills = if quick { 3 } else { 50 };
    let tell = |number: u32, text: &str| {
        if !text.starts_with("begins") {
            eprintln!("life {number}: {text}");
        }
    };
    let seen = kill::campaign(&launcher, RANKS, kills, 7, tell)?;
    let name = format!("wrong restarts of {RANKS} MPI ranks, killed {kills} times");
    sheet.bar(Bar::new(LETTER, name, f64::from(seen.wrong), Better::Lower, 0.0));
    Ok(())
}
