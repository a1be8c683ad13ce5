//! One suite for every dirty tracker: nothing written may be missed.

use std::io::{Read, Write};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use standfast_capture::{Dirty, Span, Tracker, Uffd, Watch};

const PAGE: usize = 4096;

/// Private memory of its own.
struct Memory(*mut u8, usize);

impl Memory {
    fn new(pages: usize) -> Self {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), pages * PAGE, prot, MapFlags::PRIVATE).unwrap()
        };
        Self(start.cast(), pages * PAGE)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is ours and lives as long as this.
        unsafe { std::slice::from_raw_parts_mut(self.0, self.1) }
    }

    fn span(&self) -> Span {
        Span { start: self.0 as usize, bytes: self.1 }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nobody refers to it any more.
        let _ = unsafe { munmap(self.0.cast(), self.1) };
    }
}

fn trackers() -> Vec<Box<dyn Tracker>> {
    let mut all: Vec<Box<dyn Tracker>> = Vec::new();
    match Uffd::new() {
        Some(uffd) => all.push(Box::new(uffd)),
        None => println!("uffd is not available here: skipped"),
    }
    all
}

fn pages(dirty: &Dirty) -> Vec<usize> {
    let Dirty::Pages(bits) = dirty else { panic!("all pages are dirty") };
    (0..bits.len() * 64).filter(|page| bits[page / 64] >> (page % 64) & 1 == 1).collect()
}

#[test]
fn every_write_is_seen_once() {
    for tracker in trackers() {
        let mut memory = Memory::new(300);
        memory.bytes()[..100 * PAGE].fill(1);
        let span = memory.span();
        assert!(tracker.arm(span), "{}", tracker.name());
        assert_eq!(pages(&tracker.collect(&[span], PAGE)[0]), [0usize; 0]);
        // Populated, unpopulated, first and last.
        for page in [0, 7, 99, 100, 250, 299] {
            memory.bytes()[page * PAGE + 17] = 9;
        }
        assert_eq!(pages(&tracker.collect(&[span], PAGE)[0]), [0, 7, 99, 100, 250, 299]);
        assert_eq!(pages(&tracker.collect(&[span], PAGE)[0]), [0usize; 0]);
        memory.bytes()[7 * PAGE] = 10;
        assert_eq!(pages(&tracker.collect(&[span], PAGE)[0]), [7]);
        // Reading is not writing.
        assert!(memory.bytes().contains(&10));
        assert_eq!(pages(&tracker.collect(&[span], PAGE)[0]), [0usize; 0]);
    }
}

#[test]
fn threads_and_system_calls_are_seen() {
    for tracker in trackers() {
        let mut memory = Memory::new(64);
        memory.bytes().fill(1);
        let span = memory.span();
        assert!(tracker.arm(span));
        std::thread::scope(|scope| {
            for (at, part) in memory.bytes().chunks_mut(16 * PAGE).enumerate() {
                scope.spawn(move || part[at * PAGE] = 5);
            }
        });
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[7; 10]).unwrap();
        reader.read_exact(&mut memory.bytes()[40 * PAGE..][..10]).unwrap();
        assert_eq!(pages(&tracker.collect(&[span], PAGE)[0]), [0, 17, 34, 40, 51]);
    }
}

#[test]
fn regions_that_share_a_page_both_learn_of_a_write() {
    for tracker in trackers() {
        let mut memory = Memory::new(8);
        memory.bytes().fill(1);
        let start = memory.span().start;
        let (a, b) = (
            Span { start: start + 100, bytes: 3 * PAGE },
            Span { start: start + 100 + 3 * PAGE, bytes: 2 * PAGE },
        );
        assert!(tracker.arm(a) && tracker.arm(b));
        memory.bytes()[3 * PAGE + 99] = 2;
        let dirty = tracker.collect(&[a, b], PAGE);
        assert_eq!(pages(&dirty[0]), [2], "the byte is in the last page of the first region");
        assert_eq!(pages(&dirty[1]), [0], "the same page of the system holds the second's start");
    }
}

#[test]
fn memory_mapped_anew_is_wholly_dirty() {
    for tracker in trackers() {
        let memory = Memory::new(16);
        let span = memory.span();
        assert!(tracker.arm(span));
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: replaces half of our own mapping, behind the tracker's back.
        unsafe { mmap_anonymous(memory.0.cast(), 8 * PAGE, prot, flags).unwrap() };
        assert_eq!(tracker.collect(&[span], PAGE)[0], Dirty::All);
    }
}

#[test]
fn dropped_pages_are_dirty() {
    for tracker in trackers() {
        let mut memory = Memory::new(16);
        memory.bytes().fill(1);
        let span = memory.span();
        assert!(tracker.arm(span));
        // SAFETY: our own memory; its contents become zero, without any write.
        unsafe {
            let advice = rustix::mm::Advice::LinuxDontNeed;
            rustix::mm::madvise(memory.0.add(4 * PAGE).cast(), 2 * PAGE, advice).unwrap();
        }
        assert_eq!(memory.bytes()[4 * PAGE], 0);
        let dirty = pages(&tracker.collect(&[span], PAGE)[0]);
        assert!(dirty.contains(&4) && dirty.contains(&5), "{dirty:?}");
    }
}

#[test]
fn shared_memory_is_refused() {
    for tracker in trackers() {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), 4 * PAGE, prot, MapFlags::SHARED).unwrap()
        };
        let memory = Memory(start.cast(), 4 * PAGE);
        assert!(!tracker.arm(memory.span()));
        assert_eq!(tracker.collect(&[memory.span()], PAGE)[0], Dirty::All);
    }
}

#[test]
fn a_watch_leaves_busy_regions_to_hashing() {
    for tracker in trackers() {
        let (mut quiet, mut busy) = (Memory::new(512), Memory::new(512));
        quiet.bytes().fill(1);
        busy.bytes().fill(1);
        let spans = [quiet.span(), busy.span()];
        let mut watch = Watch::new(tracker, false);
        assert_eq!(watch.collect(&spans, PAGE), [Dirty::All, Dirty::All]);
        for span in watch.to_arm(&spans) {
            let watched = watch.arm(span);
            watch.armed(span, watched);
        }
        assert!(watch.to_arm(&spans).is_empty());
        quiet.bytes()[5 * PAGE] = 2;
        busy.bytes().fill(2);
        let dirty = watch.collect(&spans, PAGE);
        assert_eq!(pages(&dirty[0]), [5]);
        assert_eq!(dirty[1].count(), Some(512));
        assert_eq!(watch.collect(&spans, PAGE)[1], Dirty::All, "now it is hashed");
        assert_eq!(pages(&watch.collect(&spans, PAGE)[0]), [0usize; 0]);
    }
}
