//! The journey of pages through a job on a real directory: protect, checkpoint, restart.

use standfast::config::Loaded;
use standfast::{Job, Kind, Level, Progress, Version};

fn open(dir: &std::path::Path, settings: &[(&str, &str)]) -> Job {
    let mut all = vec![("store", dir.to_str().unwrap()), ("job", "test"), ("lab.pool", "4MiB")];
    all.extend_from_slice(settings);
    Job::open(&standfast_testkit::last_of_each(all)).unwrap()
}

/// Different for every seed and place, and not compressible.
fn noise(seed: u64, len: usize) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        })
        .collect()
}

fn durable(job: &Job) -> Version {
    let version = job.checkpoint(None).unwrap();
    job.wait(version, Level::Local).unwrap();
    version
}

#[test]
fn every_setting_brings_the_same_bytes_back() {
    let settings: [&[(&str, &str)]; 9] = [
        &[],
        &[("codec", "none"), ("lab.hash", "blake3")],
        &[("codec", "zstd:3"), ("lab.filter", "shuffle8"), ("lab.hash", "sha1")],
        &[("codec", "deflate:1"), ("lab.filter", "shuffle4")],
        &[("lab.mode", "full")],
        &[("lab.mode", "local"), ("lab.threads", "1")],
        &[("lab.page", "64KiB"), ("lab.block", "64KiB"), ("lab.segment", "256KiB")],
        &[
            ("lab.page", "1KiB"),
            ("lab.block", "1KiB"),
            ("lab.segment", "16KiB"),
            ("lab.io", "buffered"),
        ],
        &[("lab.segment", "1MiB"), ("lab.threads", "4")],
    ];
    for settings in settings {
        let dir = tempfile::tempdir().unwrap();
        let lens = [1usize, 511, 512, 513, 100_000];
        {
            let job = open(dir.path(), settings);
            let mut regions = Vec::new();
            for (at, len) in lens.iter().enumerate() {
                let region = job.alloc::<u64>(&format!("region {at}"), *len).unwrap();
                region.write().copy_from_slice(&noise(at as u64 + 1, *len));
                regions.push(region);
            }
            regions[4].write()[50_000..].fill(0);
            durable(&job);
            regions[4].write()[77] = 7;
            durable(&job);
            regions[3].write().fill(3);
            durable(&job);
            job.close().unwrap();
        }
        let job = open(dir.path(), settings);
        let regions: Vec<_> = lens
            .iter()
            .enumerate()
            .map(|(at, len)| job.alloc::<u64>(&format!("region {at}"), *len).unwrap())
            .collect();
        for (version, changed, filled) in [(1, false, false), (3, true, true), (2, true, false)] {
            regions[4].write()[60_000..].fill(9);
            job.restart_from(Version(version)).unwrap();
            for (at, len) in lens.iter().enumerate() {
                let mut expected = noise(at as u64 + 1, *len);
                if at == 4 {
                    expected[50_000..].fill(0);
                }
                if at == 4 && changed {
                    expected[77] = 7;
                }
                if at == 3 && filled {
                    expected.fill(3);
                }
                assert!(regions[at].read()[..] == expected, "{settings:?} v{version} r{at}");
            }
        }
        assert_eq!(job.restart().unwrap().unwrap().version, Version(3));
    }
}

#[test]
fn pages_are_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[("codec", "none")]);
    let field = job.alloc::<u64>("field", 512 * 1000).unwrap();
    // 400 pages of noise, 100 copies of one of them, 500 zero pages.
    let page: Vec<u64> = noise(1, 512);
    field.write()[..400 * 512].copy_from_slice(&noise(2, 400 * 512));
    for at in 400..500 {
        field.write()[at * 512..][..512].copy_from_slice(&page);
    }
    let first = job.report(durable(&job)).unwrap().stats;
    assert_eq!(
        (first.pages, first.zero_pages, first.duplicate_pages, first.old_pages, first.new_pages),
        (1000, 500, 99, 0, 401)
    );
    assert_eq!(first.compressed_bytes, 401 * 4096);

    field.write()[10 * 512] ^= 1;
    let second = job.report(durable(&job)).unwrap().stats;
    assert_eq!((second.zero_pages, second.old_pages, second.new_pages), (500, 499, 1));

    field.write()[10 * 512] ^= 1;
    let third = job.report(durable(&job)).unwrap().stats;
    assert_eq!((third.new_pages, third.old_pages), (0, 500), "the old page is known again");
    assert_eq!(third.segment_bytes, 0);
    job.close().unwrap();

    // A new process finds the pages of its predecessor.
    drop(field);
    let job = open(dir.path(), &[("codec", "none")]);
    let field = job.alloc::<u64>("field", 512 * 1000).unwrap();
    job.restart().unwrap().unwrap();
    field.write()[999 * 512] = 5;
    let fourth = job.report(durable(&job)).unwrap().stats;
    assert_eq!((fourth.new_pages, fourth.old_pages, fourth.zero_pages), (1, 500, 499));
}

