//! The worst case on real processes under MPI, beside the virtual ranks of `dedup-worst`.

use std::fmt;

use serde::Serialize;

use super::job::Way;
use super::worst::NAME;
use crate::mpi::{Launcher, Pace};
use crate::report::Report;

/// Most processes: all of them share this machine's cores.
const RANKS_MAX: usize = 8;

/// One point: wall time of the slowest rank, waiting included.
#[derive(Serialize)]
struct Point {
    strategy: String,
    transport: &'static str,
    ranks: usize,
    pages_per_rank: usize,
    wall_s: f64,
    hashing_s: f64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<14} {:>4} MPI ranks  wall {:>8.2} ms   hashing those pages {:>8.2} ms",
            self.strategy,
            self.ranks,
            self.wall_s * 1e3,
            self.hashing_s * 1e3,
        )
    }
}

/// Measures each way on 1, 2, 4 and 8 processes, where an MPI is installed.
pub(super) fn measure(
    report: &Report,
    ways: impl Iterator<Item = Way>,
    ranks: usize,
    pages: usize,
) -> anyhow::Result<()> {
    let Some(launcher) = Launcher::find()? else {
        report.note(NAME, "no mpicc is installed: processes are left out");
        return Ok(());
    };
    for way in ways {
        let threshold = match way {
            Way::TopK(pages) => Some(pages),
            Way::Exact => None,
        };
        for ranks in super::worst::doublings(ranks.min(RANKS_MAX)) {
            let Pace { collective_s, hashing_s } = launcher.pace(ranks, pages, 5, threshold)?;
            let (strategy, transport) = (way.name(), "mpi");
            let point = Point {
                strategy,
                transport,
                ranks,
                pages_per_rank: pages,
                wall_s: collective_s,
                hashing_s,
            };
            report.point(NAME, &point);
        }
    }
    Ok(())
}
