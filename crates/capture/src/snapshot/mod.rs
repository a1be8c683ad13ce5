//! Snapshots: the state of memory at one call, read at leisure while the program goes on writing.
//!
//! ```text
//! call:    pages to take -> few, or as is wished: copied into the pool at once
//!                        -> many: protected against writes (userfaultfd), nothing copied
//! later:   reader -> page: from the pool, or from memory that nobody has written to yet
//!          writer -> held up -> its granule is copied into the pool -> goes on
//! ```
//! Why both ways: protecting single pages costs more than copying them, copying everything costs
//! eight times what protecting it does. A region of which few pages were written since the last
//! checkpoint is copied, another is protected as a whole. Where writers cannot be held up, or
//! would be for too long, everything is copied: then memory may go right after the call.
//!
//! Why userfaultfd and not `mprotect`: a writer inside a system call is held up like any other,
//! where `mprotect` would make the call fail; and no signal handler is needed. Why not a forked
//! child: it shares every page of the process, not only the protected ones, its memory has no
//! bound, and it breaks programs with memory registered for devices.
//!
//! Invariants:
//! - Memory taken for copies never exceeds the pool; when it is full, writers wait for the reader,
//!   who never waits for them.
//! - What the library's own threads write is never protected: only whole pages that belong to a
//!   region alone are. The bytes at its ends are copied.
//! - A snapshot that is dropped lets every writer go on.

mod copy;
mod pool;
mod shield;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::kernel::inner;
use crate::kernel::maps::{Maps, has_pinned_memory};
use crate::tracker::{Dirty, Span};
use copy::Copies;
use pool::Pool;
use shield::Shield;

pub use shield::Held;

/// Regions up to this size are copied: cheaper than the calls to protect them.
const COPIED_BYTES_MAX: usize = 256 << 10;
/// At least one byte of so many of the pool is kept for writers that must not wait.
const WRITERS_SHARE: usize = 4;

/// Memory of a snapshot was given back, unmapped or mapped anew before it was read: what was read
/// may not be the state at the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("protected memory was discarded or remapped before it was read")]
pub struct Lost;

/// Why there is no snapshot; the program must be stopped instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The kernel does not let writers be held up.
    #[error("this process may not use userfaultfd (see docs/CAPTURE.md)")]
    Forbidden,
    /// What must be copied at once does not fit.
    #[error("memory is too small for what must be copied at once")]
    Pool,
    /// Some of the memory is shared, has a file behind it, or is watched by somebody else.
    #[error("some protected memory is shared or has a file behind it")]
    Memory,
    /// Devices may write to memory of this process, past every protection.
    #[error("the process has pinned memory, to which devices may write")]
    Pinned,
}

/// Takes snapshots, one at a time.
pub struct Snapshots {
    pool: Pool,
    /// `None`: writers cannot be held up, everything is copied.
    shield: Option<Shield>,
}

/// What is wanted of a region.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where it lies.
    pub span: Span,
    /// Which pages.
    pub pages: Dirty,
}

/// How each region of a snapshot is kept.
enum Kept {
    /// All wanted pages were copied.
    Copied(Copies),
    /// Protected; the bytes before and after the protected pages were copied.
    Shielded { span: Span, first: usize, ends: [Range<usize>; 2], copies: [usize; 2] },
}

impl Snapshots {
    /// Prepares for snapshots with so much memory for copies; `None` where the system has no room
    /// for it. `hold_writers`: whether writers may be held up, where the kernel lets them be, in
    /// system calls too.
    pub fn new(pool_bytes: usize, hold_writers: bool) -> Option<Self> {
        let pool = Pool::new(pool_bytes)?;
        let shield = hold_writers.then(|| Shield::new(pool.clone())).flatten();
        Some(Self { shield, pool })
    }

    /// Memory for copies.
    pub fn bytes(&self) -> usize {
        self.pool.bytes()
    }

    /// Lets memory be there for copies, unless it is told to stop.
    pub fn warm(&self, stop: &AtomicBool) {
        self.pool.warm(stop);
    }

    /// Bytes for copies that have memory behind them: copying there does not wait for the system.
    pub fn ready_bytes(&self) -> usize {
        self.pool.ready_bytes()
    }

    /// Nanoseconds that the system takes to put memory behind a byte; `None`: not measured yet.
    pub fn warm_ns(&self) -> Option<f64> {
        self.pool.warm_ns()
    }

    /// Memory that copies of all wanted pages take, at most.
    pub fn bytes_for(wanted: &[Wanted], page_bytes: usize) -> usize {
        wanted.iter().map(|region| copied_bytes(region, page_bytes) + copy::SLACK).sum()
    }