#[test]
fn newest_means_last_committed_and_versions_can_be_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[]);
    let step = job.alloc::<u64>("step", 1).unwrap();
    for version in [10, 20, 30] {
        step.write()[0] = version;
        assert_eq!(job.checkpoint(Some(Version(version))).unwrap(), Version(version));
    }
    job.restart_from(Version(10)).unwrap();
    step.write()[0] = 21;
    job.checkpoint(Some(Version(20))).unwrap();
    assert_eq!(job.restart().unwrap().unwrap().version, Version(20), "30 is an abandoned future");
    assert_eq!(step.read()[0], 21);
    assert_eq!(job.checkpoint(None).unwrap(), Version(31));
    let zero = job.checkpoint(Some(Version(0))).unwrap_err();
    assert!(zero.to_string().contains("start at 1"), "{zero}");
    let versions: Vec<u64> = job.list().iter().map(|manifest| manifest.version.0).collect();
    assert_eq!(versions, [31, 20, 30, 20, 10], "what is abandoned stays");
}

#[test]
fn only_what_is_kept_stays_and_all_of_it_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[("keep", "2"), ("codec", "none")]);
    let field = job.alloc::<u64>("field", 512 * 64).unwrap();
    for round in 0..10u64 {
        // Some pages are shared with older checkpoints, some are not.
        let first = (round as usize * 7) % 32;
        field.write()[first * 512..][..20 * 512].copy_from_slice(&noise(round + 1, 20 * 512));
        durable(&job);
    }
    let kept: Vec<Version> = job.list().iter().map(|manifest| manifest.version).collect();
    assert_eq!(kept, [Version(10), Version(9)]);
    let now = field.read().to_vec();
    job.restart_from(Version(9)).unwrap();
    assert!(field.read()[..] != now);
    job.restart_from(Version(10)).unwrap();
    assert!(field.read()[..] == now);
    let files = std::fs::read_dir(dir.path().join("test/segments")).unwrap().count();
    assert!(files <= 8, "{files} segments for two checkpoints");
    let gone = job.restart_from(Version(1)).unwrap_err();
    assert_eq!(gone.kind(), Kind::Missing);
}

#[test]
fn progress_can_be_polled_and_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[]);
    let _field = job.alloc::<u8>("field", 1 << 20).unwrap();
    let version = job.checkpoint(None).unwrap();
    assert!(!matches!(job.poll(version).unwrap(), Progress::Failed(_)));
    job.wait(version, Level::Memory).unwrap();
    job.wait(version, Level::Local).unwrap();
    assert!(matches!(job.poll(version).unwrap(), Progress::Done(Level::Local)));
    assert_eq!(job.wait(version, Level::Global).unwrap_err().kind(), Kind::Unsupported);
    assert_eq!(job.poll(Version(99)).unwrap_err().kind(), Kind::Missing);
    drop(job);
    let job = open(dir.path(), &[]);
    job.wait(version, Level::Local).unwrap();
}

#[test]
fn what_does_not_fit_the_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[]);
    assert!(job.restart().unwrap().is_none());
    let field = job.alloc::<u64>("field", 100).unwrap();
    field.write().fill(4);
    let version = durable(&job);
    drop(field);

    let larger = job.alloc::<u64>("field", 101).unwrap();
    let error = job.restart().unwrap_err();
    assert!(error.to_string().contains("808 here"), "{error}");
    drop(larger);
    let other = job.alloc::<u64>("other", 100).unwrap();
    let error = job.restart().unwrap_err();
    assert!(error.to_string().contains("it has no region \"other\""), "{error}");
    drop(other);
    assert_eq!(job.restart().unwrap().unwrap().unclaimed, ["field"]);

    assert_eq!(job.region_bytes(version, "field").unwrap(), 800);
    let mut buf = vec![0; 800];
    job.read_region(version, "field", &mut buf).unwrap();
    assert_eq!(buf[..8], 4u64.to_le_bytes());
    assert_eq!(job.read_region(version, "field", &mut buf[1..]).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(job.read_region(version, "none", &mut buf).unwrap_err().kind(), Kind::Missing);
}

