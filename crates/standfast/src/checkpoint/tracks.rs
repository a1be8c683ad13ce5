//! What was written since each region was captured, and what it takes to know that.
//!
//! Data: trackers and snapshots of the kernel -> the pages that may have changed.
//!
//! A region that a snapshot protects cannot be watched by the tracker at the same time. When its
//! pages are taken the watch begins, and every page is hashed once more: one that is as it was
//! captured now, and that the tracker finds untouched later, was untouched all the time. The others
//! count as written. So tracking starts without the program ever waiting for it.
//!
//! Invariants:
//! - What was asked of the tracker is either taken in or kept in `late`: its answer comes once.

use std::collections::HashMap;
use std::sync::Arc;

use standfast_capture::{
    Dirty, HugePageJoiner, Mprotect, Region, Regions, Snapshot, Snapshots, Span, Tracker, Uffd,
    Wanted, Watch,
};
use standfast_reduce::{Positions, Scanner};

use crate::config::{Capture, Config, Track};

/// Tracking pays while at most one page in so many is written: beyond, hashing every page costs
/// less than being told of each.
const WRITTEN_SHARE_STOP: usize = 4;
/// The same where nobody waits for hashes, but for the copy of every written page.
const WRITTEN_SHARE_COW: usize = 32;

/// Who tells what was written, and who keeps what is about to be.
pub(crate) struct Tracks {
    /// Tells written pages; `None`: every page is hashed.
    watch: Option<Watch>,
    /// Where each region lay when it was captured: what was not written since says something
    /// about that memory, not about other memory under the same name.
    spans: HashMap<String, Span>,
    /// Pages that may have changed without anybody asking the tracker for them again, by region.
    late: HashMap<String, Dirty>,
    /// Takes snapshots, where checkpoints are taken so.
    snapshots: Option<Arc<Snapshots>>,
    /// Rejoins split huge pages, so that protecting them against writes stays cheap.
    joiner: HugePageJoiner,
}

impl Tracks {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            watch: start_watch(config),
            spans: HashMap::new(),
            late: HashMap::new(),
            snapshots: start_snapshots(config),
            joiner: HugePageJoiner::default(),
        }
    }

    /// How changed pages are found.
    pub(crate) fn name(&self) -> &'static str {
        self.watch.as_ref().map_or("hash", Watch::name)
    }

    /// Stops watching: a restart is about to write everything, which would cost a fault a page.
    pub(crate) fn rest(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.rest();
        }
    }

    /// The regions are captured as they lie now.
    pub(super) fn captured(&mut self, regions: &Regions) {
        self.spans =
            regions.iter().map(|region| (region.name().to_owned(), region.span())).collect();
    }

    /// What was written since each region was captured.
    pub(super) fn collect(&mut self, regions: &Regions, page_bytes: usize) -> Vec<Dirty> {
        let spans = spans(regions);
        let late = std::mem::take(&mut self.late);
        let Some(watch) = &mut self.watch else { return vec![Dirty::All; spans.len()] };
        let mut dirty = watch.collect(&spans, page_bytes);
        for (region, dirty) in regions.iter().zip(&mut dirty) {
            if self.spans.get(region.name()) != Some(&region.span()) {
                *dirty = Dirty::All;
            }
            if let Some(late) = late.get(region.name()) {
                dirty.join(late.clone());
            }
        }
        dirty
    }

    /// Keeps an answer of the tracker that nobody has taken in.
    pub(super) fn keep(&mut self, regions: &Regions, dirty: Vec<Dirty>) {
        let names = regions.iter().map(|region| region.name().to_owned());
        self.late = names.zip(dirty).collect();
        self.captured(regions);
    }

    /// Starts watching new regions beside `scan`: the program is stopped, so nothing is written in
    /// between.
    pub(super) fn arm_beside<T>(&mut self, regions: &Regions, scan: impl FnOnce() -> T) -> T {
        let Some(watch) = &mut self.watch else { return scan() };
        let new = watch.to_arm(&spans(regions));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                watch.part();
                new.iter().for_each(|span| watch.start(*span));
            });
            scan()
        })
    }

    /// A snapshot of what is wanted, or why there is none.
    ///
    /// # Safety
    /// The memory of every region is mapped until the snapshot is dropped, and nobody writes to it
    /// until this returns.
    pub(super) unsafe fn snapshot(
        &mut self,
        wanted: &[Wanted],
        page_bytes: usize,
        threads: usize,
    ) -> std::result::Result<Snapshot, String> {
        let Some(snapshots) = &self.snapshots else {
            let why = "this process may not use userfaultfd (see docs/CAPTURE.md)";
            return Err(why.into());
        };
        let shielded = snapshots.shielded(wanted, page_bytes);
        if let Some(watch) = &mut self.watch {
            let protected = wanted.iter().zip(&shielded).filter(|(_, shielded)| **shielded);
            protected.for_each(|(wanted, _)| watch.let_go(wanted.span));
        }
        // SAFETY: the caller vouches for the memory.
        let taken = unsafe { snapshots.take(wanted, &shielded, page_bytes, threads) };
        taken.map_err(|refused| refused.to_string())
    }

    /// Stops watching regions for which it does not pay, starts watching others that a snapshot has
    /// protected until now, and finds out which pages of those were written before. Puts huge pages
    /// together where nobody watches: there the next snapshot protects memory.
    pub(super) fn watch_anew(
        &mut self,
        regions: &Regions,
        shielded: &[bool],
        (scanner, positions): (&Scanner, &[Positions]),
    ) {
        let spans = spans(regions);
        if let Some(watch) = &mut self.watch {
            watch.part();
            let new = watch.to_arm(&spans);
            for (at, region) in regions.iter().enumerate() {
                if !shielded[at] || !new.contains(&spans[at]) {
                    continue;
                }
                watch.start(spans[at]);
                let late = changed_meanwhile(scanner, spans[at], &positions[at]);
                self.late.insert(region.name().to_owned(), late);
            }
        }
        let watch = self.watch.as_ref();
        let watched = |span: &Span| watch.is_some_and(|watch| watch.is_watching(*span));
        let unwatched: Vec<Span> = spans.into_iter().filter(|span| !watched(span)).collect();
        self.joiner.join(&unwatched);
    }
}

