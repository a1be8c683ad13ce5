//! Capturing without stopping: the call freezes the state, a thread takes it in.
//!
//! ```text
//! call:   written pages -> snapshot: few are copied, whole regions are protected -> return
//! thread: snapshot -> catalog -> blocks -> draft -> commit
//! ```
//! A region that was protected cannot be watched by the tracker at the same time. When its pages
//! are taken the watch begins, and every page is hashed once more: one that is as it was captured
//! now, and that the tracker finds untouched later, was untouched all the time. The others count
//! as written. So tracking starts without the program ever waiting for it.
//!
//! Invariants:
//! - What was asked of the tracker is either taken in or kept in `late`: its answer comes once.
//! - The capturer travels with the snapshot and comes back, whatever happens.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};
use standfast_capture::{Dirty, Region, Regions, Snapshot, Span, Wanted};
use standfast_format::SegmentId;
use standfast_reduce::{Fetch, Fetched, Positions};
use standfast_restart::Inventory;

use super::capture::{Capturer, Draft, Order, Taken, elapsed_ns};
use super::commit::Work;
use super::storing::expected_bytes;
use crate::config::{Capture, Mode};
use crate::error::{Error, Result};
use crate::team::Team;

/// The state of all regions at one call, still to be taken in.
pub(crate) struct Frozen {
    regions: Regions,
    order: Order,
    started: Instant,
    blocked_ns: u64,
    positions: Vec<Positions>,
    dirty: Vec<Dirty>,
    snapshot: Snapshot,
}

impl Capturer {
    /// Freezes the state of all regions. `None` where the program must be stopped instead; the
    /// draft's notes will tell why.
    ///
    /// # Safety
    /// The memory of every region is mapped until the state is taken in, and nobody writes to it
    /// until this returns.
    pub(crate) unsafe fn freeze(
        &mut self,
        regions: &Regions,
        order: Order,
        inventory: &Inventory,
        team: &Team,
    ) -> Result<Option<Frozen>> {
        if self.config.capture == Capture::Stop {
            return Ok(None);
        }
        let started = Instant::now();
        let Some(snapshots) = self.snapshots.clone() else {
            let why = match team.size() {
                1 => "the kernel lets this process hold up no writes (see docs/CAPTURE.md)",
                _ => "several ranks agree on pages while they stand still",
            };
            self.notes.push(format!("captured with the program stopped: {why}"));
            return Ok(None);
        };
        self.prepare(regions, inventory, team)?;
        let positions = self.take_positions(regions);
        let dirty = self.collect_dirty(regions);
        let page_bytes = self.config.page.0 as usize;
        let wanted: Vec<Wanted> = regions
            .iter()
            .zip(positions.iter().zip(&dirty))
            .map(|(region, (positions, dirty))| Wanted {
                span: region.span(),
                pages: if positions.is_unknown() { Dirty::All } else { dirty.clone() },
            })
            .collect();
        let shielded = snapshots.shielded(&wanted, page_bytes);
        self.let_go(&wanted, &shielded);
        // SAFETY: the caller vouches for the memory.
        let taken =
            unsafe { snapshots.take(&wanted, &shielded, page_bytes, self.scanner.threads()) };
        match taken {
            Ok(snapshot) => {
                let dirty = wanted.into_iter().map(|wanted| wanted.pages).collect();
                let (regions, blocked_ns) = (regions.clone(), elapsed_ns(started));
                Ok(Some(Frozen { regions, order, started, blocked_ns, positions, dirty, snapshot }))
            }
            Err(refused) => {
                self.notes.push(format!("captured with the program stopped: {refused}"));
                let names = regions.iter().map(|region| region.name().to_owned());
                self.late = names.zip(dirty).collect();
                self.put_positions(regions, positions);
                Ok(None)
            }
        }
    }

    fn let_go(&mut self, wanted: &[Wanted], shielded: &[bool]) {
        let Some(watch) = &mut self.watch else { return };
        for (wanted, _) in wanted.iter().zip(shielded).filter(|(_, shielded)| **shielded) {
            watch.let_go(wanted.span);
        }
    }

    /// Takes a frozen state in.
    fn take_in(&mut self, frozen: Frozen) -> Result<Draft> {
        let Frozen { regions, order, started, blocked_ns, mut positions, dirty, mut snapshot } =
            frozen;
        let scanning = Instant::now();
        let taken = self.store_snapshot(&regions, order, &mut positions, &dirty, &mut snapshot);
        let shielded: Vec<bool> =
            (0..dirty.len()).map(|region| snapshot.is_shielded(region)).collect();
        drop(snapshot);
        let mut taken = taken.map_err(|(error, begun)| {
            self.forget_attempt(&begun);
            error
        })?;
        taken.scan_ns = elapsed_ns(scanning);
        self.watch_anew(&regions, &shielded, &positions);
        let mut draft = self.draft(&regions, order, started, positions, taken);
        draft.stats.blocked_ns = blocked_ns;
        self.hand_over(&mut draft);
        Ok(draft)
    }

