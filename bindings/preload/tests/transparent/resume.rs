//! By signal, several times over; one thread and several.

use crate::program::{CODE, Program};

/// Enough for the kill to fall into the middle, on any machine.
const STEPS: &str = "400";

fn survives_two_kills(source: &str, args: &[&str]) {
    let Some(program) = Program::build(source, args) else { return };
    let answer = program.answer();

    let mut first = program.start();
    first.hear("step 20");
    first.checkpoint_before("step 22");
    program.wait_for_checkpoints(1);
    first.kill();

    let mut second = program.resume();
    second.hear("step 60");
    second.checkpoint_before("step 62");
    program.wait_for_checkpoints(2);
    second.kill();

    let (said, code) = program.resume().finish();
    assert_eq!(code, Some(CODE), "{said:?}");
    assert_eq!(said.last(), Some(&answer));
    let first: u32 = said[0].strip_prefix("step ").expect("no second beginning").parse().unwrap();
    assert!(first >= 60, "it goes on where it was: {first}");
    let steps: Vec<String> = (first..400).map(|step| format!("step {step}")).collect();
    assert_eq!(said[..said.len() - 1], steps, "each step once");
}

#[test]
fn a_c_program() {
    survives_two_kills("list.c", &[STEPS]);
}

#[test]
fn a_program_that_watches_itself() {
    survives_two_kills("list.c", &[STEPS, "/proc/self/statm"]);
}

/// So many that the file which hands the program its memory has a number of theirs.
#[test]
fn a_program_with_many_open_files() {
    survives_two_kills("list.c", &[STEPS, "/proc/self/statm", "200"]);
}

#[test]
fn a_cxx_program() {
    survives_two_kills("map.cpp", &[STEPS]);
}

#[test]
fn a_fortran_program_with_an_open_file() {
    survives_two_kills("field.f90", &[STEPS, "history.txt"]);
}

#[test]
fn a_program_with_threads() {
    survives_two_kills("threads.c", &[STEPS]);
}

#[test]
fn a_checkpoint_outlives_the_program_that_it_is_taken_of() {
    let program = Program::build("list.c", &[STEPS]).unwrap();
    let mut running = program.start();
    running.hear("step 20");
    running.checkpoint_before("step 22");
    running.kill();
    // Whether the twin was done by then or not: it finishes what it has.
    program.wait_for_checkpoints(1);
    let (said, _) = program.resume().finish();
    assert_eq!(said.last(), Some(&program.answer()));
}
