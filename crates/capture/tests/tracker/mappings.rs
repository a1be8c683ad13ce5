//! What happens to memory behind a tracker's back: given back, moved, mapped anew, backed by
//! huge pages.

use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap};
use standfast_capture::Dirty;

use crate::world::{Memory, PAGE, arm, assert_covers, assert_pages, collect, trackers};

#[test]
fn memory_mapped_anew_is_wholly_dirty() {
    for tracker in trackers() {
        let memory = Memory::filled(16);
        let span = memory.span();
        arm(&*tracker, span);
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: replaces half of our own mapping, behind the tracker's back.
        unsafe { mmap_anonymous(memory.0.cast(), 8 * PAGE, prot, flags).unwrap() };
        assert_eq!(collect(&*tracker, span), Dirty::All, "{}", tracker.name());
        tracker.disarm(span);
        // SAFETY: both halves are ours, and writable whatever the tracker did.
        unsafe { memory.0.write_bytes(2, 16 * PAGE) };
    }
}

#[test]
fn memory_with_a_hole_is_wholly_dirty() {
    for tracker in trackers() {
        let memory = Memory::filled(16);
        let span = memory.span();
        arm(&*tracker, span);
        // SAFETY: our own pages, which nobody uses any more.
        unsafe { rustix::mm::munmap(memory.0.add(4 * PAGE).cast(), 4 * PAGE).unwrap() };
        assert_eq!(collect(&*tracker, span), Dirty::All, "{}", tracker.name());
        tracker.disarm(span);
        // SAFETY: what is left of it is ours, and writable whatever the tracker did.
        unsafe {
            memory.0.write_bytes(2, 4 * PAGE);
            memory.0.add(8 * PAGE).write_bytes(2, 8 * PAGE);
        }
    }
}

#[test]
fn moved_memory_is_wholly_dirty_where_it_was() {
    for tracker in trackers() {
        let mut memory = Memory::filled(16);
        let span = memory.span();
        arm(&*tracker, span);
        let room = Memory::new(16);
        let flags = MremapFlags::MAYMOVE;
        let bytes = 16 * PAGE;
        // SAFETY: the pages move to a place of ours, which gives way.
        let moved = unsafe {
            rustix::mm::mremap_fixed(memory.0.cast(), bytes, bytes, flags, room.0.cast()).unwrap()
        };
        assert_eq!(moved.cast(), room.0);
        assert_eq!(collect(&*tracker, span), Dirty::All, "{}", tracker.name());
        // SAFETY: the moved pages are there and can be read.
        assert_eq!(unsafe { room.0.add(5 * PAGE).read() }, 1);
        memory.1 = 0;
    }
}

#[test]
fn memory_that_shrank_is_wholly_dirty() {
    for tracker in trackers() {
        let mut memory = Memory::filled(16);
        let span = memory.span();
        arm(&*tracker, span);
        // SAFETY: shrinks our own mapping.
        unsafe { mremap(memory.0.cast(), 16 * PAGE, 8 * PAGE, MremapFlags::empty()).unwrap() };
        memory.1 = 8 * PAGE;
        assert_eq!(collect(&*tracker, span), Dirty::All, "{}", tracker.name());
    }
}

#[test]
fn dropped_pages_are_dirty() {
    for tracker in trackers() {
        for read_after in [false, true] {
            let mut memory = Memory::filled(16);
            let span = memory.span();
            arm(&*tracker, span);
            // SAFETY: our own memory; its contents become zero, without any write.
            unsafe {
                let advice = Advice::LinuxDontNeed;
                madvise(memory.0.add(4 * PAGE).cast(), 2 * PAGE, advice).unwrap();
            }
            if read_after {
                assert_eq!(memory.bytes()[4 * PAGE], 0);
            }
            assert_covers(&collect(&*tracker, span), &[4, 5], tracker.name());
        }
    }
}

#[test]
fn huge_pages_are_told_page_by_page() {
    const HUGE: usize = 512;
    for tracker in trackers() {
        let (tracker, who) = (&*tracker, tracker.name());
        let mut memory = Memory::new(4 * HUGE);
        // SAFETY: advice about our own memory.
        unsafe { madvise(memory.0.cast(), memory.1, Advice::LinuxHugepage).unwrap() };
        memory.bytes().fill(1);
        let span = memory.span();
        arm(tracker, span);
        collect(tracker, span);
        let written = [3, HUGE, HUGE + 1, 3 * HUGE + 77];
        for page in written {
            memory.bytes()[page * PAGE + 5] = 2;
        }
        assert_pages(&collect(tracker, span), &written, who);
    }
}
