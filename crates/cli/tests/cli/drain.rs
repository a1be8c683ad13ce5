//! `drain` and `fetch`: real processes, really killed, and the job restarts from what arrived.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use standfast::{Job, Level, Version};

const WORDS: usize = 256 << 10;

fn standfast(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("standfast"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STANDFAST_")) {
        command.env_remove(name);
    }
    command.current_dir(dir).args(["--job", "test"]).args(args);
    command
}

fn run(dir: &Path, args: &[&str]) -> Output {
    standfast(dir, args).output().unwrap()
}

#[track_caller]
fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A state that changes with the version and compresses badly.
fn state(version: u64) -> Vec<u64> {
    let mut random = 1;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    (0..WORDS).map(|at| if at < WORDS / 2 { next() } else { version }).collect()
}

fn checkpoints(store: &Path, versions: std::ops::RangeInclusive<u64>) {
    let job = open(store);
    let mut memory = vec![0u64; WORDS];
    // SAFETY: the memory outlives the job and is not touched while a checkpoint is taken.
    unsafe { job.protect("state", memory.as_mut_ptr().cast(), 8 * WORDS, 8) }.unwrap();
    for version in versions {
        memory.copy_from_slice(&state(version));
        job.checkpoint(Some(Version(version))).unwrap();
        job.wait(Version(version), Level::Local).unwrap();
    }
    job.close().unwrap();
}

fn open(store: &Path) -> Job {
    Job::open(&[("store", store.to_str().unwrap()), ("job", "test"), ("keep", "all")]).unwrap()
}

fn restarts_from(store: &Path) -> u64 {
    let job = open(store);
    let mut memory = vec![0u64; WORDS];
    // SAFETY: as above.
    unsafe { job.protect("state", memory.as_mut_ptr().cast(), 8 * WORDS, 8) }.unwrap();
    let version = job.restart().unwrap().unwrap().version.0;
    assert!(memory == state(version));
    version
}

#[test]
fn a_drained_job_restarts_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    checkpoints(&dir.path().join("local"), 1..=3);
    let drain = ["--store", "local", "drain", "--to", "global"];
    let text = good(&run(dir.path(), &drain));
    assert!(text.contains("drained  checkpoint 3"), "{text}");
    assert!(good(&run(dir.path(), &drain)).contains("nothing to drain"));
    let text = good(&run(dir.path(), &["--store", "global", "--json", "ls"]));
    assert!(text.contains(r#""level":"global""#), "{text}");
    good(&run(dir.path(), &["--store", "global", "verify"]));
    let text = good(&run(dir.path(), &["--store", "other", "fetch", "--from", "global"]));
    assert!(text.contains("fetched  checkpoint 3"), "{text}");
    assert_eq!(restarts_from(&dir.path().join("other")), 3);
}

#[test]
fn every_checkpoint_goes_if_asked_and_the_global_store_can_be_pruned() {
    let dir = tempfile::tempdir().unwrap();
    checkpoints(&dir.path().join("local"), 1..=4);
    good(&run(dir.path(), &["--store", "local", "drain", "--to", "global", "--every", "1"]));
    good(&run(dir.path(), &["--store", "global", "prune", "--keep", "2", "--yes"]));
    good(&run(dir.path(), &["--store", "global", "verify"]));
    let manifests = std::fs::read_dir(dir.path().join("global/test/manifests")).unwrap();
    assert_eq!(manifests.count(), 3, "two, and a copy of the header");
    assert_eq!(restarts_from(&dir.path().join("global")), 4);
}

#[test]
fn killed_drains_never_leave_a_broken_checkpoint_and_complete_in_the_end() {
    let dir = tempfile::tempdir().unwrap();
    checkpoints(&dir.path().join("local"), 1..=2);
    let slow = ["--store", "local", "drain", "--to", "global", "--rate", "3MB/s"];
    for life in 0..6 {
        let mut drain = standfast(dir.path(), &slow)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(20 + 40 * life));
        drain.kill().unwrap();
        drain.wait().unwrap();
        if dir.path().join("global/test/store").exists() {
            good(&run(dir.path(), &["--store", "global", "verify"]));
        }
    }
    let text = good(&run(dir.path(), &["--store", "local", "drain", "--to", "global"]));
    assert!(text.contains("checkpoint 2") || text.contains("nothing to drain"), "{text}");
    good(&run(dir.path(), &["--store", "global", "verify"]));
    assert_eq!(restarts_from(&dir.path().join("global")), 2);
}

#[test]
fn a_drain_that_is_late_says_so_and_another_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    checkpoints(&dir.path().join("local"), 1..=1);
    let late = ["--store", "local", "drain", "--to", "global", "--rate", "100kB/s"];
    let output = run(dir.path(), &[&late[..], &["--deadline", "300ms"]].concat());
    assert_eq!(output.status.code(), Some(standfast::Kind::Transient.exit_code()));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("no checkpoint has arrived"), "{text}");
    good(&run(dir.path(), &["--store", "local", "drain", "--to", "global"]));
    assert_eq!(restarts_from(&dir.path().join("global")), 1);
}

#[test]
fn a_following_drain_takes_what_comes_and_ends_when_told() {
    let dir = tempfile::tempdir().unwrap();
    checkpoints(&dir.path().join("local"), 1..=1);
    let follow = ["--store", "local", "--json", "drain", "--to", "global", "--follow"];
    let drain = standfast(dir.path(), &follow).stdout(Stdio::piped()).spawn().unwrap();
    let arrived = |version: u64| {
        let manifest = dir.path().join(format!("global/test/manifests/v{version:010}.global"));
        let end = std::time::Instant::now() + Duration::from_secs(60);
        while !manifest.exists() {
            assert!(std::time::Instant::now() < end, "checkpoint {version} does not arrive");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    arrived(1);
    checkpoints(&dir.path().join("local"), 2..=2);
    arrived(2);
    let pid = rustix::process::Pid::from_raw(drain.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let text = good(&drain.wait_with_output().unwrap());
    assert_eq!(text.matches(r#""type":"drained""#).count(), 2, "{text}");
}

#[test]
fn another_job_of_that_name_is_not_mixed_up() {
    let dir = tempfile::tempdir().unwrap();
    checkpoints(&dir.path().join("one"), 1..=1);
    checkpoints(&dir.path().join("two"), 1..=1);
    good(&run(dir.path(), &["--store", "one", "drain", "--to", "global"]));
    let output = run(dir.path(), &["--store", "two", "drain", "--to", "global"]);
    assert_eq!(output.status.code(), Some(standfast::Kind::Invalid.exit_code()));
    assert!(String::from_utf8(output.stderr).unwrap().contains("another job"));
}
