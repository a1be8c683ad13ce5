//! The solver is killed in mid-run and restarted; its answer is that of an undisturbed run.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BEFORE: &str = env!("CARGO_BIN_EXE_heat_before");
const AFTER: &str = env!("CARGO_BIN_EXE_heat_after");
/// Enough work for a kill to fall into the middle of it, even on a fast machine.
const SETTINGS: [&str; 3] = ["200", "3000", "50"];
const SIGKILL: i32 = 9;

fn solver(program: &str, store: &Path, output: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(SETTINGS).arg(output).stdout(Stdio::piped());
    command.env("STANDFAST_STORE", store).env("STANDFAST_JOB", "heat");
    command
}

fn start(program: &str, store: &Path, output: &Path) -> Child {
    let mut command = solver(program, store, output);
    command.env("STANDFAST_INTERVAL", "100ms").spawn().expect("the program starts")
}

/// What it printed, after it has ended well.
fn finish(child: Child) -> String {
    let ended = child.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{}", ended.status);
    String::from_utf8(ended.stdout).expect("text")
}

fn committed(store: &Path) -> usize {
    std::fs::read_dir(store.join("heat/manifests")).map_or(0, |entries| {
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.ends_with(".local")).count()
    })
}

fn kill_after(mut child: Child, store: &Path, checkpoints: usize) {
    let patience = Instant::now() + Duration::from_secs(120);
    while committed(store) < checkpoints {
        assert!(Instant::now() < patience, "no checkpoint was made");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("it can be killed");
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(SIGKILL), "it was to die in mid-run: {status}");
}

#[test]
fn the_answer_survives_two_kills() {
    let dir = tempfile::tempdir().unwrap();
    let (store, reference) = (dir.path().join("store"), dir.path().join("before.bin"));
    let output = dir.path().join("after.bin");
    finish(start(BEFORE, &store, &reference));
    assert!(!store.exists(), "the solver before knows no checkpoints");

    kill_after(start(AFTER, &store, &output), &store, 2);
    assert!(!output.exists(), "the first run died before its end");
    kill_after(start(AFTER, &store, &output), &store, 5);
    assert!(!output.exists(), "the second run died before its end");

    let text = finish(start(AFTER, &store, &output));
    assert!(text.starts_with("goes on from step "), "{text}");
    assert!(std::fs::read(&output).unwrap() == std::fs::read(&reference).unwrap());
}

#[test]
fn an_undisturbed_run_gives_the_same_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (dir.path().join("before.bin"), dir.path().join("after.bin"));
    let store = dir.path().join("store");
    let expected = finish(start(BEFORE, &store, &before));
    assert_eq!(finish(start(AFTER, &store, &after)), expected);
    assert!(std::fs::read(&after).unwrap() == std::fs::read(&before).unwrap());
}

#[test]
fn a_checkpoint_is_taken_when_somebody_asks() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let mut command = solver(AFTER, &store, &dir.path().join("after.bin"));
    let mut child = command.env("STANDFAST_SIGNAL", "USR1").spawn().unwrap();
    let mut first = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut first).unwrap();
    assert!(first.starts_with("step 50: "), "{first}");
    assert_eq!(committed(&store), 0, "nobody has asked");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-USR1", &pid]).status().unwrap().success());
    kill_after(child, &store, 1);
}
