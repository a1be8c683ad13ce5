//! The shield: ranges that are protected against writes until each part was taken or copied.
//!
//! A writer's granule is copied into a slot of the pool, and the writer goes on. Where memory is
//! mapped by huge pages the whole huge page is copied as long as there is room: it then stays one,
//! and protecting it again costs as much as protecting a single page.
//!
//! Who waits for whom: a writer waits for the thread that handles faults; when no slot is free, for
//! the reader. The reader waits for nobody, so it always comes by. A reader that does wait, for
//! other ranks, must see to those who wait for it ([`Shield::waiting`]).
//!
//! Invariants:
//! - Memory of a pending granule is as it was when the shield was raised: a writer goes on only
//!   after its granule's state has changed, under the lock under which the reader looks.
//! - Memory that was given back or mapped anew before it was read makes the shield *lost*: what
//!   was read may be wrong. Events are read under the lock too, so that a reader who finds the
//!   shield whole has read nothing else.
//! - Nobody waits for the kernel with the table locked: it may be waiting for an event to be read.

mod table;

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::pool::Pool;
use crate::kernel::pagemap::Pagemap;
use crate::kernel::system_page;
use crate::kernel::userfault::{Event, Purpose, Userfault, steps};
use table::{BLOCK, GRANULE, State, Table};

/// A step that takes longer than this is of small pages; then several threads pay.
const STEP_LONG: Duration = Duration::from_micros(100);
/// While at least one slot of so many is free, huge pages are copied whole.
const ROOMY_SHARE: usize = 2;
/// How long the kernel may take until it is asked again.
const AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// What a writer is held up beyond its copy: the fault, and waking the two threads.
const FAULT_NS: u64 = 10_000;

/// What writers were held up, and for how much memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Time, of all writers together.
    pub ns: u64,
    /// Bytes that they wrote to before these were read.
    pub bytes: u64,
}

/// Holds writers up while a snapshot is read.
pub(super) struct Shield {
    inner: Arc<Inner>,
    stop: Arc<OwnedFd>,
    handler: Option<JoinHandle<()>>,
}

struct Inner {
    handle: Userfault,
    pagemap: Pagemap,
    pool: Pool,
    table: Mutex<Table>,
}

