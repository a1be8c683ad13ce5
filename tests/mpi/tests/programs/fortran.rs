//! The Fortran module: complete, with the numbers of the header, and working without MPI.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::installed::{prefix, repository, run};
use crate::mpi::{installed_source, source};
use standfast_testkit::must::or_leave_out;

fn header() -> String {
    std::fs::read_to_string(repository("bindings/c/include/standfast.h")).unwrap()
}

fn module() -> String {
    std::fs::read_to_string(repository("bindings/fortran/standfast.f90")).unwrap()
}

/// The words of a text, with what follows each of them.
fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts =
        text.char_indices().filter(move |(at, c)| is_part(*c) && !text[..*at].ends_with(is_part));
    starts.map(move |(at, _)| text[at..].split_at(text[at..].find(|c| !is_part(c)).unwrap_or(0)))
}

/// Functions that C programs call: a name right before a parenthesis, at the start of a line.
fn functions(header: &str) -> BTreeSet<&str> {
    let declares = |line: &&str| {
        let line = line.trim_start_matches("SF_API ").trim_start_matches("SF_CHECKED ");
        line.starts_with("int ") || line.starts_with("const ")
    };
    let lines = header.lines().filter(declares);
    lines
        .flat_map(words)
        .filter(|(word, rest)| word.starts_with("sf_") && rest.starts_with('('))
        .map(|(word, _)| word)
        .collect()
}

#[test]
fn every_function_of_the_library_can_be_called() {
    let (header, module) = (header(), module());
    let bound: BTreeSet<&str> = module
        .split("name=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .filter(|name| *name != "strlen")
        .collect();
    let mut expected = functions(&header);
    // Bytes are a type like any other there; tables of functions and addresses on devices are for C.
    let for_c = ["sf_init_transport", "sf_protect_device", "sf_protect_device_typed"];
    for other in ["sf_protect"].into_iter().chain(for_c) {
        assert!(expected.remove(other), "{other}");
    }
    assert_eq!(bound, expected);
}

/// Constants as `NAME = number`, or as the preprocessor has them.
fn constants(text: &str) -> BTreeMap<&str, i64> {
    let mut found = BTreeMap::new();
    for (word, rest) in words(text).filter(|(word, _)| word.starts_with("SF_")) {
        let rest = rest.trim_start_matches([' ', '=']);
        let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
        if let Ok(number) = rest[..end].parse() {
            found.insert(word, number);
        }
    }
    found
}

#[test]
fn constants_are_those_of_the_header() {
    let (header, module) = (header(), module());
    let mut expected = constants(&header);
    expected.retain(|name, _| !name.starts_with("SF_VERSION"));
    assert!(expected.len() > 30, "{expected:?}");
    assert_eq!(constants(&module), expected);
}

fn has_fortran() -> bool {
    or_leave_out("fortran", Command::new("gfortran").arg("--version").output()).is_some()
}

/// Compiles a program without MPI and runs it twice: one process writes, the other reads.
fn writes_and_reads(name: &str) {
    if !has_fortran() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (program, lib) = (dir.path().join("program"), prefix().join("lib"));
    let mut compile = Command::new("gfortran");
    compile.current_dir(&dir).args(["-std=f2018", "-Wall", "-Wextra", "-Werror", "-O2"]);
    // Restored numbers must be equal.
    compile.arg("-Wno-compare-reals").arg("-o");
    compile.arg(&program).arg(installed_source("standfast.f90")).arg(source(name));
    compile.arg("-L").arg(&lib).arg("-lstandfast").arg(format!("-Wl,-rpath,{}", lib.display()));
    run(&mut compile);
    for mode in ["write", "read"] {
        let output = run(Command::new(&program).arg(mode).arg(dir.path().join("store")));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "done");
    }
}

#[test]
fn a_program_without_mpi_uses_the_whole_module() {
    writes_and_reads("fortran/module.f90");
}

#[test]
fn allocations_come_back_as_they_had_grown_and_a_signal_asks() {
    writes_and_reads("fortran/grown.f90");
}

/// What the compiler must refuse, for it would be lost in registers.
#[test]
fn a_variable_without_target_is_refused() {
    if !has_fortran() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (attribute, accepted) in [("", false), (", target", true)] {
        let text = format!(
            "program p\nuse standfast\ntype(sf_job) :: job\ninteger{attribute} :: step\n\
             print *, sf_protect(job, 'step', step)\nend program\n"
        );
        let path = dir.path().join("p.f90");
        std::fs::write(&path, text).unwrap();
        let mut compile = Command::new("gfortran");
        compile.current_dir(&dir).arg("-c").arg(installed_source("standfast.f90")).arg(path);
        let output = compile.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), accepted, "{told}");
        assert_eq!(told.contains("no specific function"), !accepted, "{told}");
    }
}
