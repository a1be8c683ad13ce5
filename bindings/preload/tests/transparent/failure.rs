//! Checkpoints that cannot be written: the program goes on and is told why there is none.

use std::process::Stdio;

use crate::program::{CODE, Program};

/// Runs a program to its end; what it said on stderr, and its exit code.
fn complaints(program: &Program) -> (String, Option<i32>) {
    let mut command = program.command();
    command.stderr(Stdio::piped());
    let child = program.launch().spawn(command, None).unwrap();
    let output = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

#[test]
fn a_store_that_cannot_be_opened_is_named() {
    let program = Program::build("failing.c", &[]).unwrap();
    std::fs::write(program.dir.path().join("store"), "no directory").unwrap();
    let (said, code) = complaints(&program);
    assert_eq!(code, Some(CODE), "{said}");
    let line = said.lines().find(|line| line.starts_with("standfast: no checkpoint: "));
    let line = line.unwrap_or_else(|| panic!("nothing is told: {said:?}"));
    assert!(line.contains("store/test") && line.contains("the program goes on"), "{line}");
}

#[test]
fn a_store_that_another_process_has_open_is_busy() {
    let program = Program::build("failing.c", &[]).unwrap();
    let _job = standfast::Job::open_loaded(program.loaded()).unwrap();
    let (said, code) = complaints(&program);
    assert_eq!(code, Some(CODE), "{said}");
    assert!(said.contains("no checkpoint: ") && said.contains("is in use"), "{said}");
}

#[test]
fn memory_shared_with_others_is_named() {
    let program = Program::build_with("failing.c", &[], &["-DSHARED"]).unwrap();
    let (said, code) = complaints(&program);
    assert_eq!(code, Some(CODE), "{said}");
    assert!(said.contains("no checkpoint: the program shares memory with others"), "{said}");
}

#[test]
fn more_files_than_can_come_back_are_told() {
    let program = Program::build_with("failing.c", &[], &["-DFILES=1025"]).unwrap();
    let (said, code) = complaints(&program);
    assert_eq!(code, Some(CODE), "{said}");
    assert!(said.contains("no checkpoint: the program has more than 1024 files open"), "{said}");
    let enough = Program::build_with("failing.c", &[], &["-DFILES=1020"]).unwrap();
    let (said, _) = complaints(&enough);
    assert_eq!(said, "", "so many fit");
}