#[test]
fn a_borrowed_region_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[]);
    let field = job.alloc::<u64>("field", 100).unwrap();
    {
        let _writing = field.write();
        let error = job.checkpoint(None).unwrap_err();
        assert!(error.to_string().contains("\"field\""), "{error}");
    }
    let _reading = field.read();
    let version = job.checkpoint(None).unwrap();
    assert!(job.restart_from(version).unwrap_err().to_string().contains("is borrowed"));
}

#[test]
fn two_jobs_on_one_store_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path(), &[]);
    let settings = [("store", dir.path().to_str().unwrap()), ("job", "test")];
    let error = Job::open(&settings).expect_err("one writer at a time");
    assert_eq!(error.kind(), Kind::Busy);
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    drop(first);
    Job::open(&settings).unwrap();
}

#[test]
fn memory_written_during_capture_is_never_committed() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let job = open(dir.path(), &[("codec", "none"), ("lab.pool", "512KiB"), ("lab.block", "4KiB")]);
    let field: Vec<AtomicU64> = noise(1, 512 * 4000).into_iter().map(AtomicU64::new).collect();
    // SAFETY: the memory outlives the job. Another thread writes to it, against the rule: what is
    // tested is that this is found and not committed.
    unsafe { job.protect("field", field.as_ptr() as *mut u8, field.len() * 8, 8).unwrap() };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut value = 0;
            while !stop.load(Ordering::Relaxed) {
                value += 1;
                for page in field.chunks(512) {
                    page[0].store(value, Ordering::Relaxed);
                }
            }
        });
        // Whatever is committed under fire must be restorable; failures must say why.
        for _ in 0..5 {
            let outcome = job.checkpoint(None).and_then(|version| job.wait(version, Level::Local));
            if let Err(error) = outcome {
                assert!(error.to_string().contains("written while"), "{error}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let quiet = durable(&job);
    let mut buf = vec![0; field.len() * 8];
    job.read_region(quiet, "field", &mut buf).unwrap();
    for manifest in job.list() {
        job.read_region(manifest.version, "field", &mut buf).unwrap();
    }
}

#[test]
fn configuration_errors_come_before_any_file() {
    let dir = tempfile::tempdir().unwrap();
    let settings = [("store", dir.path().to_str().unwrap()), ("codec", "zip")];
    let error = Job::open(&settings).expect_err("no such codec");
    assert_eq!(error.kind(), Kind::Invalid);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(Loaded::load(&[("lab.pool".into(), "1KiB".into())]).is_err());
}

#[test]
fn a_restarted_program_stores_only_what_changed_since() {
    let dir = tempfile::tempdir().unwrap();
    // The catalog's least bound holds 512 Ki hashes: more pages than that have been stored, so
    // the first segment is no longer in it when the program comes back.
    let settings = [("codec", "none"), ("lab.page", "1KiB"), ("lab.block", "64KiB"), ("keep", "3")];
    let words = 128 * 300_000;
    let first: Vec<u64> = noise(3, words);
    let changed = 128 * 80_000;
    {
        let job = open(dir.path(), &settings);
        let field = job.alloc::<u64>("field", words).unwrap();
        field.write().copy_from_slice(&first);
        durable(&job);
        for round in 0..4 {
            field.write()[..changed].copy_from_slice(&noise(10 + round, changed));
            durable(&job);
        }
    }
    let job = open(dir.path(), &settings);
    let field = job.alloc::<u64>("field", words).unwrap();
    job.restart().unwrap().unwrap();
    assert!(field.read()[changed..] == first[changed..]);
    field.write()[5] ^= 1;
    let stats = job.report(durable(&job)).unwrap().stats;
    assert_eq!((stats.new_pages, stats.old_pages), (1, 299_999));
    field.write().fill(0);
    job.restart().unwrap().unwrap();
    assert!(field.read()[changed..] == first[changed..]);
}