fn spans(regions: &Regions) -> Vec<Span> {
    regions.iter().map(Region::span).collect()
}

/// The pages that are not what was captured.
fn changed_meanwhile(scanner: &Scanner, span: Span, positions: &Positions) -> Dirty {
    let page_bytes = scanner.page_bytes();
    let pages = span.bytes.div_ceil(page_bytes);
    let mut bits = vec![0; pages.div_ceil(64)];
    let mut copy = vec![0; page_bytes];
    for page in 0..pages {
        let offset = page * page_bytes;
        let bytes = &mut copy[..page_bytes.min(span.bytes - offset)];
        let from = (span.start + offset) as *const u8;
        // SAFETY: the region is mapped until its state is taken in. The program may write to
        // it right now; then the tracker knows, and what was read does not matter.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        if !scanner.is_as_known(positions, page, bytes) {
            bits[page / 64] |= 1 << (page % 64);
        }
    }
    Dirty::Pages(bits)
}

/// Tracking needs something to compare with: where nobody looks back, every page is looked at.
///
/// What protects pages by itself is never chosen, only asked for: whether a program hands its
/// memory to system calls cannot be seen from here.
fn start_watch(config: &Config) -> Option<Watch> {
    if !config.mode.looks_back() {
        return None;
    }
    let tracker: Box<dyn Tracker> = match config.track {
        Track::Hash => return None,
        Track::Mprotect => Box::new(Mprotect::new()?),
        Track::Auto | Track::Uffd => Box::new(Uffd::new()?),
    };
    let written_share = match config.capture {
        Capture::Stop => WRITTEN_SHARE_STOP,
        Capture::Cow => WRITTEN_SHARE_COW,
    };
    Some(Watch::new(tracker, (config.track == Track::Auto).then_some(written_share)))
}

fn start_snapshots(config: &Config) -> Option<Arc<Snapshots>> {
    let wanted = config.capture == Capture::Cow;
    wanted.then(|| Snapshots::new(config.cow_pool.0 as usize))?.map(Arc::new)
}
