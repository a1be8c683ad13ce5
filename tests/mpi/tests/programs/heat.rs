//! The heat solvers on several ranks, in C and Fortran: killed in mid-run, their answer is the same,
//! and each can go on where the other was killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::installed::{prefix, repository, run};
use crate::mpi::{Mpi, alone};

/// Enough work for a kill to fall into the middle of it, even on a fast machine.
const SETTINGS: [&str; 3] = ["120", "3000", "20"];

/// The solvers wait inside MPI, and MPICH then leaves no time to more ranks than processors.
fn ranks(mpi: Mpi) -> usize {
    match mpi {
        Mpi::Open => 3,
        Mpi::Mpich => 2,
    }
}

/// Builds the example of a language as its reader does, with make and pkg-config, in a copy.
fn build(mpi: Mpi, language: &str, into: &Path) -> PathBuf {
    let (sources, copy) = (repository("examples/heat").join(language), into.join(language));
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(sources).unwrap() {
        let file = file.unwrap();
        let name = file.file_name();
        if name == "Makefile" || name.to_string_lossy().starts_with("heat_") {
            std::fs::copy(file.path(), copy.join(name)).unwrap();
        }
    }
    let mut make = Command::new("make");
    make.current_dir(&copy).env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    for tool in ["mpicc", "mpifort"] {
        make.arg(format!("{}={}", if tool == "mpicc" { "MPICC" } else { "MPIFC" }, mpi.tool(tool)));
    }
    run(make.env("CFLAGS", "-O2 -Wall -Wextra -Werror").env("FFLAGS", "-O2 -Wall -Werror"));
    copy
}

/// Runs a solver in a directory of its own: there its store and its output are.
fn solver(mpi: Mpi, program: &Path, dir: &Path) -> Command {
    let mut command = mpi.launch(ranks(mpi), program);
    command.args(SETTINGS).arg("out.bin").current_dir(dir);
    command.env("STANDFAST_JOB", "heat");
    command
}

fn committed(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("standfast-store/heat/manifests")).map_or(0, |entries| {
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.ends_with(".local")).count()
    })
}

/// Processes started by a process, and by those, as the kernel lists them.
fn descendants(of: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children"));
    let children: Vec<u32> =
        children.unwrap_or_default().split_whitespace().flat_map(str::parse).collect();
    let below = children.iter().flat_map(|child| descendants(*child));
    children.iter().copied().chain(below).collect()
}

/// The ranks below a launcher.
fn running(launcher: &Child) -> Vec<u32> {
    let is_rank = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|path| path.file_name().is_some_and(|name| name == "heat_after"))
    };
    descendants(launcher.id()).into_iter().filter(is_rank).collect()
}

/// Kills one rank once so many checkpoints are there; the launcher then ends the others.
fn kill_after(mpi: Mpi, mut launcher: Child, dir: &Path, checkpoints: usize) {
    let patience = Instant::now() + Duration::from_secs(120);
    while committed(dir) < checkpoints {
        assert!(Instant::now() < patience, "no checkpoint was made");
        assert!(launcher.try_wait().unwrap().is_none(), "it was to die in mid-run");
        std::thread::sleep(Duration::from_millis(2));
    }
    let running = running(&launcher);
    assert_eq!(running.len(), ranks(mpi), "all ranks are running");
    let victim = Pid::from_raw(running[checkpoints % running.len()] as i32).unwrap();
    kill_process(victim, Signal::KILL).unwrap();
    let status = launcher.wait().unwrap();
    assert!(!status.success(), "a rank has died: {status}");
    assert!(!dir.join("out.bin").exists(), "it died before its end");
}

/// Kills run after run; the last one is not disturbed and gives the answer.
fn answer_after_kills(mpi: Mpi, programs: &[PathBuf], dir: &Path) -> Vec<u8> {
    let (last, killed) = programs.split_last().unwrap();
    for (at, program) in killed.iter().enumerate() {
        let mut command = solver(mpi, program, dir);
        command.stdout(Stdio::null()).stderr(Stdio::null()).env("STANDFAST_INTERVAL", "5ms");
        let _alone = alone();
        kill_after(mpi, command.spawn().unwrap(), dir, 2 + 3 * at);
    }
    let _alone = alone();
    let output = run(&mut solver(mpi, last, dir));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("goes on from step "), "{text}");
    std::fs::read(dir.join("out.bin")).unwrap()
}

fn reference(mpi: Mpi, program: &Path, dir: &Path) -> Vec<u8> {
    let _alone = alone();
    run(&mut solver(mpi, program, dir));
    std::fs::read(dir.join("out.bin")).unwrap()
}

#[test]
fn the_answer_survives_the_death_of_ranks() {
    for mpi in Mpi::all() {
        let dir = tempfile::tempdir().unwrap();
        let (c, fortran) = (build(mpi, "c-mpi", dir.path()), build(mpi, "fortran", dir.path()));
        let expected = reference(mpi, &c.join("heat_before"), &c);
        assert!(expected == reference(mpi, &fortran.join("heat_before"), &fortran), "as in C");

        let shared = dir.path().join("shared");
        std::fs::create_dir(&shared).unwrap();
        let (c, fortran) = (c.join("heat_after"), fortran.join("heat_after"));
        let answer = answer_after_kills(mpi, &[c.clone(), fortran, c], &shared);
        assert!(answer == expected, "{mpi:?}: bit by bit the answer of an undisturbed run");
    }
}
