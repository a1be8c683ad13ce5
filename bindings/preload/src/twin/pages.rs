//! Which pages of a mapping the program has made its own.
//!
//! Data: `/proc/self/pagemap` -> pages that are there and come from no file -> runs.
//!
//! Why runs are joined over small gaps: a region costs more than a page that turns out to be zero.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;
/// Pages asked about at a time.
const BATCH: usize = 64 << 10;
/// Runs of pages with fewer others between them are one.
const GAP_PAGES: usize = 256;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;

/// The program's own pages.
pub(super) struct Pages(File);

impl Pages {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self(File::open("/proc/self/pagemap")?))
    }

    /// Runs of own pages within a mapping.
    pub(super) fn own(&self, range: Range<usize>) -> io::Result<Vec<Range<usize>>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut buf = vec![0u8; BATCH * 8];
        let mut at = range.start;
        while at < range.end {
            let pages = ((range.end - at) / PAGE).min(BATCH);
            let buf = &mut buf[..pages * 8];
            self.0.read_exact_at(buf, (at / PAGE * 8) as u64)?;
            for (page, entry) in buf.chunks_exact(8).enumerate() {
                let entry = u64::from_ne_bytes(entry.try_into().expect("eight bytes"));
                if entry & (PRESENT | SWAPPED) != 0 && entry & OF_FILE == 0 {
                    add(&mut runs, at + page * PAGE);
                }
            }
            at += pages * PAGE;
        }
        Ok(runs)
    }
}

fn add(runs: &mut Vec<Range<usize>>, page: usize) {
    match runs.last_mut() {
        Some(last) if page - last.end <= GAP_PAGES * PAGE => last.end = page + PAGE,
        _ => runs.push(page..page + PAGE),
    }
}
