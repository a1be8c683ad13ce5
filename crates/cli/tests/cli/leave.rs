//! `run` and the end of programs: asked for a checkpoint through whatever is in between, saved before
//! they are ended, started again after pauses.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use standfast::Job;

use crate::run::{checkpoints, finish, standfast, until};

/// The environment variable that makes this test program the one that is run: how many steps it does.
pub(crate) const STEPS: &str = "STANDFAST_TEST_STEPS";
/// More than a test lasts.
pub(crate) const FOREVER: &str = "1000000";

/// Counts in protected memory, with a point after every step; 0 steps: opens its job and never comes
/// to a point.
#[test]
fn program() {
    let Ok(steps) = std::env::var(STEPS) else { return };
    let steps: u64 = steps.parse().unwrap();
    let job = Job::open(&[]).unwrap();
    let count = job.alloc::<u64>("count", 1).unwrap();
    job.restart().unwrap();
    println!("from {}", count.read()[0]);
    fs::write("ready", "").unwrap();
    while steps == 0 || count.read()[0] < steps {
        std::thread::sleep(Duration::from_millis(2));
        if steps > 0 {
            count.write()[0] += 1;
            job.point().unwrap();
        }
    }
    println!("done {}", count.read()[0]);
}

/// `run` with this program, and what comes before it.
fn run(dir: &Path, options: &[&str], steps: &str, before: &[&str]) -> Command {
    let mut command = standfast(dir);
    command.args(options).arg("--").args(before).arg(std::env::current_exe().unwrap());
    command.args(["leave::program", "--exact", "--nocapture"]).env(STEPS, steps);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn ready(dir: &Path) {
    until("it starts", || fs::remove_file(dir.join("ready")).is_ok().then_some(()));
}

/// The number behind a word of its output.
pub(crate) fn number(said: &str, word: &str) -> u64 {
    let line = said.lines().find_map(|line| line.trim().strip_prefix(word));
    line.unwrap_or_else(|| panic!("no {word} in {said}")).trim().parse().unwrap()
}

#[test]
fn a_program_that_shall_end_saves_its_state_first() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let child = run(dir, &["--retries", "5"], FOREVER, &[]).spawn().unwrap();
    ready(dir);
    assert_eq!(checkpoints(dir), 0, "nothing asks for one");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (code, _, remarks) = finish(child);
    assert_eq!(code, 128 + 15, "{remarks}");
    assert!(remarks.contains("the last checkpoint is durable"), "{remarks}");
    assert_eq!(checkpoints(dir), 1);

    let (_, said, _) = finish(run(dir, &[], "1", &[]).spawn().unwrap());
    let saved = number(&said, "from");
    assert!(saved > 0, "{said}");
    let goal = (saved + 5).to_string();
    // It has come to an end by now: who goes on from there says so.
    let force = ["--restart", "force"];
    let (code, said, remarks) = finish(run(dir, &force, &goal, &[]).spawn().unwrap());
    assert_eq!((code, number(&said, "done")), (0, saved + 5), "{remarks}");
    assert_eq!(number(&said, "from"), saved, "{remarks}");
}

#[test]
fn a_program_that_never_comes_to_a_point_is_ended_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let child = run(dir.path(), &["--grace", "1h"], "0", &[]).spawn().unwrap();
    ready(dir.path());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    // Who asks twice does not want to wait.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (code, _, remarks) = finish(child);
    assert_eq!(code, 128 + 15, "{remarks}");

    let child = run(dir.path(), &["--grace", "200ms"], "0", &[]).spawn().unwrap();
    ready(dir.path());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (code, _, remarks) = finish(child);
    assert_eq!(code, 128 + 15, "{remarks}");
    assert!(remarks.contains("the grace period is over"), "{remarks}");
}

#[test]
fn a_request_reaches_the_program_through_a_shell() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // The shell neither handles nor passes on anything: a signal would end it.
    let child = run(dir, &[], "1500", &["sh", "-c", "\"$@\"; exit $?", "sh"]).spawn().unwrap();
    ready(dir);
    kill_process(Pid::from_child(&child), Signal::USR1).unwrap();
    until("a checkpoint", || (checkpoints(dir) == 1).then_some(()));
    let (code, said, remarks) = finish(child);
    assert_eq!((code, number(&said, "done")), (0, 1500), "{remarks}");
    assert_eq!(checkpoints(dir), 1, "once");
}

#[test]
fn new_starts_wait_longer_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = standfast(dir.path());
    command.args(["--retries", "2", "--backoff", "200ms", "--", "sh", "-c", "exit 4"]);
    let began = Instant::now();
    let output = command.output().unwrap();
    assert!(began.elapsed() >= Duration::from_millis(600), "200 ms, then 400 ms");
    assert_eq!(output.status.code(), Some(4));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("in 0.2 s; 2 of") && text.contains("in 0.4 s; 1 of"), "{text}");
}

#[test]
fn a_pause_can_be_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = standfast(dir.path());
    let script = "touch ready; exit 6";
    command.args(["--retries", "1", "--backoff", "1h", "--", "sh", "-c", script]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    ready(dir.path());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (code, _, remarks) = finish(child);
    // It came while the program ran, or in the pause: either way it is over.
    assert!([6, 128 + 15].contains(&code), "{code}: {remarks}");
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn a_preloaded_program_is_saved_before_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    crate::run::compile_list(dir);
    let answer = crate::run::answer_of_list(dir);
    let library = crate::run::library();
    let start = || {
        let mut command = standfast(dir);
        command.arg("--preload").arg("--library").arg(&library);
        command
            .args(["--", "./list", crate::run::LIST_STEPS])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let child = start();
    let run = child.id();
    let listens = || {
        let list = crate::run::child_of(run, "list")?;
        let status = fs::read_to_string(format!("/proc/{}/status", list.as_raw_nonzero())).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let mask = u64::from_str_radix(caught.trim(), 16).ok()?;
        (mask >> (Signal::USR1.as_raw() - 1) & 1 == 1).then_some(())
    };
    until("it carries the library", listens);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (code, said, remarks) = finish(child);
    assert_eq!(code, 128 + 15, "{remarks}");
    assert!(remarks.contains("the last checkpoint is durable"), "{remarks}");
    assert!(!said.contains("answer"), "{said}");

    crate::run::let_list_go(dir);
    let (code, said, remarks) = finish(start());
    assert_eq!(code, 7, "{remarks}");
    assert!(remarks.contains("goes on from checkpoint"), "{remarks}");
    assert_eq!(crate::run::last_line(&said), answer);
}
