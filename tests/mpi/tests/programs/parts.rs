//! Jobs of some ranks of a program, several at a time.

use crate::installed::run;
use crate::mpi::{Mpi, alone, compile, installed_source, source};

#[test]
fn parts_of_a_program_have_jobs_of_their_own() {
    for (mpi, ranks) in Mpi::all().into_iter().map(|mpi| (mpi, mpi.ranks_max().min(6))) {
        let dir = tempfile::tempdir().unwrap();
        let sources = [source("c/parts.c"), installed_source("standfast_mpi.c")];
        let program = compile(mpi, &sources, &["-D_POSIX_C_SOURCE=200809L"], dir.path());
        // What one thread level has written, the other reads.
        for (write, read) in [("funneled", "multiple"), ("multiple", "funneled")] {
            let store = dir.path().join(write);
            for (mode, level) in [("write", write), ("read", read)] {
                let _alone = alone();
                run(mpi.launch(ranks, &program).arg(mode).arg(&store).arg(level));
            }
        }
    }
}
