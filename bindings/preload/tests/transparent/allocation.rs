//! Every function of the family, from several threads, with what C promises of each.

use std::process::Command;

use crate::program::{compile, library};

#[test]
fn the_family_of_malloc_keeps_its_promises() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("family");
    compile("family.c", &path, &[]).unwrap();
    let output = Command::new(&path).env("LD_PRELOAD", library()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

#[test]
fn a_program_started_by_hand_runs_without_checkpoints_and_is_told() {
    let output = Command::new("/bin/echo")
        .arg("hello")
        .env("LD_PRELOAD", library())
        .env(standfast_launch::SETTINGS, "job=x\n")
        .env(standfast_launch::SIGNAL, "10")
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"hello\n");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("runs without checkpoints"), "{text}");
}
