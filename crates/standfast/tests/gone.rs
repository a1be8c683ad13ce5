//! Memory that went away is a failure with the region's name, never the program's end.

use std::ptr;

use standfast::{Job, Kind, Level};

const BYTES: usize = 64 * 4096;

fn map() -> *mut u8 {
    let (prot, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, placed by the kernel.
    let start = unsafe { libc::mmap(ptr::null_mut(), BYTES, prot, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start.cast()
}

fn unmap(start: *mut u8) {
    // SAFETY: memory of this test, which nothing uses any more.
    unsafe { libc::munmap(start.cast(), BYTES) };
}

fn fill(start: *mut u8, with: u8) {
    // SAFETY: mapped, and of this test alone.
    unsafe { ptr::write_bytes(start, with, BYTES) };
}

#[test]
fn a_region_that_is_gone_is_named_and_the_next_checkpoint_works() {
    for capture in ["stop", "cow"] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().to_str().unwrap();
        let job = Job::open(&[("store", store), ("job", "heat"), ("capture", capture)]).unwrap();
        let (old, steady) = (map(), map());
        fill(steady, 1);
        // SAFETY: the point of the test is to break this promise.
        unsafe { job.protect("steady", steady, BYTES, 0) }.unwrap();
        // SAFETY: as above.
        unsafe { job.protect("grown", old, BYTES, 0) }.unwrap();
        let first = job.checkpoint(None).unwrap();
        job.wait(first, Level::Local).unwrap();

        unmap(old);
        for _ in 0..2 {
            let error = job.checkpoint(None).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid, "{error}");
            assert!(error.to_string().contains("\"grown\" has no memory"), "{error}");
        }
        let error = job.restart().unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(error.to_string().contains("\"grown\""), "{error}");
        // SAFETY: mapped.
        assert_eq!(unsafe { steady.read() }, 1, "nothing was filled");
        assert_eq!(job.list().len(), 1, "nothing of the failed ones is there");

        job.unprotect("grown").unwrap();
        let new = map();
        fill(new, 7);
        // SAFETY: it stays until the job is closed.
        unsafe { job.protect("grown", new, BYTES, 0) }.unwrap();
        let next = job.checkpoint(None).unwrap();
        job.wait(next, Level::Local).unwrap();
        fill(new, 0);
        assert_eq!(job.restart().unwrap().unwrap().version, next);
        // SAFETY: mapped.
        assert_eq!(unsafe { new.add(BYTES - 1).read() }, 7);
        job.close().unwrap();
        unmap(new);
        unmap(steady);
    }
}
