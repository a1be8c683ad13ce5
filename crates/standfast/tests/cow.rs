//! Checkpoints that do not stop the program: each is the state at its call, whatever is written
//! while it is taken in.

use std::os::unix::fs::MetadataExt;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use standfast::{Job, Level, Version};

const WORDS: usize = 4 << 20;

type Settings<'a> = &'a [(&'a str, &'a str)];

/// Ways to capture without stopping the program: with little memory for copies, and with enough.
const WAYS: [Settings<'_>; 3] = [
    &[("capture", "cow"), ("memory", "5MiB")],
    &[("capture", "staged"), ("memory", "100MiB")],
    &[("capture", "auto"), ("memory", "100MiB")],
];

fn open(dir: &std::path::Path, settings: Settings<'_>) -> Job {
    let mut all = vec![
        ("store", dir.to_str().unwrap()),
        ("job", "test"),
        ("capture", "cow"),
        ("memory", "5MiB"),
        ("lab.pool", "4MiB"),
    ];
    all.extend_from_slice(settings);
    Job::open(&standfast_testkit::last_of_each(all)).unwrap()
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 16
}

/// Memory that several threads write to.
fn words(len: usize) -> Vec<AtomicU64> {
    (0..len as u64).map(|at| AtomicU64::new(at * 0x9e37_79b9)).collect()
}

