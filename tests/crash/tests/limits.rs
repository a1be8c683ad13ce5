//! Stores that cannot take a checkpoint: full, read-only, in use, or of a newer Standfast. The
//! error says which, and nothing that was there is lost.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use standfast::{Error, Kind, Level, Version};
use standfast_crash_tests::life::Worker;
use standfast_crash_tests::mount::Mounted;
use standfast_crash_tests::program::{JOB, Program, Setup};
use standfast_crash_tests::report::Line;
use standfast_format::{Digest, FORMAT_VERSION};
use standfast_testkit::must::or_leave_out;

const EXE: &str = env!("CARGO_BIN_EXE_crash-worker");

fn setup(dir: &Path) -> Setup<'_> {
    Setup { dir: dir.to_str().unwrap(), seed: 1, threads: 2 }
}

fn checkpoint(program: &Program, step: u64) -> Result<(), Error> {
    program.go_to(step);
    let version = program.job.checkpoint(None)?;
    program.job.wait(version, Level::Local)
}

#[track_caller]
fn assert_restores(program: &Program, version: u64) {
    program.scribble();
    program.job.restart_from(standfast::Version(version)).unwrap();
    assert!(program.is_at(version), "checkpoint {version} restores to something else");
}

/// Every file and its bytes, but for the locks, whose text names the last holder.
fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() {
            let below = tree(&path).into_iter();
            files.extend(below.map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else if !name.starts_with("lock.") {
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
    files
}

/// Whether it comes true soon. A process that another test of this program starts holds all open
/// files until it has become another program, and with them the space of those that are removed.
fn comes_true(mut what: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !what() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn a_full_disk_fails_the_checkpoint_and_nothing_else() {
    let Some(disk) = or_leave_out("mount", Mounted::tmpfs(8)) else { return };
    let program = Program::open(&setup(disk.path())).unwrap();
    checkpoint(&program, 1).unwrap();
    checkpoint(&program, 2).unwrap();
    let free = |at| rustix::fs::statvfs(at).unwrap().f_bavail;
    // From "not one segment fits" to "only the last one does not".
    for room in [0, 4 << 10, 64 << 10, 100 << 10, 150 << 10] {
        let filler = disk.path().join("filler");
        let bytes = free(disk.path()) * 4096 - room;
        std::fs::write(&filler, vec![1; usize::try_from(bytes).unwrap()]).unwrap();
        let before = (tree(&disk.path().join(JOB)), free(disk.path()));
        let error = checkpoint(&program, 3).expect_err("there is no room");
        assert_eq!(error.kind(), Kind::Full, "{error}");
        assert!(tree(&disk.path().join(JOB)) == before.0, "only {room} bytes free: files changed");
        assert!(
            comes_true(|| free(disk.path()) == before.1),
            "the space of the failed checkpoint came back: {} blocks of {}",
            free(disk.path()),
            before.1
        );
        assert_restores(&program, 2);
        assert_restores(&program, 1);
        std::fs::remove_file(&filler).unwrap();
    }
    checkpoint(&program, 3).unwrap();
    assert_restores(&program, 3);
    assert_restores(&program, 2);
    drop(program);
    let program = Program::open(&setup(disk.path())).unwrap();
    assert_restores(&program, 3);
}

#[test]
fn a_read_only_disk_is_denied() {
    let Some(disk) = or_leave_out("mount", Mounted::tmpfs(16)) else { return };
    let program = Program::open(&setup(disk.path())).unwrap();
    checkpoint(&program, 1).unwrap();
    // Nobody can make it read-only while the job holds its lock.
    drop(program);
    disk.set_read_only(true);
    let error = Program::open(&setup(disk.path())).err().expect("a job needs to write");
    assert_eq!(error.kind(), Kind::Denied, "{error}");
    let words = error.to_string();
    assert!(
        words.contains(disk.path().to_str().unwrap()) && words.contains("Read-only"),
        "{words}"
    );

    disk.set_read_only(false);
    let program = Program::open(&setup(disk.path())).unwrap();
    assert_restores(&program, 1);
    checkpoint(&program, 2).unwrap();
}

#[test]
fn a_store_in_use_names_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let worker = Worker::new(EXE, &setup(dir.path()));
    let mut holder = worker.hold();
    holder.wait_for(&Line::Durable(0));
    let error = Program::open(&setup(dir.path())).err().expect("one writer at a time");
    assert_eq!(error.kind(), Kind::Busy, "{error}");
    assert!(error.to_string().contains(&format!("pid {}", holder.pid())), "{error}");
    // However the holder ends, the next one may have the store.
    assert!(holder.kill().was_killed());
    Program::open(&setup(dir.path())).unwrap();
}

/// The same file as a newer Standfast might write it: sound, but of the next version.
fn make_newer(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[8..10].copy_from_slice(&(FORMAT_VERSION + 1).to_le_bytes());
    let covered = bytes.len() - size_of::<Digest>();
    let digest = Digest::of(&bytes[..covered]);
    bytes[covered..].copy_from_slice(&digest.0);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_store_of_a_newer_standfast_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program::open(&setup(dir.path())).unwrap();
    checkpoint(&program, 1).unwrap();
    drop(program);
    let place = dir.path().join(JOB);
    // What an older Standfast would clear away as leftovers may mean something to a newer one.
    std::fs::write(place.join("segments/00~1-0.part"), b"unknown").unwrap();
    make_newer(&place.join("store"));
    let before = tree(&place);
    let error = Program::open(&setup(dir.path())).err().expect("it is newer");
    assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    assert!(error.to_string().contains("newer Standfast"), "{error}");
    assert!(tree(&place) == before, "files of a newer store were changed");
}

#[test]
fn a_checkpoint_of_a_newer_standfast_is_not_skipped_unasked_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program::open(&setup(dir.path())).unwrap();
    checkpoint(&program, 1).unwrap();
    checkpoint(&program, 2).unwrap();
    drop(program);
    let newest = dir.path().join(JOB).join("manifests/v0000000002.local");
    make_newer(&newest);
    let before = tree(dir.path());
    let program = Program::open(&setup(dir.path())).unwrap();
    assert!(tree(dir.path()) == before, "opening changed files");
    let error = program.job.restart().unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    assert!(error.to_string().contains("newer Standfast"), "{error}");
    program.job.restart_from(Version(1)).unwrap();
    checkpoint(&program, 3).unwrap();
    let after = tree(dir.path());
    for (name, bytes) in before {
        assert!(after.get(&name) == Some(&bytes), "{name} is gone or changed");
    }
}
