//! The demonstration: a real kill, the same answer, and nothing left behind.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::fixture::run;

const SMALL: [&str; 7] = ["demo", "--size", "192", "--steps", "500", "--every", "50"];

#[test]
fn the_answer_is_identical_and_nothing_is_left() {
    let (dir, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = Command::new(assert_cmd::cargo::cargo_bin("standfast"))
        .args(SMALL)
        .current_dir(dir.path())
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for words in ["SIGKILL at step", "goes on from checkpoint", "identical: all 294912 bytes"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn json_tells_the_same_story_and_a_given_store_stays() {
    let dir = tempfile::tempdir().unwrap();
    let ran = run(dir.path(), &[&SMALL as &[&str], &["--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let killed = &ran.of("killed")[0];
    assert_eq!(killed["signal"], 9);
    assert!(killed["checkpoints"].as_u64().unwrap() >= 2);
    let restarted = &ran.of("restarted")[0];
    assert!(restarted["step"].as_u64() <= killed["step"].as_u64());
    let compared = &ran.of("compared")[0];
    assert_eq!(compared["identical"], true);
    assert_eq!(compared["digest"], compared["digest_undisturbed"]);
    assert_eq!(ran.of("totals")[0]["checkpoints"], 10);
    assert_eq!(run(dir.path(), &["verify"]).code, 0);
    let again = run(dir.path(), &SMALL);
    assert_eq!(again.code, 18, "checkpoints of somebody else's run are left alone");
}

#[test]
fn an_interrupt_ends_it_and_cleans_up() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("standfast"))
        .args(["demo", "--size", "256", "--steps", "100000", "--every", "10"])
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().starts_with("1 ")).unwrap().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}
