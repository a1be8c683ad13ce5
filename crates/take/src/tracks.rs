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

use std::collections::BTreeMap;
use std::sync::Arc;

use standfast_capture::{
    Dirty, Excluded, HugePageJoiner, Region, Regions, Snapshot, Snapshots, Span, Tracker, Wanted,
    Watch,
};
use standfast_reduce::{PageTable, Scanner};
use standfast_sys::Warming;

use crate::choose::Way;
use crate::settings::{Capture, TakeSettings};

/// Tracking pays while at most one page in so many is written: beyond, hashing every page costs
/// less than being told of each.
const WRITTEN_SHARE: usize = 4;
/// The same where nobody waits for hashes or copies, but for every written page that is protected.
const WRITTEN_SHARE_COW: usize = 32;

/// Who tells what was written, and who keeps what is about to be.
pub(crate) struct Tracks {
    /// Tells written pages; `None`: every page is hashed.
    watch: Option<Watch>,
    /// Where each region lay when it was captured, and what was excluded of it: what was not written
    /// since says something about that memory, not about other memory under the same name.
    spans: BTreeMap<String, (Span, Excluded)>,
    /// Pages that may have changed without anybody asking the tracker for them again, by region.
    late: BTreeMap<String, Dirty>,
    /// How memory is captured, and how much there may be for copies.
    capture: Capture,
    copies_bytes: usize,
    page_bytes: usize,
    /// Takes snapshots, once there is something to take; with memory for what is protected.
    snapshots: Option<Arc<Snapshots>>,
    /// Makes memory for copies ready, beside the program.
    warming: Option<Warming>,
    /// Rejoins split huge pages, so that protecting them against writes stays cheap.
    joiner: HugePageJoiner,
    joining: Option<Warming>,
}