fn copy_of(memory: &[AtomicU64]) -> Vec<u64> {
    memory.iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

fn protect(job: &Job, name: &str, memory: &[AtomicU64]) {
    let start = memory.as_ptr().cast_mut().cast();
    // SAFETY: the memory outlives the job; writers pause during the calls.
    unsafe { job.protect(name, start, memory.len() * 8, 8).unwrap() };
}

fn noted(job: &Job, version: Version) -> bool {
    job.report(version).unwrap().notes.iter().any(|note| note.contains("program stopped"))
}

/// Whether the program was stopped because stopping cost less: a checkpoint that comes right after
/// protecting finds no memory for copies ready.
fn was_early(job: &Job, version: Version) -> bool {
    job.report(version).unwrap().notes.iter().any(|note| note.contains("not ready yet"))
}

/// Takes checkpoints of memory that threads scribble over, and returns what it held at each call.
fn scribbled(job: &Job, memory: &[AtomicU64], area: usize, rounds: usize) -> Vec<Vec<u64>> {
    let (stop, pause) = (AtomicBool::new(false), RwLock::new(()));
    let mut states = Vec::new();
    std::thread::scope(|scope| {
        for seed in 1..=3u64 {
            let (stop, pause) = (&stop, &pause);
            scope.spawn(move || {
                let mut state = seed * 0x1234_5677;
                while !stop.load(Ordering::Relaxed) {
                    let _running = pause.read().unwrap();
                    for _ in 0..64 {
                        let at = next(&mut state) as usize % area;
                        memory[at].store(next(&mut state), Ordering::Relaxed);
                    }
                }
            });
        }
        for round in 0..rounds {
            let stopped = pause.write().unwrap();
            states.push(copy_of(memory));
            let version = job.checkpoint(None).unwrap();
            drop(stopped);
            // Sometimes the next one is asked for while this one is still taken in.
            if round % 2 == 0 {
                job.wait(version, Level::Local).unwrap();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    states
}

#[test]
fn every_checkpoint_is_the_state_at_its_call() {
    // Much of it changes; a little of it changes, so that tracking takes over; nothing is tracked.
    let cases: [(usize, Settings<'_>); 4] = [
        (WORDS, &[]),
        (20 * 512, &[]),
        (WORDS, &[("lab.track", "hash"), ("lab.page", "16KiB")]),
        (WORDS / 64, &[("lab.mode", "incremental"), ("lab.track", "uffd")]),
    ];
    for (way, (area, settings)) in WAYS.iter().flat_map(|way| cases.map(|case| (*way, case))) {
        let dir = tempfile::tempdir().unwrap();
        let settings = &[way, settings].concat()[..];
        let job = open(dir.path(), settings);
        let (memory, small) = (words(WORDS), words(100));
        protect(&job, "memory", &memory);
        protect(&job, "small", &small);
        let states = scribbled(&job, &memory, area, 5);
        let was_stopped = |version| noted(&job, version) && !was_early(&job, version);
        let stopped = (1..=5).filter(|version| was_stopped(Version(*version))).count();
        job.unprotect("memory").unwrap();
        let target = words(WORDS);
        protect(&job, "memory", &target);
        for (at, state) in states.iter().enumerate() {
            job.restart_from(Version(at as u64 + 1)).unwrap();
            assert!(copy_of(&target) == *state, "{settings:?}, checkpoint {}", at + 1);
        }
        println!("{settings:?}: {stopped} of 5 stopped the program");
        assert!(way[0].1 == "cow" || stopped == 0, "memory has room for all of it");
        job.unprotect("memory").unwrap();
        job.unprotect("small").unwrap();
        job.close().unwrap();
    }
}

#[test]
fn tracking_starts_behind_a_snapshot_and_few_pages_are_stored() {
    for way in WAYS {
        few_pages_are_stored(way);
    }
}

fn few_pages_are_stored(way: Settings<'_>) {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[way, &[("codec", "none")]].concat());
    let memory = words(WORDS);
    protect(&job, "memory", &memory);
    for round in 0..4u64 {
        memory[round as usize * 512 * 7].fetch_add(1, Ordering::Relaxed);
        let version = job.checkpoint(None).unwrap();
        memory[round as usize * 512 * 9 + 1].fetch_add(1, Ordering::Relaxed);
        job.wait(version, Level::Local).unwrap();
        let stats = job.report(version).unwrap().stats;
        let expected = if round == 0 { WORDS as u64 / 512 } else { 2 };
        assert!(stats.new_pages <= expected, "{way:?}, round {round}: {stats:?}");
    }
    job.unprotect("memory").unwrap();
    job.close().unwrap();
}

#[test]
fn memory_may_go_as_soon_as_it_is_unprotected() {
    WAYS.into_iter().for_each(memory_may_go);
}

fn memory_may_go(way: Settings<'_>) {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), way);
    let array = job.alloc::<u64>("array", WORDS).unwrap();
    let kept = job.alloc::<u64>("kept", 1000).unwrap();
    array.write().fill(7);
    kept.write().fill(8);
    let version = job.checkpoint(None).unwrap();
    kept.write().fill(9);
    drop(array);
    job.wait(version, Level::Local).unwrap();
    let array = job.alloc::<u64>("array", WORDS).unwrap();
    job.restart_from(version).unwrap();
    assert!(array.read().iter().all(|word| *word == 7));
    assert!(kept.read().iter().all(|word| *word == 8));
}

#[test]
fn what_does_not_fit_is_captured_with_the_program_stopped_and_that_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[("capture", "staged")]);
    let memory = words(WORDS);
    protect(&job, "memory", &memory);
    let state = copy_of(&memory);
    let first = job.checkpoint(None).unwrap();
    memory.iter().for_each(|word| word.store(1, Ordering::Relaxed));
    job.wait(first, Level::Local).unwrap();
    let notes = job.report(first).unwrap().notes;
    let told = notes.iter().any(|note| note.contains("memory has room for copies of 1 MiB"));
    assert!(noted(&job, first) && told, "{notes:?}");
    job.restart_from(first).unwrap();
    assert!(copy_of(&memory) == state);
    // Little fits.
    memory[5].store(7, Ordering::Relaxed);
    let (second, third) = (job.checkpoint(None).unwrap(), job.checkpoint(None).unwrap());
    memory[5].store(8, Ordering::Relaxed);
    job.wait(third, Level::Local).unwrap();
    if job.tracker() == "uffd" {
        assert!(!noted(&job, third), "{:?}", job.report(second).unwrap().notes);
    }
    job.restart_from(third).unwrap();
    assert_eq!(memory[5].load(Ordering::Relaxed), 7);
    job.unprotect("memory").unwrap();
}

/// Set where this program is the one that runs as an ordinary user.
const ORDINARY: &str = "STANDFAST_TEST_ORDINARY";

#[test]
fn an_ordinary_user_is_staged() {
    for way in &WAYS[1..] {
        is_staged(way);
    }
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if is_root && std::env::var_os(ORDINARY).is_none() {
        as_ordinary_user("an_ordinary_user_is_staged");
    }
}

fn is_staged(way: Settings<'_>) {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), way);
    let memory = words(WORDS);
    protect(&job, "memory", &memory);
    for round in 1..=3u64 {
        memory.iter().for_each(|word| word.store(round, Ordering::Relaxed));
        let version = job.checkpoint(None).unwrap();
        memory.iter().for_each(|word| word.store(100, Ordering::Relaxed));
        job.wait(version, Level::Local).unwrap();
        let early = way[0].1 == "auto" && was_early(&job, version);
        assert!(early || !noted(&job, version));
        if std::env::var_os(ORDINARY).is_some() {
            assert_eq!(job.report(version).unwrap().slowed_ns, Some(0), "nobody is held up");
        }
    }
    for round in 1..=3u64 {
        job.restart_from(Version(round)).unwrap();
        assert!(memory.iter().all(|word| word.load(Ordering::Relaxed) == round));
    }
    job.unprotect("memory").unwrap();
}

/// Runs a test of this program again, in a directory of that user.
fn as_ordinary_user(test: &str) {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).unwrap();
    let program = dir.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let run = std::process::Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .args(["--exact", test])
        .env(ORDINARY, "1")
        .env("TMPDIR", dir.path())
        .current_dir(dir.path())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && out.contains("1 passed"), "{out}");
}

#[test]
fn shared_memory_is_captured_with_the_program_stopped_and_that_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[]);
    let file = tempfile::tempfile().unwrap();
    file.set_len(4 << 20).unwrap();
    // SAFETY: a new mapping of a file of our own.
    let start = unsafe {
        use std::os::fd::AsRawFd;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), 4 << 20, prot, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(start, libc::MAP_FAILED);
    // SAFETY: the mapping lives until the process ends.
    let memory = unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), (4 << 20) / 8) };
    protect(&job, "shared", memory);
    for round in 1..=3u64 {
        memory[77].store(round, Ordering::Relaxed);
        let version = job.checkpoint(None).unwrap();
        memory[77].store(100 + round, Ordering::Relaxed);
        assert!(noted(&job, version));
    }
    for round in 1..=3 {
        job.restart_from(Version(round)).unwrap();
        assert_eq!(memory[77].load(Ordering::Relaxed), round);
    }
}
