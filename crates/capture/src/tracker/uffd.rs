//! Tracking by the kernel: userfaultfd write protection in its asynchronous mode, and the
//! `PAGEMAP_SCAN` call that reads and resets it.
//!
//! The first write to a protected page is resolved inside the kernel, without a signal or a
//! handler; the page then counts as written. Needs Linux 6.7; works without privileges.
//!
//! What is refused (answered with *all*): anything but private anonymous memory, since another
//! mapping could write unseen; and everything, while the process has pinned memory (`VmPin`),
//! since devices write there past the page tables.

use std::ops::Range;

use super::{Dirty, Span, Tracker};
use crate::kernel::maps::{Maps, has_pinned_memory};
use crate::kernel::pagemap::Pagemap;
use crate::kernel::userfault::{Purpose, Userfault};
use crate::kernel::{outer, system_page};

/// Tracks by userfaultfd.
pub struct Uffd {
    handle: Userfault,
    pagemap: Pagemap,
}

impl Uffd {
    /// Asks the kernel for it; `None` where it is missing or forbidden.
    pub fn new() -> Option<Self> {
        let handle = Userfault::open(Purpose::NoteWrites)?;
        let pagemap = Pagemap::open().ok()?;
        let tracker = Self { handle, pagemap };
        tracker.works().then_some(tracker)
    }

    /// Tries it on a page: an old or restricted kernel may refuse only here.
    fn works(&self) -> bool {
        let bytes = system_page();
        let Some(page) = Scratch::new(bytes) else { return false };
        let span = Span { start: page.0 as usize, bytes };
        let clean = self.arm(span) && self.collect(&[span], bytes)[0].count() == Some(0);
        // SAFETY: the page is ours and writable.
        unsafe { page.0.write_volatile(1) };
        let seen = self.collect(&[span], bytes)[0].count() == Some(1);
        self.disarm(span);
        clean && seen
    }
}

impl Tracker for Uffd {
    fn name(&self) -> &'static str {
        "uffd"
    }

    fn arm(&self, span: Span) -> bool {
        let range = outer(span);
        !range.is_empty()
            && Maps::read().is_private_anonymous(&range)
            && self.handle.register_writes(&range).is_ok()
            && self.handle.protect(&range).is_ok()
    }

    fn disarm(&self, span: Span) {
        self.handle.unregister(&outer(span));
    }

    fn collect(&self, spans: &[Span], page_bytes: usize) -> Vec<Dirty> {
        let mut dirty: Vec<Dirty> =
            spans.iter().map(|span| Dirty::none(*span, page_bytes)).collect();
        // Read before the scan: pinning during it would need another thread at work.
        let pinned = has_pinned_memory();
        let maps = Maps::read();
        for range in merged(spans.iter().map(|span| outer(*span)).collect()) {
            let inside: Vec<usize> = (0..spans.len())
                .filter(|at| spans[*at].start < range.end && range.start < spans[*at].end())
                .collect();
            // The scan passes over holes in silence.
            let whole = maps.is_private_anonymous(&range);
            let watched = self.pagemap.take_written(range, |written| {
                for at in &inside {
                    dirty[*at].mark(spans[*at], page_bytes, written.clone());
                }
            });
            if !whole || !watched || pinned {
                inside.iter().for_each(|at| dirty[*at] = Dirty::All);
            }
        }
        dirty
    }
}

/// Joins ranges that overlap.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// A page to try things on.
struct Scratch(*mut u8, usize);

impl Scratch {
    fn new(bytes: usize) -> Option<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice aliases nothing.
        let page = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, prot, MapFlags::PRIVATE) };
        page.ok().map(|page| Self(page.cast(), bytes))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nobody refers to it.
        let _ = unsafe { rustix::mm::munmap(self.0.cast(), self.1) };
    }
}

#[cfg(test)]
mod tests;
