//! Lazy restarts: the program goes on at once, and every page it touches is the one it was.

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicU64, Ordering};

use standfast::{Job, Level, Version};

const WORDS: usize = 6 << 20;

fn open(dir: &std::path::Path, settings: &[(&str, &str)]) -> Job {
    let store = dir.to_str().unwrap();
    let mut all =
        vec![("store", store), ("job", "test"), ("restart", "lazy"), ("lab.pool", "4MiB")];
    all.extend_from_slice(settings);
    Job::open(&standfast_testkit::last_of_each(all)).unwrap()
}

/// Noise with a stretch of zeros.
fn expected(at: usize) -> u64 {
    match at {
        700_000..1_200_000 => 0,
        _ => (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
    }
}

fn write(job: &Job) -> Version {
    let array = job.alloc::<u64>("array", WORDS).unwrap();
    let odd = job.alloc::<u64>("odd", 1001).unwrap();
    array.write().iter_mut().enumerate().for_each(|(at, word)| *word = expected(at));
    odd.write().fill(77);
    let version = job.checkpoint(None).unwrap();
    job.wait(version, Level::Local).unwrap();
    version
}

#[test]
fn pages_touched_by_several_threads_are_what_they_were() {
    for settings in
        [&[][..], &[("lab.page", "64KiB")], &[("lab.page", "1KiB"), ("lab.block", "64KiB")]]
    {
        let dir = tempfile::tempdir().unwrap();
        let job = open(dir.path(), settings);
        write(&job);
        let array = job.alloc::<u64>("array", WORDS).unwrap();
        let odd = job.alloc::<u64>("odd", 1001).unwrap();
        array.write().fill(3);
        job.restart().unwrap().unwrap();
        let words = array.read();
        std::thread::scope(|scope| {
            for seed in 1..=4u64 {
                let words = &words;
                scope.spawn(move || {
                    let mut state = seed * 0x1234_5677;
                    for _ in 0..20_000 {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let at = (state >> 20) as usize % WORDS;
                        assert_eq!(words[at], expected(at), "{at}");
                    }
                });
            }
        });
        assert!(words.iter().enumerate().all(|(at, word)| *word == expected(at)));
        drop(words);
        assert!(odd.read().iter().all(|word| *word == 77));

        // The next checkpoint waits for what is still under way, and knows every page.
        array.write()[5] = 9;
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
        assert_eq!(job.report(version).unwrap().stats.new_pages, 1);
        job.restart_from(Version(1)).unwrap();
        job.restart_from(version).unwrap();
        assert_eq!((array.read()[5], array.read()[6]), (9, expected(6)));
    }
}

#[test]
fn a_lazy_restart_tells_when_everything_is_verified() {
    let dir = tempfile::tempdir().unwrap();
    write(&open(dir.path(), &[]));
    let job = open(dir.path(), &[]);
    let array = job.alloc::<u64>("array", WORDS).unwrap();
    assert!(!job.is_loading());
    job.restart().unwrap().expect("a checkpoint");
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while job.is_loading() {
        assert!(std::time::Instant::now() < end, "it comes to its end by itself");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let words = array.read();
    assert!((0..WORDS).all(|at| words[at] == expected(at)));
}

#[test]
fn memory_of_others_is_filled_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[]);
    let words: Vec<AtomicU64> = (0..100_000).map(AtomicU64::new).collect();
    let start = words.as_ptr().cast_mut().cast();
    // SAFETY: the memory outlives the job, and no other thread uses it.
    unsafe { job.protect("words", start, words.len() * 8, 8).unwrap() };
    write(&job);
    words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    let array = job.alloc::<u64>("array", WORDS).unwrap();
    job.restart().unwrap().unwrap();
    assert!(words.iter().zip(0..).all(|(word, at)| word.load(Ordering::Relaxed) == at));
    assert_eq!(array.read()[WORDS - 1], expected(WORDS - 1));
    // Given back while it is arriving.
    job.restart().unwrap().unwrap();
    drop(array);
    job.unprotect("words").unwrap();
}

#[test]
fn a_page_that_is_not_what_it_was_ends_the_program() {
    const CASE: &str = "STANDFAST_TEST_LAZY_STORE";
    if let Some(store) = std::env::var_os(CASE) {
        let job = open(std::path::Path::new(&store), &[("codec", "none")]);
        let array = job.alloc::<u64>("array", WORDS).unwrap();
        let _odd = job.alloc::<u64>("odd", 1001).unwrap();
        job.restart().unwrap().unwrap();
        println!("goes on");
        let words = array.read();
        let wrong = words.iter().enumerate().find(|(at, word)| **word != expected(*at));
        println!("wrong: {wrong:?}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    {
        let job = open(dir.path(), &[("codec", "none")]);
        write(&job);
        job.close().unwrap();
    }
    let segment = largest(dir.path());
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["a_page_that_is_not_what_it_was_ends_the_program", "--exact", "--nocapture"])
        .env(CASE, dir.path())
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{out} {err}");
    assert!(err.contains("cannot be loaded"), "{err}");
    assert!(!out.contains("wrong"), "{out}");
}

/// The largest file below a directory.
fn largest(dir: &std::path::Path) -> std::path::PathBuf {
    let mut found = Vec::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => left.push(entry.path()),
                false => found.push((entry.metadata().unwrap().len(), entry.path())),
            }
        }
    }
    found.into_iter().max().unwrap().1
}
