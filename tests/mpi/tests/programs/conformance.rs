//! The suite of every `Comm`, over real MPIs: all thread levels, parts of the world, pieces.

use std::path::Path;

use crate::installed::run;
use crate::mpi::{Mpi, alone, compile, installed_source, source};

/// Compiles the suite's program, with pieces of other than the usual length if given.
fn program(mpi: Mpi, piece_bytes: Option<u32>, into: &Path) -> std::path::PathBuf {
    let option = piece_bytes.map(|bytes| format!("-DSF_MPI_PIECE_BYTES={bytes}"));
    let options: Vec<&str> = option.iter().map(String::as_str).collect();
    let sources = [source("c/conformance.c"), installed_source("standfast_mpi.c")];
    compile(mpi, &sources, &options, into)
}

fn conforms(mpi: Mpi, piece_bytes: Option<u32>, runs: &[(usize, &str)]) {
    let dir = tempfile::tempdir().unwrap();
    let program = program(mpi, piece_bytes, dir.path());
    for (ranks, level) in runs.iter().filter(|(ranks, _)| *ranks <= mpi.ranks_max()) {
        let _alone = alone();
        let output = run(mpi.launch(*ranks, &program).arg(level));
        let text = String::from_utf8_lossy(&output.stdout);
        let expected =
            if *level == "multiple" { "conforms in all threads\n" } else { "conforms\n" };
        assert_eq!(text, expected, "{mpi:?}, {ranks} ranks, {level}");
    }
}

#[test]
fn one_thread_talks() {
    for mpi in Mpi::all() {
        let runs = [(1, "single"), (2, "funneled"), (3, "serialized"), (7, "funneled")];
        conforms(mpi, None, &runs);
    }
}

#[test]
fn all_threads_talk() {
    for mpi in Mpi::all() {
        let runs = [(1, "multiple"), (2, "multiple"), (4, "multiple"), (5, "multiple")];
        conforms(mpi, None, &runs);
    }
}

/// Every message of more than a few pages goes in pieces, and all-to-all in pairs.
#[test]
fn long_messages_go_in_pieces() {
    for mpi in Mpi::all() {
        conforms(mpi, Some(5000), &[(1, "funneled"), (3, "multiple")]);
    }
}

#[test]
fn a_communicator_of_fortran_is_one_like_any_other() {
    for mpi in Mpi::all() {
        let dir = tempfile::tempdir().unwrap();
        let sources = [
            source("fortran/conformance.f90"),
            source("c/conform_f.c"),
            installed_source("standfast_mpi.c"),
        ];
        let program = compile(mpi, &sources, &[], dir.path());
        let _alone = alone();
        let output = run(&mut mpi.launch(3, &program));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "conforms");
    }
}

/// Needs 12 GiB of memory and some seconds.
#[test]
#[ignore = "takes much memory: cargo test -p mpi-programs -- --ignored"]
fn a_message_longer_than_any_int() {
    for mpi in Mpi::all() {
        let dir = tempfile::tempdir().unwrap();
        let program = program(mpi, None, dir.path());
        let _alone = alone();
        let bytes = (i32::MAX as u64 + 12345).to_string();
        run(mpi.launch(2, &program).args(["funneled", &bytes]));
    }
}