    /// Which regions must be protected as a whole: a tracker that watches them must let go first.
    pub fn shielded(&self, wanted: &[Wanted], page_bytes: usize) -> Vec<bool> {
        let mut room = self.pool.bytes() - self.pool.bytes() / WRITERS_SHARE;
        wanted
            .iter()
            .map(|region| {
                let bytes = copied_bytes(region, page_bytes);
                let copied = match region.pages {
                    Dirty::All => region.span.bytes <= COPIED_BYTES_MAX,
                    Dirty::Pages(_) => bytes <= room,
                };
                if copied {
                    room = room.saturating_sub(bytes);
                }
                !copied
            })
            .collect()
    }

    /// Whether writers of these regions can be held up.
    pub fn can_shield(&self, wanted: &[Wanted], shielded: &[bool]) -> Result<(), Refused> {
        if self.shield.is_none() {
            return Err(Refused::Forbidden);
        }
        if shielded.contains(&true) && has_pinned_memory() {
            return Err(Refused::Pinned);
        }
        let maps = Maps::read();
        let may_be = |(region, shielded): (&Wanted, &bool)| {
            let inner = inner(region.span);
            !shielded || (!inner.is_empty() && maps.is_private_anonymous(&inner))
        };
        wanted.iter().zip(shielded).all(may_be).then_some(()).ok_or(Refused::Memory)
    }

    /// Takes a snapshot of regions; `shielded` as told before, or none. `threads` copy.
    ///
    /// # Safety
    /// The memory of every region is mapped, that of shielded ones until the snapshot is dropped.
    /// Nobody writes to it until this returns.
    pub unsafe fn take(
        self: &Arc<Self>,
        wanted: &[Wanted],
        shielded: &[bool],
        page_bytes: usize,
        threads: usize,
    ) -> Result<Snapshot, Refused> {
        let holds = shielded.contains(&true);
        if holds {
            self.can_shield(wanted, shielded)?;
        }
        let mut plan = copy::Plan::new(&self.pool);
        let mut kept = Vec::with_capacity(wanted.len());
        let mut ranges = Vec::new();
        for (region, shielded) in wanted.iter().zip(shielded) {
            if !shielded {
                kept.push(Kept::Copied(plan.pages(region, page_bytes).ok_or(Refused::Pool)?));
                continue;
            }
            let (span, inner) = (region.span, inner(region.span));
            let ends = [span.start..inner.start, inner.end..span.end()];
            let mut copies = [0; 2];
            for (end, copy) in ends.iter().zip(&mut copies) {
                *copy = plan.bytes(end).ok_or(Refused::Pool)?;
            }
            kept.push(Kept::Shielded { span, first: ranges.len(), ends, copies });
            ranges.push(inner);
        }
        let slots_from = plan.end();
        // Nothing is protected yet: these are the bytes at the ends, and regions of few changes.
        // SAFETY: the caller vouches for the memory.
        unsafe { plan.run(threads) };
        self.pool.used(slots_from);
        let raise = |shield: &Shield| shield.raise(&ranges, slots_from, threads);
        if holds && !self.shield.as_ref().is_some_and(raise) {
            return Err(Refused::Memory);
        }
        Ok(Snapshot { snapshots: Arc::clone(self), kept, page_bytes })
    }
}

fn copied_bytes(region: &Wanted, page_bytes: usize) -> usize {
    let pages = region.span.bytes.div_ceil(page_bytes);
    region.pages.count().unwrap_or(pages) * page_bytes
}

/// The state of memory at one call.
pub struct Snapshot {
    snapshots: Arc<Snapshots>,
    kept: Vec<Kept>,
    page_bytes: usize,
}

impl Snapshot {
    /// The copies of a region's wanted pages, end to end, and whether these are all its pages;
    /// `None`: it is read page by page.
    pub fn copied(&self, region: usize) -> Option<(&[u8], bool)> {
        match &self.kept[region] {
            Kept::Copied(copies) => Some((copies.all(&self.snapshots.pool), copies.is_whole())),
            Kept::Shielded { .. } => None,
        }
    }

    /// Reads a wanted page of a region, and gives up what lies before: pages are read in ascending
    /// order.
    ///
    /// # Panics
    /// If the page was not wanted, or was given up.
    pub fn read(&self, region: usize, page: usize, out: &mut [u8]) {
        if let Some((shield, span, first)) = self.shielded(region) {
            shield.give_up(first, span.start + page * self.page_bytes);
        }
        self.peek(region, page, out);
    }

