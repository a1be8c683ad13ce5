//! Copies of the memory that the twin itself is going to change.
//!
//! The engine uses the C library, so that library's data, our own, the loader's, this thread's
//! stack and thread-local memory change while it works. All of that is small: every mapping of
//! moderate size is copied, whoever it belongs to. Of large ones (the heap, arrays, stacks of
//! threads) only the C library's records of threads are copied, for they form a list that grows
//! when the engine starts a thread; the rest is read in place.
//!
//! Invariants:
//! - The twin's own stack below the place of the fork is dead: it is neither copied nor captured.

use std::ops::Range;

use crate::control::Control;
use crate::maps::{self, Line};
use crate::{system, zone};

/// Mappings up to this size are copied.
const COPIED_BYTES_MAX: usize = 4 << 20;
/// Room for the kernel's table.
const TABLE_BYTES: usize = 64 << 20;
/// The C library's record of a thread begins at its pointer and is shorter than this.
const RECORD_BYTES: usize = 8 << 10;
const PAGE: usize = 4096;
/// Room for the list of copies.
const LIST_BYTES: usize = 64 << 20;

/// What was copied to where.
#[derive(Clone, Copy)]
struct Copied {
    start: usize,
    end: usize,
    to: usize,
}

/// The table of mappings at the fork, and the copies.
pub(super) struct Copies {
    table: &'static [u8],
    list: &'static [Copied],
    /// What is dead.
    dead: Range<usize>,
}

impl Copies {
    /// Reads the table and copies; allocates nothing. `stack` is the place of the fork.
    pub(super) fn take(control: &Control, stack: usize) -> Option<Self> {
        let base = system::map(zone::TWIN, zone::TWIN_BYTES)?;
        // SAFETY: fresh memory, cut into parts that do not overlap.
        let table = unsafe { std::slice::from_raw_parts_mut(base, TABLE_BYTES) };
        let table: &'static [u8] = maps::read(table)?;
        // SAFETY: as above; zero is a valid list.
        let list = unsafe {
            let count = LIST_BYTES / size_of::<Copied>();
            std::slice::from_raw_parts_mut(base.add(TABLE_BYTES).cast::<Copied>(), count)
        };
        let mut taking = Taking { list, len: 0, to: zone::TWIN + TABLE_BYTES + LIST_BYTES };
        let mut dead = 0..0;
        for line in maps::lines(table).filter(can_change) {
            let range = line.start..line.end;
            if range.contains(&stack) {
                let alive = stack / PAGE * PAGE;
                dead = range.start..alive;
                taking.copy(alive..range.end)?;
            } else if range.len() <= COPIED_BYTES_MAX {
                taking.copy(range)?;
            } else {
                taking.copy_records(control, &range)?;
            }
        }
        let Taking { list, len, .. } = taking;
        list[..len].sort_unstable_by_key(|one| one.start);
        Some(Self { table, list: &list[..len], dead })
    }

    /// The mappings at the fork.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'static>> + use<> {
        maps::lines(self.table).filter(|line| !zone::is_own(line.start))
    }

    /// Cuts a run of pages into parts, each with the place where its contents at the fork can be
    /// read.
    pub(super) fn parts(&self, run: Range<usize>) -> Vec<(Range<usize>, *mut u8)> {
        let mut parts = Vec::new();
        let mut at = if self.dead.contains(&run.start) { self.dead.end } else { run.start };
        for one in self.list.iter().filter(|one| one.start < run.end && run.start < one.end) {
            if at < one.start {
                parts.push((at..one.start, at as *mut u8));
                at = one.start;
            }
            let end = one.end.min(run.end);
            if at < end {
                parts.push((at..end, (one.to + (at - one.start)) as *mut u8));
                at = end;
            }
        }
        if at < run.end {
            parts.push((at..run.end, at as *mut u8));
        }
        parts
    }
}

/// Copies being made.
struct Taking {
    list: &'static mut [Copied],
    len: usize,
    to: usize,
}

impl Taking {
    fn copy(&mut self, range: Range<usize>) -> Option<()> {
        let fits = self.to + range.len() <= zone::TWIN + zone::TWIN_BYTES;
        let slot = self.list.get_mut(self.len).filter(|_| fits)?;
        *slot = Copied { start: range.start, end: range.end, to: self.to };
        // SAFETY: the source is mapped and readable; the destination is fresh.
        unsafe {
            (self.to as *mut u8).copy_from_nonoverlapping(range.start as *const u8, range.len());
        }
        (self.len, self.to) = (self.len + 1, self.to + range.len());
        Some(())
    }

    fn copy_records(&mut self, control: &Control, range: &Range<usize>) -> Option<()> {
        for slot in &control.slots[..control.slots_len] {
            let pointer = slot.thread.pointer as usize;
            if range.contains(&pointer) {
                let start = pointer / PAGE * PAGE;
                let end = (pointer + RECORD_BYTES).next_multiple_of(PAGE).min(range.end);
                self.copy(start..end)?;
            }
        }
        Some(())
    }
}

/// Whether the twin could write to it, and somebody could read it back.
fn can_change(line: &Line<'_>) -> bool {
    !zone::is_own(line.start)
        && !line.is_kernel()
        && !line.shared
        && line.prot & libc::PROT_READ != 0
        && line.prot & libc::PROT_EXEC == 0
}