    fn store_snapshot(
        &mut self,
        regions: &Regions,
        order: Order,
        positions: &mut [Positions],
        dirty: &[Dirty],
        snapshot: &mut Snapshot,
    ) -> std::result::Result<Taken, (Error, Vec<SegmentId>)> {
        let expected_bytes = expected_bytes(regions, positions, dirty, self.config.page.0);
        if self.config.mode.finds_equal() {
            self.catalog.reserve((expected_bytes / self.config.page.0) as usize);
        }
        let trust_dirty = self.config.mode == Mode::Incremental;
        let mut targets: Vec<Fetched<'_>> = regions
            .iter()
            .zip(positions.iter_mut().zip(dirty))
            .map(|(region, (positions, dirty))| Fetched {
                bytes: region.bytes(),
                positions,
                dirty: match dirty {
                    Dirty::All => None,
                    Dirty::Pages(bits) => Some(bits),
                },
                trust_dirty,
            })
            .collect();
        let scanner = self.scanner.clone();
        let link = self.agency.link.clone();
        let mut store = self.storing(regions, order, expected_bytes);
        let walked = scanner.walk_fetched(&mut targets, &mut Frames(snapshot), &mut store);
        match walked.and_then(|()| store.close()) {
            Ok(()) => Ok(Taken::of(store.batch.finish(link.as_ref(), order.attempt), store.begun)),
            Err(error) => Err((error, store.begun)),
        }
    }

    /// Starts watching regions that were protected until now, and finds out which of their pages
    /// were written before.
    fn watch_anew(&mut self, regions: &Regions, shielded: &[bool], positions: &[Positions]) {
        let Some(mut watch) = self.watch.take() else { return };
        let spans: Vec<Span> = regions.iter().map(Region::span).collect();
        let new = watch.to_arm(&spans);
        for (at, region) in regions.iter().enumerate() {
            if !shielded[at] || !new.contains(&spans[at]) {
                continue;
            }
            let watched = watch.arm(spans[at]);
            watch.armed(spans[at], watched);
            let late = self.changed_meanwhile(spans[at], &positions[at]);
            self.late.insert(region.name().to_owned(), late);
        }
        self.watch = Some(watch);
    }

    /// The pages that are not what was captured.
    fn changed_meanwhile(&self, span: Span, positions: &Positions) -> Dirty {
        let page_bytes = self.config.page.0 as usize;
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
            if !self.scanner.is_as_known(positions, page, bytes) {
                bits[page / 64] |= 1 << (page % 64);
            }
        }
        Dirty::Pages(bits)
    }
}

/// A snapshot as a source of pages.
struct Frames<'a>(&'a mut Snapshot);

impl Fetch for Frames<'_> {
    fn page(&mut self, region: usize, page: usize, out: &mut [u8]) {
        self.0.read(region, page, out);
    }

    fn finish(&mut self, region: usize) {
        self.0.finish_region(region);
    }
}

/// A snapshot that a thread takes in: where the capturer comes back from.
pub(crate) struct UnderWay {
    capturer: Receiver<Capturer>,
    taken: Arc<Taking>,
}

/// Whether memory is still being read.
#[derive(Default)]
struct Taking {
    over: Mutex<bool>,
    changed: Condvar,
}

impl UnderWay {
    /// Makes work for the committer of a frozen state and the capturer that froze it.
    pub(crate) fn start(frozen: Frozen, capturer: Capturer) -> (Work, Self) {
        let (back, receiver) = bounded(1);
        let taken = Arc::new(Taking::default());
        let version = frozen.order.version;
        let end = End { taken: Arc::clone(&taken) };
        let work = move || take_in(frozen, capturer, &back, end);
        (Work::Snapshot(version, Box::new(work)), Self { capturer: receiver, taken })
    }

    /// Waits until no memory is read any more.
    pub(crate) fn wait_taken(&self) {
        let over = self.taken.over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.taken.changed.wait_while(over, |over| !*over);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The capturer, after the committer has settled.
    pub(crate) fn capturer(self) -> Capturer {
        self.capturer.recv().expect("the committer has run the work")
    }
}

/// Tells that no memory is read any more, however that came.
struct End {
    taken: Arc<Taking>,
}

impl Drop for End {
    fn drop(&mut self) {
        *self.taken.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.taken.changed.notify_all();
    }
}

fn take_in(
    frozen: Frozen,
    mut capturer: Capturer,
    back: &Sender<Capturer>,
    end: End,
) -> Result<Draft> {
    let taking = AssertUnwindSafe(|| capturer.take_in(frozen));
    let draft = catch_unwind(taking).unwrap_or(Err(Error::Broken { what: "taking a snapshot in" }));
    drop(end);
    // Somebody waits for it, unless the job is being dropped.
    let _ = back.send(capturer);
    draft
}