    /// Reads a wanted page of a region, and keeps everything.
    ///
    /// # Panics
    /// If the page was not wanted, or was given up.
    pub fn peek(&self, region: usize, page: usize, out: &mut [u8]) {
        let Snapshots { pool, shield } = &*self.snapshots;
        match &self.kept[region] {
            Kept::Copied(copies) => pool.read(copies.place(page), out),
            Kept::Shielded { span, first, ends, copies } => {
                let start = span.start + page * self.page_bytes;
                let wanted = start..start + out.len();
                for (end, copy) in ends.iter().zip(copies) {
                    let part = wanted.start.max(end.start)..wanted.end.min(end.end);
                    if !part.is_empty() {
                        let out = &mut out[part.start - start..part.end - start];
                        pool.read(copy + (part.start - end.start), out);
                    }
                }
                let part = wanted.start.max(ends[0].end)..wanted.end.min(ends[1].start);
                if let Some(shield) = shield.as_ref().filter(|_| !part.is_empty()) {
                    shield.read(*first, &part, &mut out[part.start - start..part.end - start]);
                }
            }
        }
    }

    /// Lets writers of a region go on: nothing more of it is read.
    pub fn finish_region(&self, region: usize) {
        if let Some((shield, _, first)) = self.shielded(region) {
            shield.give_up(first, usize::MAX);
        }
    }

    /// Lets writers go on wherever no page of a region is needed any more.
    pub fn keep_only(&self, region: usize, needed: impl Fn(Range<usize>) -> bool) {
        let Some((shield, span, first)) = self.shielded(region) else { return };
        let pages = |addresses| pages_at(span, self.page_bytes, addresses);
        shield.give_up_unless(first, |addresses| needed(pages(addresses)));
    }

    /// Who waits for pages to be given up: regions, and pages with what identifies the wait.
    pub fn waits(&self) -> Vec<Wait> {
        let Some(shield) = &self.snapshots.shield else { return Vec::new() };
        let wait = |(range, addresses): (usize, Range<usize>)| {
            let of = |region: &usize| self.shielded(*region).is_some_and(|(.., at)| at == range);
            let region = (0..self.kept.len()).find(of)?;
            let (_, span, _) = self.shielded(region)?;
            let pages = pages_at(span, self.page_bytes, addresses.clone());
            Some(Wait { region, pages, range, addresses })
        };
        shield.waiting().into_iter().filter_map(wait).collect()
    }

    /// Ends a wait: its pages are read no more.
    pub fn end_wait(&self, wait: &Wait) {
        if let Some(shield) = &self.snapshots.shield {
            shield.let_go(wait.range, &wait.addresses);
        }
    }

    /// Whether what was read is the state at the call. Asked when everything was read.
    pub fn check(&self) -> Result<(), Lost> {
        let whole = self.snapshots.shield.as_ref().is_none_or(Shield::is_whole);
        whole.then_some(()).ok_or(Lost)
    }

    /// Whether writers of such a snapshot could be held up.
    pub fn may_hold(&self) -> bool {
        self.snapshots.shield.is_some()
    }

    /// Whether any region is protected: its memory is still read, and writers may have to wait.
    pub fn holds_writers(&self) -> bool {
        (0..self.kept.len()).any(|region| self.is_shielded(region))
    }

    /// Whether a region was protected as a whole.
    pub fn is_shielded(&self, region: usize) -> bool {
        matches!(self.kept[region], Kept::Shielded { .. })
    }

    /// What writers were held up so far.
    pub fn held(&self) -> Held {
        self.snapshots.shield.as_ref().map_or_else(Held::default, Shield::held)
    }

    /// The shield over a region, where it lies, and its number among those protected.
    fn shielded(&self, region: usize) -> Option<(&Shield, Span, usize)> {
        match (&self.kept[region], &self.snapshots.shield) {
            (Kept::Shielded { span, first, .. }, Some(shield)) => Some((shield, *span, *first)),
            _ => None,
        }
    }
}

/// Somebody who cannot write before pages are given up.
#[derive(Clone, Debug)]
pub struct Wait {
    /// Which region.
    pub region: usize,
    /// Which pages of it.
    pub pages: Range<usize>,
    range: usize,
    addresses: Range<usize>,
}

/// The pages of a region that lie at addresses, wholly or in part.
fn pages_at(span: Span, page_bytes: usize, addresses: Range<usize>) -> Range<usize> {
    let first = (addresses.start.max(span.start) - span.start) / page_bytes;
    first..(addresses.end.min(span.end()) - span.start).div_ceil(page_bytes)
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.snapshots.shield.iter().for_each(Shield::lower);
    }
}
