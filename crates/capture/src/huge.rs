//! Huge pages: memory that is mapped by them is protected a hundred times as fast.
//!
//! Tracking splits a huge page at its first write, forking and writers in a hurry do too, and much
//! memory never was huge. Whatever is wholly there is put together behind the program's back. It
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
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn small_pages_become_huge_ones_and_hold_what_they_held() {
        let bytes = 4 * HUGE;
        let memory = Memory::new(bytes, HUGE).unwrap();
        // SAFETY: as long as it says, and nobody else's.
        let words = unsafe { std::slice::from_raw_parts_mut(memory.start(), bytes) };
        // SAFETY: advice about our own memory.
        unsafe { libc::madvise(memory.start().cast(), bytes, libc::MADV_NOHUGEPAGE) };
        // One page of the last block is never touched.
        let touched = bytes - 4096;
        words[..touched].iter_mut().zip(0u32..).for_each(|(byte, at)| *byte = (at / 7) as u8);
        // SAFETY: as above.
        unsafe { libc::madvise(memory.start().cast(), bytes, libc::MADV_HUGEPAGE) };
        let span = Span { start: memory.start() as usize, bytes };
        let mut joiner = HugePageJoiner::default();
        joiner.join(&[span]);
        assert!(words[..touched].iter().zip(0u32..).all(|(byte, at)| *byte == (at / 7) as u8));
        if let Some(pagemap) = &joiner.pagemap {
            let huge = blocks(span).filter(|block| pagemap.is_huge(block.clone())).count();
            assert!(huge <= 3, "what is not wholly there takes no more memory");
            println!("{huge} of 4 huge pages");
        }
    }
}
