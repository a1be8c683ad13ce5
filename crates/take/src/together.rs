//! Taking pages together: ranks agree on who stores which page, and only then are pages brought.
//!
//! ```text
//! look    every page that may be new is hashed -> candidates: pages new to this rank
//! assign  the ranks decide who stores what; whoever waits to write is served meanwhile
//! keep    what can be set aside gets places in segments of its own, and is brought later
//! bring   the rest of this rank's share, in order
//! locate  the ranks tell each other where the pages lie -> references
//! ```
//! Why writers are served while the ranks agree: a writer may be inside of the very library that
//! carries our messages, holding its lock. If it waited for us and we for it, nobody would ever go
//! on. So pages that hold a writer up are stored by this rank without asking; another rank may
//! store them too.
//!
//! Other ranks refer to places before anything is in them. That is safe: nothing counts before all
//! ranks have committed, and a rank that fails until then takes the checkpoint with it.
//!
//! Invariants:
//! - A rank that fails goes on to the end, so that no other waits for it.
//! - While this thread waits for other ranks, no writer waits longer than [`PATIENCE`].
//! - Nothing is held up any more when the ranks tell each other where pages lie.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use standfast_comm::Collective;
use standfast_format::SegmentId;
use standfast_reduce::{Changed, Consume, Found, PageAt, PageRef, PageTable};
use standfast_share::{Assignment, Fate, Location, Places};
use standfast_sys::Stopwatch;

use crate::candidates::{Candidates, Gathering};
use crate::ingest::{Ingest, targets};
use crate::ledger::Ledger;
use crate::place::{Placement, converse};
use crate::stored::{Aborted, Stored, guarded};
use crate::storing::{Bringing, Pages, Storing, new_segment};

use crate::error::{Error, Result};

/// So long writers wait for an agreement before they are served.
const PATIENCE: Duration = Duration::from_millis(50);
/// How often it is looked after them.
const LOOK: Duration = Duration::from_millis(1);

/// A segment whose pages are known, and set aside to be brought later.
pub(crate) struct Reserved {
    pub(crate) id: SegmentId,
    pub(crate) hashes: Arc<Vec<u8>>,
    pub(crate) pages: Vec<PageAt>,
}

