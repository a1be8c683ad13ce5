//! Snapshots: whatever the program writes meanwhile, what is read is the state at the call.

#[allow(dead_code, reason = "one suite's tools serve several programs")]
#[path = "tracker/world.rs"]
mod world;

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use standfast_capture::{Dirty, Lost, Refused, Snapshot, Snapshots, Span, Wanted};
use standfast_testkit::must::leave_out;
use world::{Memory, PAGE};

const POOL: usize = 1 << 20;

fn snapshots() -> Option<Arc<Snapshots>> {
    let snapshots = Snapshots::new(POOL, true).map(Arc::new);
    let snapshots = snapshots.filter(|snapshots| snapshots.can_shield(&[], &[]).is_ok());
    if snapshots.is_none() {
        leave_out("userfaultfd", "writers cannot be held up here");
    }
    snapshots
}

/// Everything is copied: works in every process.
fn staging(bytes: usize) -> Arc<Snapshots> {
    Arc::new(Snapshots::new(bytes, false).unwrap())
}

/// Writes everywhere without pause, until told to stop.
fn scribble(memory: Span, seed: u64, stop: &AtomicBool, written: &AtomicU64) {
    let mut state = seed;
    while !stop.load(Ordering::Relaxed) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (state >> 20) as usize % (memory.bytes / 8);
        // SAFETY: inside of memory that lives as long as the test; other threads write there too,
        // each whole words, and nobody trusts their values.
        unsafe { ((memory.start + at * 8) as *mut AtomicU64).as_ref() }
            .unwrap()
            .store(state, Ordering::Relaxed);
        written.fetch_add(1, Ordering::Relaxed);
    }
}

fn everything(span: Span) -> Wanted {
    Wanted { span, pages: Dirty::All }
}

#[test]
fn a_snapshot_is_the_state_at_the_call_while_threads_scribble() {
    let Some(snapshots) = snapshots() else { return };
    // 32 times the pool; regions that start and end within pages, and a small one.
    let mut memory = Memory::filled(8192);
    let start = memory.span().start;
    let spans = [
        Span { start: start + 40, bytes: 5000 * PAGE },
        Span { start: start + 5001 * PAGE + 8, bytes: 48 },
        Span { start: start + 5002 * PAGE + 8, bytes: 3000 * PAGE + 816 },
    ];
    let wanted: Vec<Wanted> = spans.iter().map(|span| everything(*span)).collect();
    let shielded = snapshots.shielded(&wanted, PAGE);
    assert_eq!(shielded, [true, false, true]);
    for round in 0..3u64 {
        let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
        for (at, word) in memory.bytes().chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&(at as u64 * (round + 3)).to_ne_bytes());
        }
        let reference = memory.bytes().to_vec();
        // SAFETY: the memory outlives the snapshot; the writers start after the call.
        let snapshot = unsafe { snapshots.take(&wanted, &shielded, PAGE, 2) }.unwrap();
        std::thread::scope(|scope| {
            for seed in 1..=3 {
                let (all, stop, written) = (memory.span(), &stop, &written);
                scope.spawn(move || scribble(all, seed * 77 + round, stop, written));
            }
            // The writers are ahead of the reader, until the pool is full and they wait for it.
            while written.load(Ordering::Relaxed) < 8 {
                std::thread::yield_now();
            }
            let mut page = vec![0; PAGE];
            for (region, span) in spans.iter().enumerate() {
                for at in 0..span.bytes.div_ceil(PAGE) {
                    let bytes = PAGE.min(span.bytes - at * PAGE);
                    snapshot.read(region, at, &mut page[..bytes]);
                    let offset = span.start - start + at * PAGE;
                    assert!(page[..bytes] == reference[offset..][..bytes], "{region} {at}");
                }
                snapshot.finish_region(region);
            }
            drop(snapshot);
            let so_far = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) < so_far + 1000 {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(memory.bytes() != reference, "they did write");
    }
}

