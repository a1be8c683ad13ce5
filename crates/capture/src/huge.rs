//! Huge pages: memory that is mapped by them is protected a hundred times as fast.
//!
//! Tracking splits a huge page at its first write, forking and writers in a hurry do too, and much
//! memory never was huge. Whatever is completely mapped is joined while the program runs. It
//! holds what it held, and takes no more memory than before.

use std::collections::HashMap;
use std::ops::Range;

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
    pagemap: Option<Pagemap>,
    /// By start of a region, the rounds that it sits out.
    pauses: HashMap<usize, u32>,
}

impl Default for HugePageJoiner {
    fn default() -> Self {
        let wanted = std::fs::read_to_string(SETTING).is_ok_and(|text| !text.contains("[never]"));
        let pagemap = wanted.then(|| Pagemap::open().ok()).flatten();
        Self { pagemap, pauses: HashMap::new() }
    }
}

impl HugePageJoiner {
    /// One round over regions, which must stay mapped meanwhile. Takes its time.
    pub fn join(&mut self, spans: &[Span]) {
        let Some(pagemap) = &self.pagemap else { return };
        self.pauses.retain(|start, _| spans.iter().any(|span| span.start == *start));
        for span in spans {
            let pause = self.pauses.entry(span.start).or_default();
            match pause {
                0 => {
                    *pause = ROUNDS;
                    join(pagemap, *span);
                }
                _ => *pause -= 1,
            }
        }
    }
}

fn join(pagemap: &Pagemap, span: Span) {
    let mut failures = 0;
    for block in blocks(span) {
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
