//! Checkpoints that a lazy restart found damaged: marked, read as a whole the next time, skipped
//! if the damage is real, and never counted among those that are kept.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use standfast::config::Loaded;
use standfast::{Job, Kind, Level, Restarted, Version, mark};
use standfast_comm::Comm;
use standfast_format::name;
use standfast_store::{DirStore, MemoryStore, Options, Store};
use standfast_testkit::run_threads;

const WORDS: usize = 1 << 18;
const STEPS: u64 = 4;

/// Every word depends on all steps before.
fn advance(words: &mut [u64], step: u64) {
    for (at, word) in words.iter_mut().enumerate() {
        *word = (*word ^ at as u64 ^ step << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7);
    }
}

fn settings(store: &Path) -> Vec<(String, String)> {
    let all = [("job", "test"), ("restart", "lazy"), ("keep", "2"), ("codec", "none")];
    let mut all: Vec<_> = all.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec();
    all.push(("store".into(), store.to_str().unwrap().into()));
    all
}

fn open(store: &Path) -> Job {
    let all = settings(store);
    let all: Vec<(&str, &str)> = all.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    Job::open(&all).unwrap()
}

/// A program that takes a checkpoint after every step, and dies after `last`.
fn program(store: &Path, last: u64) {
    let job = open(store);
    let words = job.alloc::<u64>("words", WORDS).unwrap();
    let step = job.alloc::<u64>("step", 1).unwrap();
    if let Some(restarted) = job.restart().unwrap() {
        println!("restarted {restarted:?}");
    }
    while step.read()[0] < STEPS {
        let next = step.read()[0] + 1;
        advance(&mut words.write(), next);
        step.write()[0] = next;
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
        let kept: Vec<u64> = job.list().iter().map(|manifest| manifest.version.0).collect();
        println!("step {next} kept {kept:?}");
        if next == last {
            std::process::abort();
        }
    }
    let mut expected = vec![0; WORDS];
    (1..=STEPS).for_each(|step| advance(&mut expected, step));
    assert!(words.read()[..] == expected[..], "not what an undisturbed run ends with");
    println!("ends as undisturbed");
}

const CASE: &str = "STANDFAST_TEST_MARKS";

fn launch(store: &Path, last: u64) -> (Output, String, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["the_program_of_these_tests", "--exact", "--nocapture"])
        .env(CASE, format!("{last} {}", store.display()))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

#[test]
fn the_program_of_these_tests() {
    let Ok(case) = std::env::var(CASE) else { return };
    let (last, store) = case.split_once(' ').unwrap();
    program(Path::new(store), last.parse().unwrap());
}

