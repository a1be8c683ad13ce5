//! The shield: ranges that are protected against writes until each part was taken or copied.
//!
//! A range is cut into granules. A granule is *pending* until the reader gives it up or a writer
//! comes; the writer's granule is copied into a slot of the pool, and the writer goes on. A granule
//! of several pages makes a sequential writer wait once for all of them.
//!
//! Who waits for whom: a writer waits for the thread that handles faults; when no slot is free, for
//! the reader. The reader waits for nobody, so it always comes by.
//!
//! Invariants:
//! - Memory of a pending granule is as it was when the shield was raised: a writer goes on only
//!   after its granule's state has changed, under the lock under which the reader looks.
//! - A slot belongs to one granule or to the free ones.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::pool::Pool;
use crate::kernel::system_page;
use crate::kernel::userfault::{Purpose, Userfault};

/// What one writer makes free at a time.
pub(crate) const GRANULE: usize = 64 << 10;
/// Granules that the reader is done with are let go in stretches: one call each.
const STRETCH: usize = 1 << 20;

/// Holds writers up while a snapshot is read.
pub(super) struct Shield {
    inner: Arc<Inner>,
    stop: Arc<OwnedFd>,
    handler: Option<JoinHandle<()>>,
}

struct Inner {
    handle: Userfault,
    pool: Pool,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    ranges: Vec<Shielded>,
    /// Places in the pool.
    free: Vec<usize>,
    /// Granules whose writers wait for a slot: range and number.
    waiting: Vec<(usize, usize)>,
}

struct Shielded {
    range: Range<usize>,
    granules: Vec<State>,
    /// Granules before this one were given up by the reader.
    given_up: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    /// At this place of the pool.
    Copied(usize),
    /// Nobody needs it any more.
    Over,
}

impl Shielded {
    fn granule(&self, number: usize) -> Range<usize> {
        let start = self.range.start + number * GRANULE;
        start..(start + GRANULE).min(self.range.end)
    }
}

