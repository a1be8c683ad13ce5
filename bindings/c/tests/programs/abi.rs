//! The programs of `tests/c`, as C99 and as C++, against the shared and the static library.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use standfast::{Job, Level, Version};

use crate::installed::{package, prefix, run};

const SIGKILL: i32 = 9;
const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"];

#[derive(Clone, Copy, PartialEq)]
enum Language {
    C,
    Cxx,
}

impl Language {
    fn compiler(self) -> Command {
        let (variable, usual) = match self {
            Language::C => ("CC", "cc"),
            Language::Cxx => ("CXX", "c++"),
        };
        Command::new(std::env::var(variable).unwrap_or_else(|_| usual.into()))
    }

    /// C must be there; C++ may be.
    fn is_there(self) -> bool {
        self == Language::C || self.compiler().arg("--version").output().is_ok()
    }

    fn options(self) -> [&'static str; 3] {
        match self {
            Language::C => ["-std=c99", "-x", "c"],
            Language::Cxx => ["-std=c++11", "-x", "c++"],
        }
    }
}

/// What programs that link the static library must link besides, as the pkg-config file says.
fn private_libraries() -> Vec<String> {
    let file = std::fs::read_to_string(prefix().join("lib/pkgconfig/standfast.pc")).unwrap();
    let line = file.lines().find_map(|line| line.strip_prefix("Libs.private:")).unwrap();
    line.split_whitespace().map(String::from).collect()
}

fn compile(name: &str, language: Language, is_static: bool, into: &Path) -> PathBuf {
    let program = into.join(format!("{name}-{}-{is_static}", language as u8));
    let mut command = language.compiler();
    command.args(WARNINGS).args(language.options()).arg("-D_POSIX_C_SOURCE=200809L");
    command.arg("-I").arg(prefix().join("include"));
    command.arg(package().join(format!("tests/c/{name}.c"))).args(["-x", "none", "-pthread"]);
    let lib = prefix().join("lib");
    if is_static {
        command.arg(lib.join("libstandfast.a")).args(private_libraries());
    } else {
        let search = format!("-Wl,-rpath,{}", lib.display());
        command.arg("-L").arg(&lib).arg(search).arg("-lstandfast");
    }
    run(command.arg("-o").arg(&program));
    program
}

/// Every way to build a program, each in its own directory.
fn each_way(name: &str, test: impl Fn(&Path, &Path)) {
    for (language, is_static) in [(Language::C, false), (Language::C, true), (Language::Cxx, false)]
    {
        if language.is_there() {
            let dir = tempfile::tempdir().unwrap();
            let program = compile(name, language, is_static, dir.path());
            test(&program, &dir.path().join("store"));
        }
    }
}

fn runs_well(name: &str) {
    each_way(name, |program, store| {
        run(Command::new(program).arg(store));
    });
}

#[test]
fn wrong_arguments_get_their_code_and_text() {
    runs_well("arguments");
}

#[test]
fn failures_of_the_machine_lose_nothing() {
    runs_well("failures");
}

#[test]
fn lists_levels_and_small_buffers() {
    runs_well("lists");
}

#[test]
fn allocations_come_and_go_and_come_back() {
    runs_well("alloc");
}

#[test]
fn a_signal_asks_for_a_checkpoint_at_the_next_point() {
    runs_well("signals");
}

#[test]
fn a_finished_job_another_input_and_memory_that_went_away_are_told() {
    runs_well("finished");
}

#[test]
fn threads_share_a_job() {
    runs_well("threads");
}

#[test]
fn a_killed_process_leaves_its_checkpoints_to_the_next() {
    each_way("round_trip", |program, store| {
        let killed = Command::new(program).arg("write").arg(store).output().unwrap();
        let text = String::from_utf8_lossy(&killed.stderr);
        assert_eq!(killed.status.signal(), Some(SIGKILL), "{text}");
        read_in_rust(store);
        run(Command::new(program).arg("read").arg(store));
    });
}

/// Checkpoints belong to no language.
fn read_in_rust(store: &Path) {
    let job = Job::open(&[("store", store.to_str().unwrap()), ("job", "test")]).unwrap();
    let step = job.alloc::<u64>("Schritt ä", 1).unwrap();
    let restarted = job.restart().unwrap().unwrap();
    assert_eq!((restarted.version, step.read()[0]), (Version(30), 3));
    assert_eq!(restarted.unclaimed.len(), 3);
    job.wait(Version(30), Level::Local).unwrap();
    job.close().unwrap();
}
