//! One suite for every dirty tracker: nothing written may be missed.

mod mappings;
mod world;

use std::io::{Read, Write};

use rustix::mm::MapFlags;
use standfast_capture::{Dirty, Span, Watch};
use world::{Memory, PAGE, arm, assert_covers, assert_pages, collect, trackers};

#[test]
fn every_write_is_seen_once() {
    for tracker in trackers() {
        let (tracker, who) = (&*tracker, tracker.name());
        let mut memory = Memory::filled(300);
        let span = memory.span();
        arm(tracker, span);
        assert_pages(&collect(tracker, span), &[], who);
        for page in [0, 7, 99, 100, 250, 299] {
            memory.bytes()[page * PAGE + 17] = 9;
        }
        assert_pages(&collect(tracker, span), &[0, 7, 99, 100, 250, 299], who);
        assert_pages(&collect(tracker, span), &[], who);
        memory.bytes()[7 * PAGE] = 10;
        assert_pages(&collect(tracker, span), &[7], who);
        // Reading is not writing.
        assert!(memory.bytes().contains(&10));
        assert_pages(&collect(tracker, span), &[], who);
        tracker.disarm(span);
        memory.bytes().fill(3);
        assert_eq!(collect(tracker, span), Dirty::All, "{who} is not watching any more");
    }
}

#[test]
fn pages_that_were_never_touched_are_seen_when_written() {
    for tracker in trackers() {
        let (tracker, who) = (&*tracker, tracker.name());
        let mut memory = Memory::new(64);
        memory.bytes()[..8 * PAGE].fill(1);
        let span = memory.span();
        arm(tracker, span);
        collect(tracker, span);
        // Read first: the system then backs it by its common page of zeros.
        assert_eq!(memory.bytes()[40 * PAGE], 0);
        for page in [20, 40, 63] {
            memory.bytes()[page * PAGE] = 1;
        }
        assert_covers(&collect(tracker, span), &[20, 40, 63], who);
    }
}

#[test]
fn several_threads_are_seen() {
    for tracker in trackers() {
        let (tracker, who) = (&*tracker, tracker.name());
        let mut memory = Memory::filled(256);
        let span = memory.span();
        arm(tracker, span);
        for round in 0..8usize {
            std::thread::scope(|scope| {
                for (at, part) in memory.bytes().chunks_mut(64 * PAGE).enumerate() {
                    // Two threads write to each page, and meet in its first write.
                    let (left, right) = part[(at + round) * PAGE..].split_at_mut(100);
                    scope.spawn(move || left.fill(round as u8));
                    scope.spawn(move || right[..100].fill(round as u8));
                }
            });
            let expected: Vec<usize> = (0..4).map(|at| at * 64 + at + round).collect();
            assert_pages(&collect(tracker, span), &expected, who);
        }
    }
}

#[test]
fn system_calls_are_seen_or_refused() {
    for tracker in trackers() {
        let (tracker, who) = (&*tracker, tracker.name());
        let mut memory = Memory::filled(64);
        let span = memory.span();
        arm(tracker, span);
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[7; 10]).unwrap();
        let done = reader.read_exact(&mut memory.bytes()[40 * PAGE..][..10]);
        match tracker.admits_system_calls() {
            true => {
                done.unwrap();
                assert_pages(&collect(tracker, span), &[40], who);
            }
            false => {
                assert_eq!(done.unwrap_err().raw_os_error(), Some(libc::EFAULT), "{who}");
                assert_pages(&collect(tracker, span), &[], who);
            }
        }
    }
}

/// Writes to this process's memory as a debugger does.
fn write_past_protection(at: *mut u8, byte: u8) {
    use std::os::unix::fs::FileExt;
    let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
    memory.write_all_at(&[byte], at as u64).unwrap();
}

#[test]
fn writes_from_outside_are_seen_where_system_calls_are() {
    for tracker in trackers() {
        let (tracker, who) = (&*tracker, tracker.name());
        let mut memory = Memory::filled(64);
        let span = memory.span();
        arm(tracker, span);
        if !tracker.admits_system_calls() {
            continue;
        }
        write_past_protection(memory.bytes()[30 * PAGE..].as_mut_ptr(), 9);
        assert_eq!(memory.bytes()[30 * PAGE], 9);
        assert_pages(&collect(tracker, span), &[30], who);
    }
}

#[test]
fn regions_that_share_a_page_both_learn_of_a_write() {
    for tracker in trackers() {
        let (tracker, who) = (&*tracker, tracker.name());
        let mut memory = Memory::filled(8);
        let start = memory.span().start;
        let (a, b) = (
            Span { start: start + 100, bytes: 3 * PAGE },
            Span { start: start + 100 + 3 * PAGE, bytes: 2 * PAGE },
        );
        arm(tracker, a);
        arm(tracker, b);
        memory.bytes()[3 * PAGE + 99] = 2;
        let dirty = tracker.collect(&[a, b], PAGE);
        assert_covers(&dirty[0], &[2], who);
        assert_covers(&dirty[1], &[0], who);
        // What one region no longer needs, the other still does.
        tracker.disarm(a);
        memory.bytes()[3 * PAGE + 200] = 3;
        memory.bytes()[4 * PAGE + 200] = 3;
        assert_covers(&collect(tracker, b), &[0, 1], who);
    }
}

#[test]
fn shared_memory_is_refused() {
    for tracker in trackers() {
        let memory = Memory::with(4, MapFlags::SHARED);
        assert!(!tracker.arm(memory.span()), "{}", tracker.name());
        assert_eq!(collect(&*tracker, memory.span()), Dirty::All);
    }
}

#[test]
fn a_watch_leaves_busy_regions_to_hashing() {
    for tracker in trackers() {
        let who = tracker.name();
        let (mut quiet, mut busy) = (Memory::filled(512), Memory::filled(512));
        let spans = [quiet.span(), busy.span()];
        let mut watch = Watch::new(tracker, Some(4));
        assert_eq!(watch.collect(&spans, PAGE), [Dirty::All, Dirty::All]);
        for span in watch.to_arm(&spans) {
            watch.start(span);
        }
        assert!(watch.to_arm(&spans).is_empty());
        quiet.bytes()[5 * PAGE] = 2;
        busy.bytes().fill(2);
        let dirty = watch.collect(&spans, PAGE);
        assert_pages(&dirty[0], &[5], who);
        assert!(dirty[1].count().is_none_or(|pages| pages == 512));
        assert_eq!(watch.collect(&spans, PAGE)[1], Dirty::All, "now it is hashed");
        assert_pages(&watch.collect(&spans, PAGE)[0], &[], who);
    }
}