#[test]
fn what_is_staged_outlives_its_memory() {
    let mut memory = Memory::filled(2000);
    let start = memory.span().start;
    let spans = [
        Span { start: start + 40, bytes: 1000 * PAGE + 17 },
        Span { start: start + 1001 * PAGE + 8, bytes: 48 },
        Span { start: start + 1002 * PAGE, bytes: 900 * PAGE },
    ];
    for (at, word) in memory.bytes().chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(at as u64 * 3).to_ne_bytes());
    }
    let reference = memory.bytes().to_vec();
    let wanted: Vec<Wanted> = spans.iter().map(|span| everything(*span)).collect();
    let snapshots = staging(Snapshots::bytes_for(&wanted, PAGE));
    let is_forbidden = snapshots.can_shield(&wanted, &[false; 3]);
    assert_eq!(is_forbidden, Err(Refused::Forbidden), "nobody asked for it");
    // SAFETY: the memory is mapped, and nobody writes to it until the call returns.
    let snapshot = unsafe { snapshots.take(&wanted, &[false; 3], PAGE, 3) }.unwrap();
    drop(memory);
    assert!(!snapshot.holds_writers());
    for (region, span) in spans.iter().enumerate() {
        let state = &reference[span.start - start..][..span.bytes];
        assert!(snapshot.copied(region) == Some((state, true)), "region {region}");
        let mut page = vec![0; PAGE.min(span.bytes)];
        snapshot.read(region, 0, &mut page);
        assert!(page == state[..page.len()]);
    }
    snapshot.check().unwrap();
}

#[test]
fn staged_pages_lie_end_to_end_and_what_does_not_fit_is_refused() {
    let mut memory = Memory::with(101, MapFlags::SHARED);
    let span = Span { bytes: 100 * PAGE + 100, ..memory.span() };
    let mut bits = vec![0u64; 2];
    let chosen = [0usize, 3, 64, 65, 100];
    chosen.iter().for_each(|page| bits[page / 64] |= 1 << (page % 64));
    chosen.iter().for_each(|page| memory.bytes()[page * PAGE] = *page as u8);
    let wanted = [Wanted { span, pages: Dirty::Pages(bits) }];
    let snapshots = staging(Snapshots::bytes_for(&wanted, PAGE));
    // SAFETY: the memory outlives the call, and nobody writes to it meanwhile.
    let snapshot = unsafe { snapshots.take(&wanted, &[false], PAGE, 2) }.unwrap();
    memory.bytes().fill(9);
    let (bytes, whole) = snapshot.copied(0).unwrap();
    assert!(!whole);
    assert_eq!(bytes.len(), 4 * PAGE + 100, "the last page is short");
    let firsts: Vec<usize> = bytes.chunks(PAGE).map(|page| page[0] as usize).collect();
    assert_eq!(firsts, chosen);
    drop(snapshot);
    // SAFETY: as above.
    let refused = unsafe { snapshots.take(&[everything(span)], &[false], PAGE, 2) }.err();
    assert_eq!(refused, Some(Refused::Pool));
}

#[test]
fn few_pages_are_copied_and_only_those() {
    let Some(snapshots) = snapshots() else { return };
    let mut memory = Memory::filled(1000);
    let span = memory.span();
    let mut bits = vec![0u64; 1000usize.div_ceil(64)];
    let chosen = [0usize, 3, 64, 65, 500, 999];
    chosen.iter().for_each(|page| bits[page / 64] |= 1 << (page % 64));
    let wanted = [Wanted { span, pages: Dirty::Pages(bits) }];
    let shielded = snapshots.shielded(&wanted, PAGE);
    assert_eq!(shielded, [false]);
    for page in chosen {
        memory.bytes()[page * PAGE] = page as u8;
    }
    // SAFETY: the memory outlives the snapshot, and this thread writes after the call.
    let snapshot = unsafe { snapshots.take(&wanted, &shielded, PAGE, 2) }.unwrap();
    memory.bytes().fill(9);
    let mut out = vec![0; PAGE];
    for page in chosen {
        snapshot.read(0, page, &mut out);
        assert_eq!((out[0], out[1]), (page as u8, 1));
    }
}

