//! A signal to one rank: all ranks take the checkpoint, at the same point.

use crate::installed::run;
use crate::mpi::{Mpi, alone, compile, installed_source, source};

#[test]
fn a_signal_to_one_rank_asks_all() {
    for (mpi, ranks) in Mpi::all().into_iter().map(|mpi| (mpi, mpi.ranks_max().min(4))) {
        let dir = tempfile::tempdir().unwrap();
        let sources = [source("c/signals.c"), installed_source("standfast_mpi.c")];
        let program = compile(mpi, &sources, &["-D_POSIX_C_SOURCE=200809L"], dir.path());
        for level in ["funneled", "multiple"] {
            let _alone = alone();
            run(mpi.launch(ranks, &program).arg(dir.path().join(level)).arg(level));
        }
    }
}