impl Shield {
    pub(super) fn new(pool: Pool) -> Option<Self> {
        let handle = Userfault::open(Purpose::HoldWrites)?;
        let inner = Arc::new(Inner { handle, pool, table: Mutex::default() });
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).ok()?);
        let (own, end) = (Arc::clone(&inner), Arc::clone(&stop));
        let handler = std::thread::Builder::new()
            .name("sf-cow".into())
            .spawn(move || handle_faults(&own, &end))
            .ok()?;
        Some(Self { inner, stop, handler: Some(handler) })
    }

    /// Protects ranges of whole pages; copies may use the pool from this place on. False if that
    /// is not possible: nothing is protected then.
    pub(super) fn raise(&self, ranges: Vec<Range<usize>>, slots_from: usize) -> bool {
        let Inner { handle, pool, .. } = &*self.inner;
        let shielded = |range: Range<usize>| Shielded {
            granules: vec![State::Pending; range.len().div_ceil(GRANULE)],
            range,
            given_up: 0,
        };
        let first = slots_from.next_multiple_of(64);
        let last = (pool.bytes() + 1).saturating_sub(GRANULE);
        *self.inner.table() = Table {
            ranges: ranges.iter().cloned().map(shielded).collect(),
            free: (first..last).step_by(GRANULE).collect(),
            waiting: Vec::new(),
        };
        let raised = ranges
            .iter()
            .all(|range| handle.register_writes(range).is_ok() && handle.protect(range).is_ok());
        if !raised {
            self.lower();
        }
        raised
    }

    /// Lets every writer go on.
    pub(super) fn lower(&self) {
        let table = std::mem::take(&mut *self.inner.table());
        for shielded in table.ranges {
            self.inner.handle.unregister(&shielded.range);
        }
    }

    /// Reads memory of a range as it was when the shield was raised.
    pub(super) fn read(&self, range: usize, wanted: &Range<usize>, out: &mut [u8]) {
        let table = self.inner.table();
        let shielded = &table.ranges[range];
        let mut at = wanted.start;
        while at < wanted.end {
            let number = (at - shielded.range.start) / GRANULE;
            let granule = shielded.granule(number);
            let end = granule.end.min(wanted.end);
            let part = &mut out[at - wanted.start..end - wanted.start];
            match shielded.granules[number] {
                State::Copied(place) => self.inner.pool.read(place + (at - granule.start), part),
                // SAFETY: the memory is mapped while a snapshot lives, and nobody writes to a
                // pending granule while the table is locked.
                State::Pending => unsafe {
                    std::ptr::copy_nonoverlapping(at as *const u8, part.as_mut_ptr(), part.len());
                },
                State::Over => unreachable!("what was given up is not read"),
            }
            at = end;
        }
    }

    /// Gives up everything of a range that lies before an address, in whole stretches unless that
    /// is its end.
    pub(super) fn give_up(&self, range: usize, before: usize) {
        let mut table = self.inner.table();
        let shielded = &mut table.ranges[range];
        let end = before.clamp(shielded.range.start, shielded.range.end);
        let at_end = end == shielded.range.end;
        let done = match at_end {
            true => shielded.granules.len(),
            false => (end - shielded.range.start) / GRANULE,
        };
        let fresh = shielded.given_up..done;
        if fresh.is_empty() || !(at_end || fresh.len() * GRANULE >= STRETCH) {
            return;
        }
        let stretch = shielded.granule(fresh.start).start..shielded.granule(fresh.end - 1).end;
        let states = &mut shielded.granules[fresh];
        let slots: Vec<usize> = states
            .iter_mut()
            .filter_map(|state| match std::mem::replace(state, State::Over) {
                State::Copied(place) => Some(place),
                _ => None,
            })
            .collect();
        shielded.given_up = done;
        table.free.extend(slots);
        // Writers that wait for this stretch are let go with it.
        let _ = self.inner.handle.release(&stretch);
        self.inner.serve_waiting(&mut table);
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        self.lower();
        // Eight bytes always fit: nobody else writes to it.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(handler) = self.handler.take() {
            // A handler that panicked has reported it on stderr.
            let _ = handler.join();
        }
    }
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a writer go on, or notes that it waits.
    fn fault(&self, address: usize) {
        let mut table = self.table();
        let at = table.ranges.iter().position(|shielded| shielded.range.contains(&address));
        let Some(at) = at else {
            // The shield was lowered in the meantime.
            let page = address / system_page() * system_page();
            self.handle.wake(&(page..page + system_page()));
            return;
        };
        let number = (address - table.ranges[at].range.start) / GRANULE;
        if !self.admit(&mut table, at, number) && !table.waiting.contains(&(at, number)) {
            table.waiting.push((at, number));
        }
    }

    /// Copies a granule if it is still pending, and lets its writers go on; false if no slot is
    /// free.
    fn admit(&self, table: &mut Table, range: usize, number: usize) -> bool {
        let Table { ranges, free, .. } = table;
        let shielded = &mut ranges[range];
        let granule = shielded.granule(number);
        if shielded.granules[number] == State::Pending {
            let Some(place) = free.pop() else { return false };
            // SAFETY: the granule is mapped and protected; the slot was free.
            unsafe {
                let from = granule.start as *const u8;
                std::ptr::copy_nonoverlapping(from, self.pool.at(place), granule.len());
            }
            shielded.granules[number] = State::Copied(place);
        }
        // Memory that was unmapped has no writers any more.
        let _ = self.handle.release(&granule);
        true
    }

    fn serve_waiting(&self, table: &mut Table) {
        while let Some((range, number)) = table.waiting.pop() {
            if !self.admit(table, range, number) {
                table.waiting.push((range, number));
                return;
            }
        }
    }
}

fn handle_faults(inner: &Inner, stop: &OwnedFd) {
    standfast_store::keep_signals_away();
    loop {
        let mut watched =
            [PollFd::new(&inner.handle, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        // Interrupted calls are made again.
        if poll(&mut watched, None).is_err() {
            continue;
        }
        let over = !watched[1].revents().is_empty();
        inner.handle.faults(|address| inner.fault(address));
        if over {
            return;
        }
    }
}
