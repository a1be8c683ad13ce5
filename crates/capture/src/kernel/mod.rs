//! What the kernel offers for watching memory: each call in one place, with its safety argument.
//!
//! Nothing here decides anything; trackers, snapshots and lazy restarts do.

pub(crate) mod maps;
pub(crate) mod pagemap;
pub(crate) mod userfault;

use std::ops::Range;

use crate::tracker::Span;

/// Size of the system's pages.
pub(crate) fn system_page() -> usize {
    rustix::param::page_size()
}

/// The whole system pages that a span touches.
pub(crate) fn outer(span: Span) -> Range<usize> {
    let page = system_page();
    span.start / page * page..span.end().next_multiple_of(page)
}

/// The system pages that belong to a span alone; empty if there is none.
pub(crate) fn inner(span: Span) -> Range<usize> {
    let page = system_page();
    let (start, end) = (span.start.next_multiple_of(page), span.end() / page * page);
    start..end.max(start)
}
