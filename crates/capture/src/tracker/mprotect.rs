//! Tracking by protection: pages are made read-only, and the signal of a first write opens them.
//!
//! For kernels without the asynchronous userfaultfd. It asks something of the program, so it is
//! used only where it was asked for:
//! - A system call that writes to a protected page fails with `EFAULT` instead of raising a signal:
//!   nothing is missed, but the call does not do its work. Memory that is handed to system calls
//!   (buffers of `read`, `recv`, of MPI over sockets) must not be tracked like this.
//! - Handlers of `SIGSEGV` are installed before the first checkpoint, or pass on what they do not
//!   know.
//! - Memory moved by `mremap` stays read-only in its new place: unprotect it first.
//!
//! What a first write does not show is found otherwise: pages that were given back
//! (`MADV_DONTNEED`) or mapped anew are not the process's own any more, or are writable without a
//! first write. The pages at both ends of a region, which it may share with other data, always
//! count as written.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::segv::{self, Area};
use super::{Dirty, Span, Tracker};
use crate::kernel::maps::{Maps, has_pinned_memory};
use crate::kernel::pagemap::Pagemap;
use crate::kernel::{inner, outer, system_page};

/// Tracks by `mprotect` and `SIGSEGV`.
pub struct Mprotect {
    pagemap: Pagemap,
    armed: Mutex<Vec<Armed>>,
}

struct Armed {
    span: Span,
    area: *const Area,
}

// SAFETY: the area lives until it is removed by whoever takes this entry out of the list, and all
// of its fields may be used from any thread.
unsafe impl Send for Armed {}

impl Armed {
    fn area(&self) -> &Area {
        // SAFETY: it lives as long as this entry is in the list.
        unsafe { &*self.area }
    }
}

impl Mprotect {
    /// Prepares for it; `None` where the kernel does not tell which pages are there, or where
    /// `SIGSEGV` cannot be handled.
    pub fn new() -> Option<Self> {
        let pagemap = Pagemap::open().ok()?;
        segv::install().then(|| Self { pagemap, armed: Mutex::default() })
    }

    fn armed(&self) -> MutexGuard<'_, Vec<Armed>> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was written in one region; `None` if nobody can tell.
    fn collect_one(&self, armed: &Armed, maps: &Maps, page_bytes: usize) -> Option<Dirty> {
        let (span, area) = (armed.span, armed.area());
        if area.has_overflowed() || !is_as_it_was_left(area, maps) {
            return None;
        }
        let mut dirty = Dirty::none(span, page_bytes);
        let mut mark = |written: Range<usize>| dirty.mark(span, page_bytes, written);
        mark(outer(span).start..area.range.start);
        mark(area.range.end..outer(span).end);
        let size = system_page();
        self.pagemap.each_foreign(area.range.clone(), |page| mark(page..page + size)).ok()?;
        // Protected before the marks are taken: a write in between leaves its mark for next time.
        if !area.protect() {
            return None;
        }
        area.take_written(mark);
        Some(dirty)
    }
}

impl Tracker for Mprotect {
    fn name(&self) -> &'static str {
        "mprotect"
    }

    fn admits_system_calls(&self) -> bool {
        false
    }

    fn arm(&self, span: Span) -> bool {
        let range = inner(span);
        if range.is_empty() || !Maps::read().is_private_anonymous(&range) {
            return false;
        }
        let Ok(area) = segv::add(Box::new(Area::new(range))) else { return false };
        let armed = Armed { span, area };
        if !armed.area().protect() {
            release(&armed);
            return false;
        }
        self.armed().push(armed);
        true
    }

    fn disarm(&self, span: Span) {
        let mut all = self.armed();
        if let Some(at) = all.iter().position(|armed| armed.span == span) {
            release(&all.swap_remove(at));
        }
    }

    fn collect(&self, spans: &[Span], page_bytes: usize) -> Vec<Dirty> {
        let armed = self.armed();
        // Devices write past the protection.
        let pinned = has_pinned_memory();
        let maps = Maps::read();
        let collect = |span: &Span| {
            let one = armed.iter().find(|armed| armed.span == *span)?;
            self.collect_one(one, &maps, page_bytes).filter(|_| !pinned)
        };
        spans.iter().map(|span| collect(span).unwrap_or(Dirty::All)).collect()
    }
}

impl Drop for Mprotect {
    fn drop(&mut self) {
        self.armed().drain(..).for_each(|armed| release(&armed));
    }
}

/// Whether every page of an area is still private memory, and writable only after a first write.
fn is_as_it_was_left(area: &Area, maps: &Maps) -> bool {
    let Some(mappings) = maps.covering(&area.range) else { return false };
    let page = system_page();
    mappings.iter().all(|mapping| {
        let start = mapping.range.start.max(area.range.start);
        let end = mapping.range.end.min(area.range.end);
        let mut pages = (start..end).step_by(page);
        mapping.private_anonymous && (!mapping.writable || pages.all(|at| area.was_written(at)))
    })
}

/// Opens all of it. Where the program has unmapped parts, what is left is opened; mappings that
/// are not such memory are somebody else's by now.
fn release(armed: &Armed) {
    let area = armed.area();
    if !area.release() {
        for mapping in
            Maps::read().overlapping(&area.range).iter().filter(|it| it.private_anonymous)
        {
            let start = mapping.range.start.max(area.range.start);
            area.open(&(start..mapping.range.end.min(area.range.end)));
        }
    }
    segv::remove(armed.area);
}
