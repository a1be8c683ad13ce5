//! Ways to hold a state: how long each stops the program, and what a write costs until the state
//! was taken.

use std::sync::Arc;
use std::time::Duration;

use standfast_capture::{Dirty, Mprotect, Snapshots, Span, Tracker, Wanted};

use super::{Ground, Mapped, PAGE, millis};
use crate::Measured;
use crate::figure::{Figure, timed};

const POOL: usize = 128 << 20;
/// How many protect small pages.
const THREADS: usize = 2;
/// What a snapshot copies at a time.
const GRANULE: usize = 64 << 10;
const WRITES: usize = 1500;

pub(super) fn measure(ground: &mut Ground, mapped: Mapped, each: &mut dyn FnMut(Measured)) {
    let memory = &mut ground.memory;
    let ways = [
        ("userfaultfd", by_userfaultfd(memory), "copies 16 pages at once, or a huge page"),
        ("mprotect", by_mprotect(memory), "a signal a page, and its copy"),
        ("forked child", by_fork(memory), "the kernel copies; no bound on memory"),
    ];
    for (name, costs, note) in ways {
        let Some((blocked, write_us)) = costs else { continue };
        let name = format!("{name}{}", mapped.suffix());
        let figure = Figure::time(format!("{name}: holding all"), millis(blocked), "ms");
        each(Measured::Figure(figure.note("the program waits so long")));
        let figure = Figure::time(format!("{name}: first write"), write_us, "us");
        each(Measured::Figure(figure.note(note)));
    }
}

fn span(memory: &[u8]) -> Span {
    Span { start: memory.as_ptr() as usize, bytes: memory.len() }
}

/// Writes at so many places, so far apart; microseconds a write.
fn write_us(memory: &mut [u8], stride: usize) -> f64 {
    let places = || (0..memory.len()).step_by(stride).take(WRITES);
    let count = places().count();
    let addresses: Vec<usize> = places().collect();
    let ((), time) = timed(|| {
        for at in addresses {
            memory[at] = memory[at].wrapping_add(1);
        }
    });
    time.as_secs_f64() * 1e6 / count as f64
}

fn by_userfaultfd(memory: &mut [u8]) -> Option<(Duration, f64)> {
    let snapshots = Arc::new(Snapshots::new(POOL, true)?);
    let wanted = [Wanted { span: span(memory), pages: Dirty::All }];
    // SAFETY: the memory outlives the snapshot, and nobody else writes to it.
    let (snapshot, blocked) = timed(|| unsafe { snapshots.take(&wanted, &[true], PAGE, THREADS) });
    let snapshot = snapshot.ok()?;
    let write_us = write_us(memory, GRANULE);
    drop(snapshot);
    Some((blocked, write_us))
}

fn by_mprotect(memory: &mut [u8]) -> Option<(Duration, f64)> {
    let tracker = Mprotect::new()?;
    let (armed, blocked) = timed(|| tracker.arm(span(memory)));
    let fault_us = armed.then(|| write_us(memory, GRANULE))?;
    tracker.disarm(span(memory));
    let mut copy = vec![0u8; PAGE];
    let ((), copying) = timed(|| {
        for page in memory.chunks_exact(PAGE).step_by(16).take(WRITES) {
            copy.copy_from_slice(page);
            std::hint::black_box(&copy);
        }
    });
    let pages = memory.len().div_ceil(PAGE * 16).min(WRITES);
    Some((blocked, fault_us + copying.as_secs_f64() * 1e6 / pages as f64))
}

fn by_fork(memory: &mut [u8]) -> Option<(Duration, f64)> {
    // SAFETY: the child does nothing but wait for its end.
    let (child, blocked) = timed(|| match unsafe { libc::fork() } {
        0 => loop {
            // SAFETY: an async-signal-safe call.
            unsafe { libc::pause() };
        },
        child => child,
    });
    if child < 0 {
        return None;
    }
    let write_us = write_us(memory, GRANULE);
    // SAFETY: our own child.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    Some((blocked, write_us))
}