impl Tracks {
    pub(crate) fn new(settings: &TakeSettings, tracker: Option<Box<dyn Tracker>>) -> Self {
        Self {
            watch: start_watch(settings, tracker),
            spans: BTreeMap::new(),
            late: BTreeMap::new(),
            capture: settings.capture,
            copies_bytes: settings.copies_bytes,
            page_bytes: settings.pack.page_bytes,
            snapshots: None,
            warming: None,
            joiner: HugePageJoiner::default(),
            joining: None,
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
    pub(crate) fn captured(&mut self, regions: &Regions) {
        let lies = |region: &Region| (region.name().to_owned(), lies(regions, region));
        self.spans = regions.iter().map(lies).collect();
    }

    /// What was written since each region was captured.
    pub(crate) fn collect(&mut self, regions: &Regions) -> Vec<Dirty> {
        let spans = spans(regions);
        let late = std::mem::take(&mut self.late);
        let Some(watch) = &mut self.watch else { return vec![Dirty::All; spans.len()] };
        let mut dirty = watch.collect(&spans, self.page_bytes);
        for (region, dirty) in regions.iter().zip(&mut dirty) {
            if self.spans.get(region.name()) != Some(&lies(regions, region)) {
                *dirty = Dirty::All;
            }
            if let Some(late) = late.get(region.name()) {
                dirty.join(late.clone());
            }
        }
        dirty
    }

    /// The next checkpoint looks at these pages of a region too.
    pub(crate) fn look_at(&mut self, region: &str, pages: Dirty) {
        match self.late.get_mut(region) {
            Some(late) => late.join(pages),
            None => drop(self.late.insert(region.to_owned(), pages)),
        }
    }

    /// Starts watching new regions beside `scan`: the program is stopped, so nothing is written in
    /// between.
    pub(crate) fn arm_beside<T>(&mut self, regions: &Regions, scan: impl FnOnce() -> T) -> T {
        let Some(watch) = &mut self.watch else { return scan() };
        let new = watch.to_arm(&spans(regions));
        let arm = || {
            watch.part();
            new.iter().for_each(|span| watch.start(*span));
        };
        standfast_sys::beside(arm, scan).1
    }

    /// Memory for copies of what is wanted of these regions, as far as it may go; `None` where there is
    /// none.
    pub(crate) fn snapshots(&mut self, regions: &Regions) -> Option<&Arc<Snapshots>> {
        let all = |region: &Region| Wanted { span: region.span(), pages: Dirty::All };
        let all: Vec<Wanted> = regions.iter().map(all).collect();
        let bytes = Snapshots::bytes_for(&all, self.page_bytes).min(self.copies_bytes);
        if self.snapshots.as_ref().is_none_or(|snapshots| snapshots.bytes() < bytes) {
            (self.warming, self.snapshots) = (None, None);
            let fresh = Snapshots::new(bytes, self.capture.may_hold_writers());
            self.snapshots = fresh.map(Arc::new);
        }
        self.snapshots.as_ref()
    }

    /// Makes ready, beside the program, what copies of these regions need.
    pub(crate) fn warm(&mut self, regions: &Regions) {
        if self.capture == Capture::Stop {
            return;
        }
        let Some(snapshots) = self.snapshots(regions).cloned() else { return };
        let bytes = snapshots.bytes();
        if self.warming.is_none() && snapshots.ready_bytes() < bytes {
            self.warming = Some(Warming::start(bytes, move |stop| snapshots.warm(stop)));
        }
    }

    /// Makes nothing ready for now: nothing else runs while the program waits.
    pub(crate) fn stop_warming(&mut self) {
        (self.warming, self.joining) = (None, None);
    }

    /// A snapshot of what is wanted, taken in this way, or why there is none.
    ///
    /// # Safety
    /// The memory of every region is mapped, and stays so until the snapshot is dropped if writers are
    /// held up. Nobody writes to it until this returns.
    pub(crate) unsafe fn snapshot(
        &mut self,
        way: Way,
        regions: &Regions,
        wanted: &[Wanted],
        threads: usize,
    ) -> std::result::Result<Snapshot, String> {
        let Some(snapshots) = self.snapshots.clone() else {
            return Err("the system has no memory for copies".into());
        };
        let page_bytes = self.page_bytes;
        let shielded = match way {
            Way::Cow => snapshots.shielded(wanted, page_bytes),
            Way::Staged | Way::Stop => vec![false; wanted.len()],
        };
        // SAFETY: the caller vouches for the memory.
        let take = || unsafe { snapshots.take(wanted, &shielded, page_bytes, threads) };
        let taken = match (way, &mut self.watch) {
            (Way::Cow, watch) => {
                let protected = wanted.iter().zip(&shielded).filter(|(_, shielded)| **shielded);
                if let Some(watch) = watch {
                    protected.for_each(|(wanted, _)| watch.let_go(wanted.span));
                }
                take()
            }
            _ => self.arm_beside(regions, take),
        };
        taken.map_err(|refused| refused.to_string())
    }

    /// Stops watching regions for which it does not pay, starts watching others that a snapshot has
    /// protected until now, and finds out which pages of those were written before. Puts huge pages
    /// together where nobody watches: there the next snapshot protects memory.
    pub(crate) fn watch_anew(
        &mut self,
        regions: &Regions,
        shielded: &[bool],
        (scanner, positions): (&Scanner, &[PageTable]),
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
        if !self.capture.may_hold_writers() {
            return;
        }
        let watch = self.watch.as_ref();
        let watched = |span: &Span| watch.is_some_and(|watch| watch.is_watching(*span));
        let unwatched: Vec<Span> = spans.into_iter().filter(|span| !watched(span)).collect();
        // Beside: nobody's checkpoint is durable later for it.
        let round = self.joiner.round(&unwatched);
        self.joining = round.map(|round| Warming::start(0, round));
    }
}

/// Where a region lies, and what is excluded of it.
fn lies(regions: &Regions, region: &Region) -> (Span, Excluded) {
    (region.span(), regions.excluded(region))
}

fn spans(regions: &Regions) -> Vec<Span> {
    regions.iter().map(Region::span).collect()
}

/// The pages that are not what was captured.
fn changed_meanwhile(scanner: &Scanner, span: Span, positions: &PageTable) -> Dirty {
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
fn start_watch(settings: &TakeSettings, tracker: Option<Box<dyn Tracker>>) -> Option<Watch> {
    let written_share = match settings.capture {
        Capture::Cow => WRITTEN_SHARE_COW,
        _ => WRITTEN_SHARE,
    };
    let tracker = tracker.filter(|_| settings.compare.back)?;
    Some(Watch::new(tracker, (!settings.always_track).then_some(written_share)))
}
