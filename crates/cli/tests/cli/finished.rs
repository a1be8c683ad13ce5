//! `run`, a program that has come to its end, and one that is given something else.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::leave::{STEPS, number};
use crate::run::{checkpoints, finish, standfast};

/// What the program of `leave` said and what `run` remarked.
fn run(dir: &Path, options: &[&str], steps: &str, before: &[&str]) -> (i32, String, String) {
    let mut command = standfast(dir);
    command.args(["--interval", "10ms"]).args(options).arg("--").args(before);
    command.arg(std::env::current_exe().unwrap());
    command.args(["leave::program", "--exact", "--nocapture"]).env(STEPS, steps);
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

fn ls(dir: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_standfast"));
    command.current_dir(dir).args(["--store", "store", "--job", "test", "ls"]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn a_program_that_ended_well_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let failing = ["sh", "-c", "\"$@\"; exit 3", "sh"];
    let (code, said, remarks) = run(dir, &[], "60", &failing);
    assert_eq!((code, number(&said, "from")), (3, 0), "{remarks}");
    assert!(checkpoints(dir) > 0 && !ls(dir).contains("finished"));
    let (code, said, remarks) = run(dir, &[], "120", &[]);
    assert_eq!((code, number(&said, "done")), (0, 120), "{remarks}");
    assert!(number(&said, "from") > 0, "it had failed: {said}");
    assert!(ls(dir).contains("finished"), "{}", ls(dir));

    let (_, said, remarks) = run(dir, &["--restart", "force"], "120", &failing);
    assert!(number(&said, "from") > 60, "{said}{remarks}");
    let (_, said, _) = run(dir, &[], "120", &[]);
    assert!(number(&said, "from") > 60, "who was forced and failed goes on: {said}");
    let (_, said, remarks) = run(dir, &[], "60", &failing);
    assert_eq!(number(&said, "from"), 0, "{remarks}");
    assert!(remarks.contains("begins anew: it has finished"), "{remarks}");
    let (_, said, remarks) = run(dir, &["--restart", "never"], "60", &[]);
    assert_eq!(number(&said, "from"), 0, "{remarks}");
    let (code, _, remarks) = run(dir, &["--restart", "9999"], "60", &[]);
    assert_ne!(code, 0);
    assert!(remarks.contains("9999"), "{remarks}");
}

#[test]
fn from_is_told_to_be_restart() {
    let dir = tempfile::tempdir().unwrap();
    let output = standfast(dir.path()).args(["--from", "never", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the word is --restart"));
}

/// Adds up to its argument, a step each 5 ms, and says where it began.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
const SUM: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    long sum = 0;
    puts("begin"); fflush(stdout);
    for (long i = 1; i <= atol(argv[1]); i++) { sum += i; usleep(5000); }
    printf("sum %ld\n", sum);
    return argc > 2;
}
"#;

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn a_preloaded_program_is_asked_for_its_arguments_and_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("sum.c"), SUM).unwrap();
    let built = Command::new("cc").args(["sum.c", "-o", "sum"]).current_dir(dir).status();
    assert!(built.unwrap().success());
    let preload = |options: &[&str], arguments: &[&str]| {
        let mut command = standfast(dir);
        command.args(["--preload", "--interval", "100ms", "--library"]).arg(crate::run::library());
        command.args(options).args(["--", "./sum"]).args(arguments);
        finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let (code, _, remarks) = preload(&[], &["150", "fails"]);
    assert_eq!(code, 1, "{remarks}");
    assert!(checkpoints(dir) > 0);
    let (code, said, remarks) = preload(&[], &["10"]);
    assert_eq!((code, said.as_str()), (18, ""), "{remarks}");
    assert!(remarks.contains("arguments: 150 fails then, 10 now"), "{remarks}");
    assert!(remarks.contains("--restart never"), "{remarks}");
    let (code, said, remarks) = preload(&[], &["150", "fails"]);
    assert_eq!((code, said.as_str()), (1, "sum 11325\n"), "the same goes on: {remarks}");

    let (code, said, remarks) = preload(&["--restart", "never"], &["150"]);
    assert_eq!((code, said.as_str()), (0, "begin\nsum 11325\n"), "{remarks}");
    assert!(ls(dir).contains("finished"), "{}", ls(dir));
    let (code, said, remarks) = preload(&[], &["10"]);
    assert_eq!((code, said.as_str()), (0, "begin\nsum 55\n"), "another job is another one");
    assert!(remarks.contains("begins anew: it has finished"), "{remarks}");
    let (code, said, remarks) = preload(&["--restart", "force"], &["10"]);
    assert_eq!((code, said.as_str()), (0, "sum 11325\n"), "in spite of all: {remarks}");
}