impl Shield {
    pub(super) fn new(pool: Pool) -> Option<Self> {
        let handle = Userfault::open(Purpose::HoldWrites)?;
        let pagemap = Pagemap::open().ok()?;
        let inner = Arc::new(Inner { handle, pagemap, pool, table: Mutex::default() });
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).ok()?);
        let (own, end) = (Arc::clone(&inner), Arc::clone(&stop));
        let handler = std::thread::Builder::new()
            .name("sf-cow".into())
            .spawn(move || own.handle_faults(&end))
            .ok()?;
        Some(Self { inner, stop, handler: Some(handler) })
    }

    /// Protects ranges of whole pages, by several threads if that pays; copies may use the pool
    /// from this place on. False if that is not possible: nothing is protected then.
    pub(super) fn raise(&self, ranges: &[Range<usize>], slots_from: usize, threads: usize) -> bool {
        let Inner { handle, pool, .. } = &*self.inner;
        let first = slots_from.next_multiple_of(64);
        let last = (pool.bytes() + 1).saturating_sub(GRANULE);
        *self.inner.table() = Table::new(ranges, (first..last).step_by(GRANULE));
        let registered = ranges.iter().all(|range| handle.register_writes(range).is_ok());
        let raised = registered && self.inner.protect(ranges, threads);
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

    /// What writers were held up since the shield was raised.
    pub(super) fn held(&self) -> Held {
        self.inner.table().held
    }

    /// Whether everything that was read is what it was when the shield was raised.
    pub(super) fn is_whole(&self) -> bool {
        !self.inner.table().lost
    }

    /// Reads memory of a range as it was when the shield was raised.
    ///
    /// # Panics
    /// If it was given up.
    pub(super) fn read(&self, range: usize, wanted: &Range<usize>, out: &mut [u8]) {
        let table = self.inner.table();
        let shielded = &table.ranges[range];
        let mut at = wanted.start;
        while at < wanted.end {
            let number = shielded.number(at);
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

    /// Gives up everything of a range that lies before an address, in whole blocks unless that is
    /// its end.
    pub(super) fn give_up(&self, range: usize, before: usize) {
        let mut table = self.inner.table();
        if let Some(fresh) = table.passed(range, before) {
            self.inner.end(&mut table, range, fresh);
        }
    }

    /// Gives up the granules of a range of which none of the addresses is needed any more.
    pub(super) fn give_up_unless(&self, range: usize, needed: impl Fn(Range<usize>) -> bool) {
        let mut table = self.inner.table();
        let count = table.ranges[range].granules.len();
        let over = |table: &Table, at: usize| {
            let shielded = &table.ranges[range];
            shielded.granules[at] != State::Over && !needed(shielded.granule(at))
        };
        let mut at = 0;
        while at < count {
            let from = at;
            while at < count && over(&table, at) {
                at += 1;
            }
            if from < at {
                self.inner.end(&mut table, range, from..at);
            }
            at += 1;
        }
    }

    /// The granules whose writers wait for the reader: range and addresses.
    pub(super) fn waiting(&self) -> Vec<(usize, Range<usize>)> {
        let table = self.inner.table();
        let granule = |((range, number), _): &((usize, usize), Instant)| {
            (*range, table.ranges[*range].granule(*number))
        };
        table.waiting.iter().map(granule).collect()
    }

    /// Lets those go on who wait for these addresses of a range: nobody will read them any more.
    pub(super) fn let_go(&self, range: usize, addresses: &Range<usize>) {
        let mut table = self.inner.table();
        let number = table.ranges[range].number(addresses.start);
        self.inner.end(&mut table, range, number..number + 1);
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

    /// Protects all ranges. Huge pages take no time at all, and threads are only started when the
    /// first step shows that these are not.
    fn protect(&self, ranges: &[Range<usize>], threads: usize) -> bool {
        let steps: Vec<Range<usize>> = ranges.iter().flat_map(steps).collect();
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let one = || {
            let step = steps.get(next.fetch_add(1, Ordering::Relaxed))?;
            if self.handle.protect(step).is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            Some(())
        };
        std::thread::scope(|scope| {
            let started = Instant::now();
            one();
            let small = started.elapsed() > STEP_LONG;
            let helpers = if small { threads.min(steps.len()).saturating_sub(1) } else { 0 };
            for _ in 0..helpers {
                standfast_sys::help(scope, || while one().is_some() {});
            }
            while one().is_some() {}
        });
        !failed.into_inner()
    }

    /// Nobody will read these granules any more: their writers go on, and those who waited for a
    /// slot may have one.
    fn end(&self, table: &mut Table, range: usize, granules: Range<usize>) {
        let stretch = table.end(range, granules);
        self.release(table, stretch);
        self.serve_waiting(table);
    }

    /// Lets writers of a stretch go on. While mappings change the kernel refuses, until the
    /// handler has read what changes; it then tries again.
    fn release(&self, table: &mut Table, stretch: Range<usize>) {
        match self.handle.release(&stretch) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
                table.unreleased.push(stretch);
            }
            // It is not the memory that was protected.
            Err(_) => table.lost = true,
        }
    }

    /// Lets a writer go on, or notes that it waits.
    fn fault(&self, table: &mut Table, address: usize) {
        let Some((range, number)) = table.find(address) else {
            // The shield was lowered in the meantime.
            let page = address / system_page() * system_page();
            self.handle.wake(&(page..page + system_page()));
            return;
        };
        let came = Instant::now();
        if self.admit(table, range, number, came) {
            return;
        }
        if !table.waiting.iter().any(|(wait, _)| *wait == (range, number)) {
            table.waiting.push(((range, number), came));
        }
    }

    /// Copies a granule if it is still pending, and lets its writers go on, of whom the first came
    /// then; false if no slot is free.
    fn admit(&self, table: &mut Table, range: usize, number: usize, came: Instant) -> bool {
        let block = table.block(range, number);
        let roomy = table.free.len() * ROOMY_SHARE >= table.slots.max(ROOMY_SHARE * block.len());
        let start = table.ranges[range].granule(number).start / BLOCK * BLOCK;
        let granules = match roomy && self.pagemap.is_huge(start..start + BLOCK) {
            true => block,
            false => number..number + 1,
        };
        for number in granules.clone() {
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
                table.held.bytes += granule.len() as u64;
            }
        }
        table.held.ns += came.elapsed().as_nanos() as u64 + FAULT_NS;
        let shielded = &table.ranges[range];
        let stretch =
            shielded.granule(granules.start).start..shielded.granule(granules.end - 1).end;
        self.release(table, stretch);
        true
    }

    fn serve_waiting(&self, table: &mut Table) {
        while let Some(((range, number), came)) = table.waiting.pop() {
            if !self.admit(table, range, number, came) {
                table.waiting.push(((range, number), came));
                return;
            }
        }
    }

    fn handle_faults(&self, stop: &OwnedFd) {
        standfast_sys::keep_signals_away();
        let mut pending = false;
        loop {
            let mut watched =
                [PollFd::new(&self.handle, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            // Interrupted calls are made again.
            if poll(&mut watched, pending.then_some(&AGAIN)).is_err() {
                continue;
            }
            let over = !watched[1].revents().is_empty();
            let mut table = self.table();
            self.handle.events(|event| match event {
                Event::Fault(address) => self.fault(&mut table, address),
                Event::Removed(gone) => table.removed(&gone),
            });
            for stretch in std::mem::take(&mut table.unreleased) {
                self.release(&mut table, stretch);
            }
            pending = !table.unreleased.is_empty();
            if over {
                return;
            }
        }
    }
}