#[test]
fn system_calls_wait_like_everybody_else() {
    let Some(snapshots) = snapshots() else { return };
    let mut memory = Memory::filled(256);
    let wanted = [everything(memory.span())];
    // SAFETY: the memory outlives the snapshot, and this thread writes after the call.
    let snapshot = unsafe { snapshots.take(&wanted, &[true], PAGE, 1) }.unwrap();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[7; 3 * PAGE]).unwrap();
    reader.read_exact(&mut memory.bytes()[100 * PAGE + 5..][..3 * PAGE]).unwrap();
    let mut out = vec![0; PAGE];
    for page in 0..256 {
        snapshot.read(0, page, &mut out);
        assert!(out.iter().all(|byte| *byte == 1), "page {page}");
    }
    drop(snapshot);
    assert_eq!(memory.bytes()[100 * PAGE + 5], 7);
}

#[test]
fn a_snapshot_that_is_given_up_frees_its_writers() {
    let Some(snapshots) = snapshots() else { return };
    let mut memory = Memory::filled(4096);
    let wanted = [everything(memory.span())];
    for _ in 0..10 {
        // SAFETY: the memory outlives the snapshot; the writer starts after the call.
        let snapshot = unsafe { snapshots.take(&wanted, &[true], PAGE, 1) }.unwrap();
        let bytes = memory.bytes();
        std::thread::scope(|scope| {
            // It fills the pool many times over: without a reader it must wait.
            scope.spawn(move || bytes.fill(5));
            std::thread::yield_now();
            drop(snapshot);
        });
        assert!(memory.bytes().iter().all(|byte| *byte == 5));
    }
}

#[test]
fn memory_that_cannot_be_protected_is_refused() {
    let Some(snapshots) = snapshots() else { return };
    let memory = Memory::with(1000, MapFlags::SHARED);
    let wanted = [everything(memory.span())];
    // SAFETY: nobody writes.
    let refused = unsafe { snapshots.take(&wanted, &[true], PAGE, 1) }.err();
    assert_eq!(refused, Some(Refused::Memory));
    let span = memory.span();
    let many = [Wanted { span, pages: Dirty::Pages(vec![u64::MAX; 1000 / 64]) }];
    assert_eq!(snapshots.shielded(&many, PAGE), [true], "more than the pool can take");
    // SAFETY: nobody writes.
    let refused = unsafe { snapshots.take(&many, &[false], PAGE, 1) }.err();
    assert_eq!(refused, Some(Refused::Pool));
}

/// Reads everything; what check says then.
fn read_all(snapshot: &Snapshot, pages: usize) -> Result<(), Lost> {
    let mut out = vec![0; PAGE];
    (0..pages).for_each(|page| snapshot.read(0, page, &mut out));
    snapshot.finish_region(0);
    snapshot.check()
}

#[test]
fn memory_given_back_before_it_was_read_is_noticed() {
    let Some(snapshots) = snapshots() else { return };
    let memory = Memory::filled(2048);
    let wanted = [everything(memory.span())];
    for (advice, page) in [(Advice::LinuxDontNeed, 2000), (Advice::LinuxFree, 1)] {
        // SAFETY: the memory outlives the snapshot, and nobody writes.
        let snapshot = unsafe { snapshots.take(&wanted, &[true], PAGE, 2) }.unwrap();
        // SAFETY: our own memory.
        unsafe { madvise(memory.0.add(page * PAGE).cast(), 3 * PAGE, advice).unwrap() };
        assert_eq!(read_all(&snapshot, 2048), Err(Lost));
    }
    // What was read may go.
    // SAFETY: as above.
    let snapshot = unsafe { snapshots.take(&wanted, &[true], PAGE, 2) }.unwrap();
    read_all(&snapshot, 2048).unwrap();
    // SAFETY: our own memory.
    unsafe { madvise(memory.0.cast(), memory.1, Advice::LinuxDontNeed).unwrap() };
    snapshot.check().unwrap();
}

