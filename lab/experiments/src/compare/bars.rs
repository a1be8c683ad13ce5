//! The bars of the comparison: how much less is stored, and how much sooner it is safe.

use std::path::Path;

use anyhow::Context;
use standfast_measure::{Bar, Better};

use crate::bars::Sheet;

use super::pattern::Pattern;
use super::{Point, Size, measure, way};
use crate::mpi::Launcher;

const LETTER: &str = "H";

/// Measures them, where an MPI is installed.
pub(crate) fn bars(quick: bool, dir: &Path, sheet: &mut Sheet) -> anyhow::Result<()> {
    let Some(launcher) = Launcher::find()? else {
        sheet.unmeasured(LETTER, "side by side", "no mpicc is installed");
        return Ok(());
    };
    let (mib, rounds) = if quick { (64, 1) } else { (256, 5) };
    let size = Size { ranks: 4, mib, rounds, dir };
    let of = |pattern, name| {
        let way = way::find(name).context("a way that exists")?;
        measure(&launcher, size, pattern, way)
    };
    let same = of(Pattern::Same, way::ALL_PAGES)?;
    let stored = same[0].stored_bytes as f64 / (same[0].bytes / size.ranks as u64) as f64;
    sheet.bar(Bar::new(
        LETTER,
        "same on all ranks: stored, of one rank's data",
        stored,
        Better::Lower,
        1.02,
    ));
    let [plain, ours] = [of(Pattern::Field, way::PLAIN)?, of(Pattern::Field, way::ALL_PAGES)?];
    let (plain, ours): (&Point, &Point) = (&plain[1], &ours[1]);
    let stored = ours.stored_bytes as f64 / ours.bytes as f64;
    sheet.bar(Bar::new(
        LETTER,
        "10 % changed: stored by the second checkpoint",
        stored,
        Better::Lower,
        0.105,
    ));
    let sooner = plain.durable_s / ours.durable_s;
    sheet.bar(
        Bar::new(
            LETTER,
            "10 % changed: times sooner durable than writing all",
            sooner,
            Better::Higher,
            5.0,
        )
        .ceiling(plain.durable_s * 1e3, "ms"),
    );
    Ok(())
}