impl Ingest<'_> {
    /// Looks, agrees with the other ranks on who stores what, and stores this rank's share.
    /// `ready`: whether all sources are there. Collective.
    pub(crate) fn together(
        &mut self,
        placement: &mut dyn Placement,
        team: &Collective,
        sources: &[&Pages<'_>],
        ready: Result<()>,
    ) -> std::result::Result<Stored, Aborted> {
        let mut clock = Stopwatch::start();
        let mut lap = || clock.lap_ns();
        let (candidates, looked) = self.look(sources);
        let scan_ns = lap();
        let mut own = OwnPages {
            places: vec![None; candidates.len()],
            candidates: &candidates,
            regions: self.regions.iter().map(|region| region.bytes()).collect(),
            store: self.storing(0),
            failure: ready.and(looked).err(),
        };
        let assignment = match own.assign(placement, team, sources) {
            Ok(assignment) => assignment,
            Err(error) => return Err(Aborted { error, begun: own.store.begun }),
        };
        let assign_ns = lap();
        let stored = own.store_share(&assignment, sources);
        let stored = stored.and_then(|(stored, places, kept)| {
            guarded("reserving", || self.reserve(&candidates, &kept, stored, places))
        });
        let copy_ns = lap();
        let agreed = (&candidates, &assignment);
        let stored = locate(placement, team, self.ledger, agreed, stored, self.positions)?;
        Ok(Stored { scan_ns, copy_ns, agree_ns: assign_ns + lap(), ..stored })
    }

    /// Looks at every page that may be new.
    fn look(&mut self, sources: &[&Pages<'_>]) -> (Candidates, Result<()>) {
        let (scanner, compare) = (&self.env.scanner, self.env.settings.compare);
        let mut targets = targets(self.positions, self.dirty, compare);
        let (candidates, looked) = Gathering::run(scanner, &mut self.ledger.catalog, |gathering| {
            let mut sources = sources.iter();
            guarded("scanning", || {
                sources.try_for_each(|source| scanner.scan(*source, &mut targets, gathering))
            })
        });
        keep_only(sources, self.positions.len(), &candidates, |_| true);
        (candidates, looked)
    }

    /// Reserves places for candidates that are set aside, in segments of their own.
    fn reserve(
        &mut self,
        candidates: &Candidates,
        kept: &[u32],
        mut stored: Stored,
        mut places: OwnPlaces,
    ) -> std::result::Result<(Stored, OwnPlaces), Aborted> {
        let settings = &self.env.settings;
        let slots_max = self.writer.segment_bytes(settings, self.regions.bytes()) as usize
            / settings.pack.page_bytes;
        let catalog = &mut self.ledger.catalog;
        for kept in kept.chunks(slots_max) {
            let id = match new_segment() {
                Ok(id) => id,
                Err(error) => return Err(Aborted { error, begun: stored.own }),
            };
            stored.own.push(id);
            catalog.open_segment(id);
            let segment = stored.own.len() as u32 - 1;
            for (slot, candidate) in (0..).zip(kept) {
                let Found::Entered(_) = catalog.find_or_enter(candidates.hash(*candidate)) else {
                    let error = Error::Broken { what: "reserving" };
                    return Err(Aborted { error, begun: stored.own });
                };
                places[*candidate as usize] = Some(Location { segment, slot });
            }
            let pages = kept.iter().map(|candidate| candidates.page(*candidate)).collect();
            stored.reserved.push(Reserved { id, hashes: catalog.seal_segment(), pages });
        }
        Ok((stored, places))
    }
}

/// Lets the program have everything but candidates that are wanted.
fn keep_only(
    sources: &[&Pages<'_>],
    regions: usize,
    candidates: &Candidates,
    is_wanted: impl Fn(&u32) -> bool,
) {
    for (source, region) in
        sources.iter().flat_map(|source| (0..regions).map(move |at| (source, at)))
    {
        let is_needed = |pages: Range<usize>| {
            candidates.within(region, pages).any(|candidate| is_wanted(&candidate))
        };
        source.needed(region, &is_needed);
    }
}

/// The pages that this rank stores.
struct OwnPages<'a> {
    candidates: &'a Candidates,
    /// Where each candidate is that was stored.
    places: OwnPlaces,
    /// Length of each region.
    regions: Vec<usize>,
    store: Storing<'a>,
    /// What looking or storing failed with: nothing is stored any more.
    failure: Option<Error>,
}

impl OwnPages<'_> {
    /// Lets the ranks agree, and serves those who wait meanwhile.
    fn assign(
        &mut self,
        placement: &mut dyn Placement,
        team: &Collective,
        sources: &[&Pages<'_>],
    ) -> Result<Assignment> {
        let hashes = self.candidates.hashes();
        if !sources.iter().any(|source| source.holds_up()) {
            return converse(team.raw(), |comm| placement.strategy().assign(comm, hashes));
        }
        let (waiter, comm) = (std::thread::current(), team.raw());
        let agree = Mutex::new(Some(move || {
            let assigned = converse(comm, |comm| placement.strategy().assign(comm, hashes));
            waiter.unpark();
            assigned
        }));
        let agree = || {
            let own = agree.lock().unwrap_or_else(PoisonError::into_inner).take();
            own.map(|mut own| own())
        };
        std::thread::scope(|scope| {
            // Without a thread nobody is served meanwhile: writers of the program wait longer.
            let Some(agreeing) = standfast_sys::help(scope, agree) else {
                return agree().expect("it is done once");
            };
            let mut patience = PATIENCE;
            while !agreeing.is_finished() {
                let looked = Instant::now();
                std::thread::park_timeout(LOOK);
                if !sources.iter().any(|source| source.is_overdue()) {
                    continue;
                }
                patience = patience.saturating_sub(looked.elapsed());
                if patience.is_zero() {
                    let served = guarded("storing", || {
                        sources.iter().for_each(|source| self.serve(*source));
                        Ok(())
                    });
                    self.failure = self.failure.take().or(served.err());
                }
            }
            let agreed = agreeing.join().ok().flatten();
            agreed.unwrap_or(Err(Error::Broken { what: "sharing" }))
        })
    }

    /// Stores what holds writers up, and lets them go on.
    fn serve(&mut self, source: &Pages<'_>) {
        let mut buffer = vec![0; self.store.page_bytes];
        source.serve(&mut |region, pages| {
            for candidate in self.candidates.within(region, pages) {
                if self.places[candidate as usize].is_some() || self.failure.is_some() {
                    continue;
                }
                let at = self.candidates.page(candidate);
                let rest = self.regions[region] - at.page as usize * buffer.len();
                let length = rest.min(buffer.len());
                let bytes = &mut buffer[..length];
                source.read(at, bytes);
                let (page, hash) = (at.page as usize, self.candidates.hash(candidate));
                let changed = Changed { region, page, bytes, hash, zero: false };
                let stored = self.store.changed(changed).and_then(|at| self.store.location(at));
                match stored {
                    Ok(location) => self.places[candidate as usize] = Some(location),
                    Err(error) => self.failure = Some(error),
                }
            }
        });
    }

    /// Stores this rank's share, and finishes; returns the candidates that are set aside as well.
    fn store_share(
        mut self,
        assignment: &Assignment,
        sources: &[&Pages<'_>],
    ) -> std::result::Result<(Stored, OwnPlaces, Vec<u32>), Aborted> {
        let stored = match self.failure.take() {
            None => guarded("storing", || self.bring_share(assignment, sources)),
            Some(error) => Err(error),
        };
        let stored = stored.inspect_err(|_| {
            // Nobody is held up any more, whatever became of it.
            sources.iter().for_each(|source| drop(source.end()));
        });
        match stored.and_then(|kept| self.store.close().map(|()| kept)) {
            Ok(kept) => {
                let stored = Stored::of(self.store.batch.finish(), self.store.begun);
                Ok((stored, self.places, kept))
            }
            Err(error) => Err(Aborted { error, begun: self.store.begun }),
        }
    }

    fn bring_share(&mut self, assignment: &Assignment, sources: &[&Pages<'_>]) -> Result<Vec<u32>> {
        let Self { candidates, places, store, .. } = self;
        let open = |candidate: &u32| {
            assignment.is_mine(*candidate) && places[*candidate as usize].is_none()
        };
        keep_only(sources, self.regions.len(), candidates, open);
        let share: Vec<u32> = assignment.mine().filter(open).collect();
        let (mut kept, mut now) = (Vec::new(), Vec::new());
        for source in sources {
            let of = |candidate: &u32| {
                source.reach(candidates.page(*candidate).region as usize).is_some()
            };
            let own: Vec<u32> = share.iter().copied().filter(of).collect();
            let pages: Vec<PageAt> = own.iter().map(|of| candidates.page(*of)).collect();
            match source.keep(&pages)? {
                true => kept.extend(own),
                false => now.push((*source, own)),
            }
        }
        store.expect_pages(now.iter().map(|(_, own)| own.len()).sum());
        for (source, own) in now {
            let mut bringing = Bringing::new(store, source);
            for candidate in own {
                let (page, hash) = (candidates.page(candidate), candidates.hash(candidate));
                let entered = bringing.hashed(page, hash)?;
                places[candidate as usize] = Some(bringing.location(entered)?);
            }
            bringing.flush()?;
            source.end()?;
        }
        Ok(kept)
    }
}

/// Where this rank has put what it stores, by candidate.
type OwnPlaces = Vec<Option<Location>>;

/// Learns where the other ranks have put what they store for this one, and refers to it.
/// `stored`: where this rank has put what it stores, by candidate. Collective, whatever became
/// of this rank's part.
fn locate(
    placement: &mut dyn Placement,
    team: &Collective,
    ledger: &mut Ledger,
    (candidates, assignment): (&Candidates, &Assignment),
    stored: std::result::Result<(Stored, OwnPlaces), Aborted>,
    positions: &mut [PageTable],
) -> std::result::Result<Stored, Aborted> {
    let (begun, places) = match &stored {
        Ok((stored, places)) => (stored.own.clone(), places.as_slice()),
        Err(aborted) => (aborted.begun.clone(), &[][..]),
    };
    // What failed is told right after this; until then any place will do.
    let nowhere = Location { segment: 0, slot: 0 };
    let place =
        |candidate: u32| places.get(candidate as usize).copied().flatten().unwrap_or(nowhere);
    let located =
        converse(team.raw(), |comm| placement.strategy().locate(comm, assignment, &begun, &place));
    let located = located.map_err(|error| Aborted { error, begun: begun.clone() })?;
    let (stored, places) = stored?;
    if let Some(owners) = placement.owners() {
        owners.agreed(assignment, &located);
    }
    let fates = (assignment, &located);
    let final_places = final_places(ledger, fates, &begun, &places);
    let final_places =
        final_places.ok_or(Error::Broken { what: "locating pages" }).map_err(|error| {
            let foreign = located.segments().iter().copied();
            Aborted { error, begun: begun.iter().copied().chain(foreign).collect() }
        })?;
    for positions in positions {
        positions.remap(|page| candidates.find(page).map_or(page, |at| final_places[at]));
    }
    Ok(Stored { foreign: located.segments().to_vec(), ..stored })
}

/// Where each candidate is, if all are somewhere.
fn final_places(
    ledger: &mut Ledger,
    (assignment, located): (&Assignment, &Places),
    begun: &[SegmentId],
    places: &[Option<Location>],
) -> Option<Vec<PageRef>> {
    let catalog = &mut ledger.catalog;
    let own: Vec<u32> = begun.iter().map(|id| catalog.foreign_segment(*id)).collect();
    let foreign: Vec<u32> =
        located.segments().iter().map(|id| catalog.foreign_segment(*id)).collect();
    let mut earlier: BTreeMap<SegmentId, u32> = BTreeMap::new();
    (0..assignment.len() as u32)
        .map(|candidate| match (places[candidate as usize], assignment.fate(candidate)) {
            // Also what another rank stores too: a segment to which nobody refers would go.
            (Some(Location { segment, slot }), _) => Some(PageRef::at(own[segment as usize], slot)),
            (None, Fate::Mine) => None,
            (None, Fate::Theirs { .. }) => {
                let Location { segment, slot } = located.get(candidate)?;
                Some(PageRef::at(foreign[segment as usize], slot))
            }
            (None, Fate::Old { segment, slot }) => {
                let number =
                    *earlier.entry(segment).or_insert_with(|| catalog.foreign_segment(segment));
                Some(PageRef::at(number, slot))
            }
        })
        .collect()
}