#[test]
fn memory_mapped_anew_before_it_was_read_is_noticed() {
    let Some(snapshots) = snapshots() else { return };
    let memory = Memory::filled(2048);
    let wanted = [everything(memory.span())];
    // SAFETY: the memory outlives the snapshot, and nobody writes.
    let snapshot = unsafe { snapshots.take(&wanted, &[true], PAGE, 2) }.unwrap();
    let (flags, prot) = (MapFlags::PRIVATE | MapFlags::FIXED, ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: replaces part of our own mapping, behind the snapshot's back.
    unsafe { mmap_anonymous(memory.0.add(1000 * PAGE).cast(), 8 * PAGE, prot, flags).unwrap() };
    assert_eq!(read_all(&snapshot, 2048), Err(Lost));
}

#[test]
fn huge_pages_are_held_like_others() {
    let Some(snapshots) = snapshots() else { return };
    let mut memory = Memory::new(8 * 512);
    // SAFETY: advice about our own memory.
    unsafe { madvise(memory.0.cast(), memory.1, Advice::LinuxHugepage).unwrap() };
    let wanted = [everything(memory.span())];
    for round in 1..=4u8 {
        memory.bytes().fill(round);
        let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
        // SAFETY: the memory outlives the snapshot; the writers start after the call.
        let snapshot = unsafe { snapshots.take(&wanted, &[true], PAGE, 2) }.unwrap();
        std::thread::scope(|scope| {
            for seed in 1..=2 {
                let (all, stop, written) = (memory.span(), &stop, &written);
                scope.spawn(move || scribble(all, seed * 99 + u64::from(round), stop, written));
            }
            while written.load(Ordering::Relaxed) < 4 {
                std::thread::yield_now();
            }
            let mut out = vec![0; PAGE];
            for page in 0..8 * 512 {
                snapshot.read(0, page, &mut out);
                assert!(out.iter().all(|byte| *byte == round), "{round} {page}");
            }
            snapshot.check().unwrap();
            drop(snapshot);
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn who_waits_is_told_and_may_be_let_go() {
    let Some(snapshots) = snapshots() else { return };
    let mut memory = Memory::filled(4096);
    let wanted = [everything(memory.span())];
    // SAFETY: the memory outlives the snapshot; the writer starts after the call.
    let snapshot = unsafe { snapshots.take(&wanted, &[true], PAGE, 1) }.unwrap();
    let bytes = memory.bytes();
    std::thread::scope(|scope| {
        // It fills the pool many times over: without a reader it waits, unless it is let go.
        let writer = scope.spawn(move || bytes.fill(5));
        let mut out = vec![0; PAGE];
        let mut seen = 0;
        while !writer.is_finished() {
            for wait in snapshot.waits() {
                for page in wait.pages.clone() {
                    snapshot.peek(0, page, &mut out);
                    assert!(out.iter().all(|byte| *byte == 1), "page {page}");
                    seen += 1;
                }
                snapshot.end_wait(&wait);
            }
            std::thread::yield_now();
        }
        assert!(seen * PAGE >= memory_beyond(POOL), "only {seen} pages");
    });
    let held = snapshot.held();
    assert!(held.ns > 0 && held.bytes >= POOL as u64 / 2, "{held:?}");
    snapshot.check().unwrap();
}

/// What a writer of 4096 pages cannot put into the pool, in bytes, less one granule at each end.
fn memory_beyond(pool: usize) -> usize {
    4096 * PAGE - pool - (128 << 10)
}
