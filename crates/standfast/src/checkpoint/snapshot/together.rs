//! Taking a frozen state in together with the other ranks, while the programs go on.
//!
//! ```text
//! look    every page that may be new is hashed; nothing is given up but what turns out to be known
//! agree   the ranks decide who stores what; whoever waits to write is served meanwhile
//! store   this rank's share, in order; everything is given up
//! refer   the ranks tell each other where the pages lie
//! ```
//! Why writers are served while the ranks agree: a writer may be inside of the very library that
//! carries our messages, holding its lock. If it waited for us and we for it, nobody would ever go
//! on. So pages that hold a writer up are stored by this rank without asking; another rank may
//! store them too.
//!
//! Invariants:
//! - While this thread waits for other ranks, no writer waits longer than [`PATIENCE`].
//! - Nothing is held up any more when the ranks tell each other where pages lie.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use standfast_capture::{Regions, Snapshot};
use standfast_comm::Collective;
use standfast_reduce::{Changed, Consume, Fetch, Fetched, Positions};
use standfast_share::Assignment;

use super::super::capture::Capturer;
use super::super::draft::{GivenUp, Order, Taken, elapsed_ns};
use super::super::sharing::{Candidates, Sharing};
use super::super::storing::Storing;
use super::super::together::OwnPlaces;
use crate::error::{Error, Result};

/// So long writers wait for an agreement before they are served.
const PATIENCE: Duration = Duration::from_millis(50);
/// How often it is looked after them.
const LOOK: Duration = Duration::from_millis(1);

impl Capturer {
    /// Looks at every page that may be new.
    pub(super) fn gather_snapshot(
        &mut self,
        mut targets: Vec<Fetched<'_>>,
        snapshot: &Snapshot,
    ) -> (Candidates, u64) {
        let started = Instant::now();
        let (scanner, mut source) = (self.scanner.clone(), Keeping(snapshot));
        let candidates =
            Candidates::gather_fetched(&scanner, &mut self.catalog, &mut targets, &mut source);
        for region in 0..targets.len() {
            snapshot.keep_only(region, |pages| !candidates.within(region, pages).is_empty());
        }
        (candidates, elapsed_ns(started))
    }

    /// Agrees with the other ranks on who stores what, and stores this rank's share. A
    /// rank that fails goes on to the end, so that no other waits for it.
    pub(super) fn take_snapshot_together(
        &mut self,
        regions: &Regions,
        order: Order,
        positions: &mut [Positions],
        (candidates, scan_ns): (Candidates, u64),
        snapshot: Snapshot,
        team: &Collective,
    ) -> std::result::Result<Taken, GivenUp> {
        let mut clock = Instant::now();
        let mut lap = || elapsed_ns(std::mem::replace(&mut clock, Instant::now()));
        // Apart while pages are stored: the strategy then works on another thread.
        let mut sharing = std::mem::replace(&mut self.sharing, Sharing::Off);
        let storing = AssertUnwindSafe(|| {
            let mut own = OwnPages {
                snapshot: &snapshot,
                places: vec![None; candidates.len()],
                candidates: &candidates,
                page: vec![0; self.config.page.0 as usize],
                bytes: regions.iter().map(|region| region.bytes()).collect(),
                store: self.storing(regions, order, 0),
                failure: None,
            };
            let assigned = own.agree(&mut sharing, team);
            let assign_ns = lap();
            assigned.map(|assignment| (own.store_share(&assignment), assignment, assign_ns))
        });
        let stored = catch_unwind(storing);
        self.sharing = sharing;
        drop(snapshot);
        let stored = stored.unwrap_or_else(|panic| resume_unwind(panic));
        let (stored, assignment, assign_ns) = stored.map_err(GivenUp::early)?;
        let copy_ns = lap();
        let taken = self.refer_together(team, positions, (&candidates, &assignment), stored)?;
        Ok(Taken { scan_ns, copy_ns, agree_ns: assign_ns + lap(), ..taken })
    }
}

