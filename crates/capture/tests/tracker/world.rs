//! Memory to write to, and the trackers that must notice.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use standfast_capture::{Dirty, Hashing, Mprotect, Span, Tracker, Uffd};
use standfast_testkit::must::leave_out;

pub(crate) const PAGE: usize = 4096;

/// Private memory of its own.
pub(crate) struct Memory(pub(crate) *mut u8, pub(crate) usize);

impl Memory {
    pub(crate) fn new(pages: usize) -> Self {
        Self::with(pages, MapFlags::PRIVATE)
    }

    pub(crate) fn with(pages: usize, flags: MapFlags) -> Self {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), pages * PAGE, prot, flags).unwrap() };
        Self(start.cast(), pages * PAGE)
    }

    /// Every page written once, so that it is there.
    pub(crate) fn filled(pages: usize) -> Self {
        let mut memory = Self::new(pages);
        memory.bytes().fill(1);
        memory
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is ours and lives as long as this.
        unsafe { std::slice::from_raw_parts_mut(self.0, self.1) }
    }

    pub(crate) fn span(&self) -> Span {
        Span { start: self.0 as usize, bytes: self.1 }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nobody refers to it any more.
        let _ = unsafe { munmap(self.0.cast(), self.1) };
    }
}

/// Every tracker there is on this system.
pub(crate) fn trackers() -> Vec<Box<dyn Tracker>> {
    let mut all: Vec<Box<dyn Tracker>> = vec![Box::new(Hashing)];
    match Uffd::new() {
        Some(uffd) => all.push(Box::new(uffd)),
        None => leave_out("userfaultfd", "this process may not use userfaultfd"),
    }
    match Mprotect::new() {
        Some(mprotect) => all.push(Box::new(mprotect)),
        None => leave_out("mprotect", "this process may not take faults by a signal"),
    }
    all
}

/// Starts watching; only the tracker that never watches may refuse.
pub(crate) fn arm(tracker: &dyn Tracker, span: Span) {
    assert!(tracker.arm(span) || tracker.name() == "hash", "{}", tracker.name());
}

/// What was written in one region.
pub(crate) fn collect(tracker: &dyn Tracker, span: Span) -> Dirty {
    tracker.collect(&[span], PAGE).remove(0)
}

/// Asserts that these pages are told, and no others unless all are.
#[track_caller]
pub(crate) fn assert_pages(dirty: &Dirty, expected: &[usize], who: &str) {
    let Dirty::Pages(bits) = dirty else {
        assert_eq!(who, "hash", "all pages are dirty");
        return;
    };
    assert_eq!(marked(bits), expected, "{who}");
}

/// Asserts that these pages are among those that are told.
#[track_caller]
pub(crate) fn assert_covers(dirty: &Dirty, expected: &[usize], who: &str) {
    let Dirty::Pages(bits) = dirty else { return };
    let found = marked(bits);
    assert!(expected.iter().all(|page| found.contains(page)), "{who}: {found:?}");
}

fn marked(bits: &[u64]) -> Vec<usize> {
    (0..bits.len() * 64).filter(|page| bits[page / 64] >> (page % 64) & 1 == 1).collect()
}
