//! Huge pages: memory that is mapped by them is protected a hundred times as fast.
//!
//! Tracking splits a huge page at its first write, forking and writers in a hurry do too, and much
//! memory never was huge. Whatever is completely mapped is joined while the program runs. It
//! holds what it held, and takes no more memory than before.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::kernel::pagemap::Pagemap;
use crate::tracker::Span;

/// Size of a huge page.
const HUGE: usize = 2 << 20;
/// `MADV_COLLAPSE` of Linux 6.1.
const MADV_COLLAPSE: i32 = 25;
/// So many failures end a round: the system has no huge pages to spare.
const FAILURES_MAX: u32 = 4;
/// A region is looked at once in so many rounds.
const ROUNDS: u32 = 16;
/// Where the administrator says whether there shall be huge pages.
const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Rejoins split huge pages, so that protecting them against writes stays cheap.
pub struct HugePageJoiner {
    /// `None`: the system wants no huge pages, or does not tell which there are.
    pagemap: Option<Arc<Pagemap>>,
    /// By start of a region, the rounds that it sits out.
    pauses: HashMap<usize, u32>,
}

impl Default for HugePageJoiner {
    fn default() -> Self {
        let wanted = std::fs::read_to_string(SETTING).is_ok_and(|text| !text.contains("[never]"));
        let pagemap = wanted.then(|| Pagemap::open().ok().map(Arc::new)).flatten();
        Self { pagemap, pauses: HashMap::new() }
    }
}

impl HugePageJoiner {
    /// One round over regions: what is to be done for those whose turn it is. It takes its time, and
    /// ends early where it is told to stop.
    pub fn round(&mut self, spans: &[Span]) -> Option<impl FnOnce(&AtomicBool) + Send + 'static> {
        let pagemap = Arc::clone(self.pagemap.as_ref()?);
        let starts: HashSet<usize> = spans.iter().map(|span| span.start).collect();
        self.pauses.retain(|start, _| starts.contains(start));
        let mut is_due = |span: &Span| {
            let pause = self.pauses.entry(span.start).or_default();
            let due = *pause == 0;
            *pause = if due { ROUNDS } else { *pause - 1 };
            due
        };
        let due: Vec<Span> = spans.iter().copied().filter(|span| is_due(span)).collect();
        let round =
            move |stop: &AtomicBool| due.iter().for_each(|span| join(&pagemap, *span, stop));
        Some(round)
    }
}

fn join(pagemap: &Pagemap, span: Span, stop: &AtomicBool) {
    let mut failures = 0;
    for block in blocks(span).take_while(|_| !stop.load(Ordering::Relaxed)) {
        if pagemap.is_huge(block.clone()) || !is_there(pagemap, &block) || collapse(&block) {
            continue;
        }
        failures += 1;
        if failures == FAILURES_MAX {
            return;
        }
    }
}

/// Where whole huge pages may lie in a span.
fn blocks(span: Span) -> impl Iterator<Item = Range<usize>> {
    let start = span.start.next_multiple_of(HUGE);
    (start..span.end() / HUGE * HUGE).step_by(HUGE).map(|block| block..block + HUGE)
}

/// Whether every page of a range is there, and this process's own.
fn is_there(pagemap: &Pagemap, range: &Range<usize>) -> bool {
    let mut absent = false;
    let looked = pagemap.each_foreign(range.clone(), |_| absent = true);
    looked.is_ok() && !absent
}

/// Maps a range by a huge page; false if the kernel does not.
fn collapse(range: &Range<usize>) -> bool {
    // SAFETY: changes how memory is mapped, and never what it holds.
    unsafe { libc::madvise(range.start as *mut _, range.len(), MADV_COLLAPSE) == 0 }
}

#[cfg(test)]
mod tests;