/// The pages that this rank stores.
struct OwnPages<'a> {
    snapshot: &'a Snapshot,
    candidates: &'a Candidates,
    /// Where each candidate is that was stored.
    places: OwnPlaces,
    /// Room for a page.
    page: Vec<u8>,
    /// Length of each region.
    bytes: Vec<usize>,
    store: Storing<'a>,
    /// What storing failed with: nothing is stored any more.
    failure: Option<Error>,
}

impl OwnPages<'_> {
    /// Lets the ranks agree, and serves those who wait meanwhile.
    fn agree(&mut self, sharing: &mut Sharing, team: &Collective) -> Result<Assignment> {
        let (waiter, hashes) = (std::thread::current(), self.candidates.hashes());
        let comm = team.raw();
        std::thread::scope(|scope| {
            let agreeing = scope.spawn(move || {
                let assigned = sharing.strategy().assign(comm, hashes);
                waiter.unpark();
                assigned
            });
            let mut patience = PATIENCE;
            while !agreeing.is_finished() {
                let looked = Instant::now();
                std::thread::park_timeout(LOOK);
                let waits = self.snapshot.waits();
                if waits.is_empty() {
                    continue;
                }
                patience = patience.saturating_sub(looked.elapsed());
                if patience.is_zero() {
                    self.serve(&waits);
                }
            }
            Ok(agreeing.join().unwrap_or_else(|panic| resume_unwind(panic))?)
        })
    }

    /// Stores what holds writers up, and lets them go on.
    fn serve(&mut self, waits: &[standfast_capture::Wait]) {
        for wait in waits {
            for candidate in self.candidates.within(wait.region, wait.pages.clone()) {
                self.store(candidate, false);
            }
            self.snapshot.end_wait(wait);
        }
    }

    /// Stores this rank's share, and finishes.
    fn store_share(
        mut self,
        assignment: &Assignment,
    ) -> std::result::Result<(Taken, OwnPlaces), GivenUp> {
        let open = |own: &Self, candidate: u32| {
            assignment.is_mine(candidate) && own.places[candidate as usize].is_none()
        };
        for region in 0..self.bytes.len() {
            self.snapshot.keep_only(region, |pages| {
                self.candidates.within(region, pages).any(|candidate| open(&self, candidate))
            });
        }
        let share: Vec<u32> =
            assignment.mine().filter(|candidate| open(&self, *candidate)).collect();
        self.store.expect_pages(share.len());
        for candidate in share {
            self.store(candidate, true);
        }
        let failure = self.failure.map_or(Ok(()), Err);
        let whole = || Ok(self.snapshot.check()?);
        match failure.and_then(|()| self.store.close()).and_then(|()| whole()) {
            Ok(()) => Ok((Taken::of(self.store.batch.finish(), self.store.begun), self.places)),
            Err(error) => Err(GivenUp { error, begun: self.store.begun }),
        }
    }

    /// Stores a candidate, unless it is stored or storing has failed. `pass`: in order, and what
    /// lies before may be given up.
    fn store(&mut self, candidate: u32, pass: bool) {
        if self.places[candidate as usize].is_some() || self.failure.is_some() {
            return;
        }
        let (region, page) = self.candidates.place(candidate);
        let rest = self.bytes[region] - page * self.page.len();
        let length = rest.min(self.page.len());
        let bytes = &mut self.page[..length];
        match pass {
            true => self.snapshot.read(region, page, bytes),
            false => self.snapshot.peek(region, page, bytes),
        }
        let hash = self.candidates.hash(candidate);
        match self.store.changed(Changed { region, page, bytes, hash, zero: false }) {
            Ok(_) => self.places[candidate as usize] = Some(self.store.last_place()),
            Err(error) => self.failure = Some(error),
        }
    }
}

/// A snapshot as a source of pages that are needed again.
struct Keeping<'a>(&'a Snapshot);

impl Fetch for Keeping<'_> {
    fn page(&mut self, region: usize, page: usize, out: &mut [u8]) {
        self.0.peek(region, page, out);
    }

    fn finish(&mut self, _: usize) {}
}
