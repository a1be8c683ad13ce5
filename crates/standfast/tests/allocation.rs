//! Regions that come, grow and go between checkpoints.

use standfast::{Job, Kind, Level, Version};

fn open(dir: &std::path::Path, capture: &str) -> Job {
    let store = dir.to_str().unwrap();
    Job::open(&[("store", store), ("job", "test"), ("capture", capture), ("lab.pool", "4MiB")])
        .unwrap()
}

fn durable(job: &Job) -> Version {
    let version = job.checkpoint(None).unwrap();
    job.wait(version, Level::Local).unwrap();
    version
}

#[test]
fn an_array_grows_and_shrinks_and_every_length_comes_back() {
    for capture in ["stop", "cow"] {
        let dir = tempfile::tempdir().unwrap();
        let job = open(dir.path(), capture);
        let array = job.alloc::<u32>("array", 1_000_000).unwrap();
        assert_eq!(array.read().as_ptr().addr() % 4096, 0, "on a page of its own");
        array.write().iter_mut().zip(0..).for_each(|(word, at)| *word = at);
        job.checkpoint(None).unwrap();
        // While the first is still being taken in.
        array.resize(1_500_000).unwrap();
        assert!(array.read()[..1_000_000].iter().zip(0..).all(|(word, at)| *word == at));
        assert!(array.read()[1_000_000..].iter().all(|word| *word == 0));
        array.write()[1_400_000] = 7;
        let second = durable(&job);
        assert!(job.report(second).unwrap().stats.new_pages <= 2, "the rest is known by position");
        array.resize(10).unwrap();
        durable(&job);
        let unfit = job.restart_from(Version(1)).unwrap_err();
        assert!(unfit.to_string().contains("does not fit"), "{unfit}");
        for (version, len) in [(1, 1_000_000), (2, 1_500_000), (3, 10)] {
            array.resize(len).unwrap();
            array.write().fill(9);
            job.restart_from(Version(version)).unwrap();
            let kept = len.min(1_000_000);
            assert!(array.read()[..kept].iter().zip(0..).all(|(word, at)| *word == at));
        }
        let guard = array.read();
        assert!(array.resize(20).unwrap_err().to_string().contains("is borrowed"));
        drop(guard);
    }
}

#[test]
fn what_a_checkpoint_had_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c"];
    {
        let job = open(dir.path(), "cow");
        for (at, name) in names.iter().enumerate() {
            let start = job.alloc_memory(name, 5000 * (at + 1), 64, 8).unwrap();
            // SAFETY: the memory is as long, and no call is under way.
            unsafe { start.write_bytes(at as u8 + 1, 5000 * (at + 1)) };
        }
        job.checkpoint(None).unwrap();
        job.free_memory("b").unwrap();
        job.resize_memory("c", 100).unwrap();
        durable(&job);
        assert_eq!(job.free_memory("b").unwrap_err().kind(), Kind::Missing);
        assert_eq!(job.alloc_memory("c", 1, 1, 0).unwrap_err().kind(), Kind::Invalid);
    }
    let job = open(dir.path(), "stop");
    assert_eq!(job.recreate(None).unwrap(), ["a", "c"]);
    assert_eq!(job.memory("c").unwrap().1, 100);
    job.restart().unwrap().unwrap();
    assert_eq!(job.recreate(Some(Version(1))).unwrap(), ["b"]);
    job.restart_from(Version(1)).unwrap();
    for (at, name) in names.iter().enumerate() {
        let (start, bytes) = job.memory(name).unwrap();
        assert_eq!(bytes, 5000 * (at + 1));
        // SAFETY: the memory is as long, and no call is under way.
        let bytes = unsafe { std::slice::from_raw_parts(start, bytes) };
        assert!(bytes.iter().all(|byte| usize::from(*byte) == at + 1));
    }
    assert_eq!(job.recreate(Some(Version(9))).unwrap_err().kind(), Kind::Missing);
}
