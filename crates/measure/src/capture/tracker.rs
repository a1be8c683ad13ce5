//! Dirty trackers: what asking costs, and what the first write to a page costs.

use std::time::Duration;

use standfast_capture::{Mprotect, Span, Tracker, Uffd};

use super::{Ground, LETTER, PAGE, millis};
use crate::Measured;
use crate::figure::{Bar, Better, Figure, Setting, timed};

/// Pages that are written to learn what a first write costs: each may split a mapping, and their
/// number is limited.
const WRITES: usize = 10_000;

struct Costs {
    /// Finding every tenth page and starting anew.
    scan: Duration,
    first_write_us: f64,
}

pub(super) fn measure(setting: &Setting, ground: &mut Ground, each: &mut dyn FnMut(Measured)) {
    let mut found = Vec::new();
    let trackers: [Option<Box<dyn Tracker>>; 2] = [
        Uffd::new().map(|tracker| Box::new(tracker) as _),
        Mprotect::new().map(|tracker| Box::new(tracker) as _),
    ];
    for tracker in trackers.into_iter().flatten() {
        let Some(costs) = costs(&*tracker, ground, setting.rounds) else { continue };
        let name = tracker.name();
        let scan = format!("{name}: scan and re-arm, 10 % written");
        each(Measured::Figure(Figure::time(scan, millis(costs.scan), "ms")));
        let write = format!("{name}: first write of a page");
        each(Measured::Figure(Figure::time(write, costs.first_write_us, "us")));
        found.push(costs);
    }
    let [uffd, mprotect] = &found[..] else { return };
    each(Measured::Bar(ground.bar(
        "uffd: scan and re-arm with 10 % written, share of memcpy",
        uffd.scan,
        0.03,
    )));
    let share = uffd.first_write_us / mprotect.first_write_us;
    let bar = Bar::new(LETTER, "first write, uffd to mprotect", share, Better::Lower, 0.5);
    each(Measured::Bar(bar.ceiling(mprotect.first_write_us, "us, mprotect")));
}

fn costs(tracker: &dyn Tracker, ground: &mut Ground, rounds: usize) -> Option<Costs> {
    let memory = &mut ground.memory;
    let span = Span { start: memory.as_ptr() as usize, bytes: memory.len() };
    if !tracker.arm(span) {
        return None;
    }
    let (mut scan, mut write) = (Duration::MAX, Duration::MAX);
    let every = memory.len() / PAGE / WRITES.min(memory.len() / PAGE / 10);
    for _ in 0..rounds.max(3) {
        write = write.min(timed(|| touch(memory, every)).1);
        tracker.collect(&[span], PAGE);
        // Few enough to stay below the limit of mappings, also for the tracker that splits them.
        touch(memory, 10);
        scan = scan.min(timed(|| tracker.collect(&[span], PAGE)).1);
    }
    tracker.disarm(span);
    let writes = memory.len() / PAGE / every;
    Some(Costs { scan, first_write_us: write.as_secs_f64() * 1e6 / writes as f64 })
}

/// Writes to every so manieth page.
pub(super) fn touch(memory: &mut [u8], every: usize) {
    memory.chunks_mut(PAGE * every).for_each(|chunk| chunk[0] = chunk[0].wrapping_add(1));
}
