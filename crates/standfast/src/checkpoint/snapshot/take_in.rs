//! Taking a frozen state in: its pages are found, reduced and stored while the program goes on.
//!
//! A region that was protected cannot be watched by the tracker at the same time. When its pages
//! are taken the watch begins, and every page is hashed once more: one that is as it was captured
//! now, and that the tracker finds untouched later, was untouched all the time. The others count
//! as written. So tracking starts without the program ever waiting for it.

use std::time::Instant;

use standfast_capture::{Dirty, Region, Regions, Snapshot, Span};
use standfast_comm::Collective;
use standfast_reduce::{Fetch, Fetched, Positions};

use super::super::capture::Capturer;
use super::super::draft::{Draft, GivenUp, Order, Taken, elapsed_ns};
use super::super::storing::expected_bytes;
use super::Frozen;
use crate::config::Mode;
use crate::error::Result;

impl Capturer {
    /// Takes a frozen state in. `team`: the ranks, where a thread beside the program may talk to
    /// them; then this is collective.
    pub(crate) fn take_in(&mut self, frozen: Frozen, team: Option<&Collective>) -> Result<Draft> {
        let Frozen { regions, order, started, blocked_ns, mut positions, dirty, snapshot } = frozen;
        let shielded: Vec<bool> =
            (0..dirty.len()).map(|region| snapshot.is_shielded(region)).collect();
        let taken = match team.filter(|_| self.sharing.is_on()) {
            Some(team) => {
                let targets = fetched(&regions, &mut positions, &dirty, self.config.mode);
                let candidates = self.gather_snapshot(targets, &snapshot);
                self.take_snapshot_together(
                    &regions,
                    order,
                    &mut positions,
                    candidates,
                    snapshot,
                    team,
                )
            }
            None => self.store_snapshot(&regions, order, &mut positions, &dirty, snapshot),
        };
        let taken = taken.map_err(|given_up| {
            self.forget_attempt(&given_up.begun);
            given_up.error
        })?;
        self.watch_anew(&regions, &shielded, &positions);
        self.mend(&regions);
        let mut draft = self.draft(&regions, order, started, positions, taken);
        draft.stats.blocked_ns = blocked_ns;
        self.hand_over(&mut draft);
        Ok(draft)
    }

    /// Stores what is new, by this rank alone.
    fn store_snapshot(
        &mut self,
        regions: &Regions,
        order: Order,
        positions: &mut [Positions],
        dirty: &[Dirty],
        snapshot: Snapshot,
    ) -> std::result::Result<Taken, GivenUp> {
        let started = Instant::now();
        let expected_bytes = expected_bytes(regions, positions, dirty, self.config.page.0);
        if self.config.mode.finds_equal() {
            self.catalog.reserve((expected_bytes / self.config.page.0) as usize);
        }
        let mut targets = fetched(regions, positions, dirty, self.config.mode);
        let scanner = self.scanner.clone();
        let mut store = self.storing(regions, order, expected_bytes);
        let walked = scanner.walk_fetched(&mut targets, &mut Passing(&snapshot), &mut store);
        let whole = || Ok(snapshot.check()?);
        match walked.and_then(|()| store.close()).and_then(|()| whole()) {
            Ok(()) => {
                let taken = Taken::of(store.batch.finish(), store.begun);
                Ok(Taken { scan_ns: elapsed_ns(started), ..taken })
            }
            Err(error) => Err(GivenUp { error, begun: store.begun }),
        }
    }

    /// Stops watching regions for which it does not pay, starts watching others that were protected
    /// until now, and finds out which pages of those were written before.
    fn watch_anew(&mut self, regions: &Regions, shielded: &[bool], positions: &[Positions]) {
        let Some(mut watch) = self.watch.take() else { return };
        watch.part();
        let spans: Vec<Span> = regions.iter().map(Region::span).collect();
        let new = watch.to_arm(&spans);
        for (at, region) in regions.iter().enumerate() {
            if !shielded[at] || !new.contains(&spans[at]) {
                continue;
            }
            watch.start(spans[at]);
            let late = self.changed_meanwhile(spans[at], &positions[at]);
            self.late.insert(region.name().to_owned(), late);
        }
        self.watch = Some(watch);
    }

    /// Puts huge pages together where nobody watches: there the next snapshot protects memory.
    fn mend(&mut self, regions: &Regions) {
        let watch = self.watch.as_ref();
        let watched = |span: &Span| watch.is_some_and(|watch| watch.is_watching(*span));
        let spans: Vec<Span> =
            regions.iter().map(Region::span).filter(|span| !watched(span)).collect();
        self.mender.mend(&spans);
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

/// What to fetch of a snapshot.
fn fetched<'a>(
    regions: &Regions,
    positions: &'a mut [Positions],
    dirty: &'a [Dirty],
    mode: Mode,
) -> Vec<Fetched<'a>> {
    let target =
        |(region, (positions, dirty)): (&Region, (&'a mut Positions, &'a Dirty))| Fetched {
            bytes: region.bytes(),
            positions,
            dirty: match dirty {
                Dirty::All => None,
                Dirty::Pages(bits) => Some(bits),
            },
            trust_dirty: mode == Mode::Incremental,
        };
    regions.iter().zip(positions.iter_mut().zip(dirty)).map(target).collect()
}

/// A snapshot as a source of pages, each read once.
struct Passing<'a>(&'a Snapshot);

impl Fetch for Passing<'_> {
    fn page(&mut self, region: usize, page: usize, out: &mut [u8]) {
        self.0.read(region, page, out);
    }

    fn finish(&mut self, region: usize) {
        self.0.finish_region(region);
    }
}
