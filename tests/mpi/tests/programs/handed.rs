//! What `sf_init_comm` does with what it is handed.

use crate::installed::run;
use crate::mpi::{Mpi, alone, compile, installed_source, source};

#[test]
fn what_cannot_be_used_is_refused_on_all_ranks() {
    for mpi in Mpi::all() {
        let dir = tempfile::tempdir().unwrap();
        let sources = [source("c/handed.c"), installed_source("standfast_mpi.c")];
        let options = ["-D_POSIX_C_SOURCE=200809L"];
        let program = compile(mpi, &sources, &options, dir.path());
        for ranks in [1, 3] {
            let _alone = alone();
            let store = dir.path().join(format!("store-{ranks}"));
            run(mpi.launch(ranks, &program).arg(store));
        }
    }
}