fn names(store: &Path, dir: &str) -> BTreeSet<PathBuf> {
    let Ok(entries) = std::fs::read_dir(store.join("test").join(dir)) else {
        return BTreeSet::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// A job of two checkpoints, and the segment that only the newer one needs.
fn two_checkpoints(store: &Path) -> PathBuf {
    launch(store, 1);
    let before = names(store, name::SEGMENTS);
    let (output, out, err) = launch(store, 2);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{out} {err}");
    let after = names(store, name::SEGMENTS);
    let mut new: Vec<PathBuf> = after.difference(&before).cloned().collect();
    assert_eq!(new.len(), 1, "{new:?}");
    new.remove(0)
}

fn flip(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_job_dies_once_of_a_damaged_page_and_goes_on_from_the_checkpoint_before() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path();
    flip(&two_checkpoints(store));
    let (output, out, err) = launch(store, 0);
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{out} {err}");
    for told in ["checkpoint 2 in", "of region \"words\"", "segments/", "it is marked"] {
        assert!(err.contains(told), "{told}: {err}");
    }
    let marks = names(store, name::MARKS);
    assert_eq!(marks.len(), 1, "{marks:?}");

    let (output, out, err) = launch(store, 0);
    assert!(output.status.success(), "{out} {err}");
    assert!(out.contains("restarted Restarted { version: Version(1)"), "{out}");
    assert!(out.contains("skipped: [(\"checkpoint 2\", "), "{out}");
    assert!(out.contains("a newer checkpoint is damaged"), "{out}");
    // The damaged one does not count: with keep=2 the good one stays until there are two others.
    assert!(out.contains("step 2 kept [3, 2, 1]"), "{out}");
    assert!(out.contains("step 3 kept [4, 3, 2]"), "{out}");
    assert!(out.contains("ends as undisturbed"), "{out}");
    assert_eq!(names(store, name::MARKS).len(), 1, "it is left behind, with its mark");
}

#[test]
fn a_marked_checkpoint_that_is_whole_again_is_used_and_loses_its_mark() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path();
    let segment = two_checkpoints(store);
    flip(&segment);
    let (output, ..) = launch(store, 0);
    assert_eq!(output.status.signal(), Some(libc::SIGBUS));
    flip(&segment);
    let (output, out, err) = launch(store, 0);
    assert!(output.status.success(), "{out} {err}");
    assert!(out.contains("restarted Restarted { version: Version(2)"), "{out}");
    assert!(out.contains("it is marked as damaged by an earlier lazy restart"), "{out}");
    assert!(out.contains("its mark is cleared"), "{out}");
    assert!(out.contains("ends as undisturbed"), "{out}");
    assert!(names(store, name::MARKS).is_empty());
}

#[test]
fn a_marked_checkpoint_that_is_asked_for_by_number_is_tried() {
    let dir = tempfile::tempdir().unwrap();
    let segment = two_checkpoints(dir.path());
    let job = open(dir.path());
    let words = job.alloc::<u64>("words", WORDS).unwrap();
    drop(job.alloc::<u64>("step", 1).unwrap());
    let attempt = job.list()[0].attempt;
    let raw = DirStore::open(dir.path().join("test"), &Options::default()).unwrap();
    mark::put(&raw, Version(2), attempt, "a test").unwrap();
    flip(&segment);
    assert_eq!(job.restart_from(Version(2)).unwrap_err().kind(), Kind::Corrupt);
    assert!(mark::find(&raw, Version(2), attempt).is_some());
    flip(&segment);
    assert_eq!(job.restart_from(Version(2)).unwrap().version, Version(2));
    assert!(mark::find(&raw, Version(2), attempt).is_none());
    let mut expected = vec![0; WORDS];
    (1..=2).for_each(|step| advance(&mut expected, step));
    assert!(words.read()[..] == expected[..]);
}

#[test]
fn all_ranks_are_careful_with_what_one_node_has_marked() {
    let stores: Vec<Arc<dyn Store>> =
        (0..2).map(|_| Arc::new(MemoryStore::new()) as Arc<dyn Store>).collect();
    for damaged in [false, true] {
        run_threads(2, |comm| {
            let rank = comm.rank();
            let store = Arc::clone(&stores[rank]);
            let all =
                [("job", "ranks"), ("restart", "lazy"), ("keep", "all"), ("lab.mode", "local")];
            let all = all.map(|(name, text)| (name.to_owned(), text.to_owned()));
            let job = Job::open_store_comm(Loaded::load(&all).unwrap(), Arc::clone(&store), &comm)
                .unwrap();
            let words = job.alloc::<u64>("words", WORDS).unwrap();
            for step in 1..=2 {
                advance(&mut words.write(), step);
                words.write()[0] = rank as u64;
                let version = job.checkpoint(None).unwrap();
                job.wait(version, Level::Local).unwrap();
            }
            let kept = words.read().to_vec();
            let newest = job.list().swap_remove(0);
            if rank == 1 {
                mark::put(&*store, newest.version, newest.attempt, "a test").unwrap();
                let own = newest.segments.iter().find(|segment| segment.rank.0 == 1).unwrap();
                if damaged {
                    let object = name::segment(own.id);
                    let mut bytes = store.get(&object, u64::MAX).unwrap();
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 1;
                    store.put(&object, &bytes).unwrap();
                }
            }
            let Restarted { version, notes, skipped, .. } = job.restart().unwrap().unwrap();
            let notes = notes.join("\n");
            let marked = mark::find(&*store, newest.version, newest.attempt);
            if damaged {
                assert_eq!(version.0, newest.version.0 - 1, "{notes}");
                assert_eq!(skipped.len(), 1, "{skipped:?}");
                assert!(notes.contains("a newer checkpoint is damaged"), "{notes}");
                assert_eq!(marked.is_some(), rank == 1);
            } else {
                assert_eq!(version, newest.version, "{notes}");
                assert!(notes.contains("it is marked as damaged"), "{notes}");
                assert_eq!(marked, None);
                assert!(words.read()[..] == kept[..]);
            }
            drop(words);
            job.close().unwrap();
        });
    }
}
