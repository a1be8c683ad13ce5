//! Taking pages together: ranks agree on who stores which page, and only then are pages copied.
//!
//! Data: scan -> candidates: pages new to this rank -> assignment -> this rank's share is copied, or
//! staged on a device with places reserved for it -> everybody tells where the pages lie -> references.

use std::collections::HashMap;
use std::time::Instant;

use standfast_comm::Collective;
use standfast_format::SegmentId;
use standfast_reduce::{Changed, Consume, PageRef, Positions};
use standfast_share::{Assignment, Fate, Place, Places};

use super::capture::Capturer;
use super::device::Staging;
use super::draft::{GivenUp, Taken, elapsed_ns};
use super::share::{stage_whole, store_from_device};
use super::sharing::{Candidates, Gathering};
use super::stop::{elsewhere, targets};

/// Where this rank has put what it stores, by candidate.
pub(super) type OwnPlaces = Vec<Option<Place>>;

impl Capturer {
    /// Scans, agrees with the other ranks on who stores what, and copies this rank's share.
    /// Collective; a rank that fails goes on to the end, so that no other waits for it.
    ///
    /// # Safety
    /// As [`Capturer::capture`]: mapped, and nobody writes to it until this returns.
    pub(super) unsafe fn take_together(
        &mut self,
        staging: Staging<'_>,
        positions: &mut [Positions],
        team: &Collective,
    ) -> std::result::Result<Taken, GivenUp> {
        let regions = staging.regions;
        let mut clock = Instant::now();
        let mut lap = || elapsed_ns(std::mem::replace(&mut clock, Instant::now()));
        let (mut elsewhere, mut scanned) = (elsewhere(regions), Ok(()));
        let candidates = self.with_dirty(regions, |this, dirty| {
            let (scanner, notes, mode) = (&this.scanner, &mut this.notes, this.config.mode);
            Gathering::run(scanner, &mut this.catalog, |gathering| {
                // SAFETY: the caller vouches for the memory.
                let mut targets =
                    unsafe { targets(regions, positions, &mut elsewhere, dirty, mode) };
                let Ok(()) = scanner.scan(&mut targets, |page| gathering.changed(page));
                scanned = staging.gather(scanner, positions, gathering, notes);
                Ok(())
            })
        });
        let scan_ns = lap();
        let strategy = self.sharing.strategy();
        let assignment =
            strategy.assign(team.raw(), candidates.hashes()).map_err(GivenUp::early)?;
        let assign_ns = lap();
        // SAFETY: the caller vouches for the memory.
        let stored = unsafe { self.store_own(staging, &candidates, &assignment) };
        let stored = match (scanned, stored) {
            (Err(error), Ok((taken, _))) => Err(GivenUp { error, begun: taken.own }),
            (_, stored) => stored,
        };
        let copy_ns = lap();
        let taken = self.refer_together(team, positions, (&candidates, &assignment), stored)?;
        Ok(Taken { scan_ns, copy_ns, agree_ns: assign_ns + lap(), ..taken })
    }

    /// Learns where the other ranks have put what they store for this one, and refers to it.
    /// `stored`: where this rank has put what it stores, by candidate. Collective, whatever became
    /// of this rank's part.
    pub(super) fn refer_together(
        &mut self,
        team: &Collective,
        positions: &mut [Positions],
        (candidates, assignment): (&Candidates, &Assignment),
        stored: std::result::Result<(Taken, OwnPlaces), GivenUp>,
    ) -> std::result::Result<Taken, GivenUp> {
        let (begun, places) = match &stored {
            Ok((taken, places)) => (taken.own.clone(), places.as_slice()),
            Err(given_up) => (given_up.begun.clone(), &[][..]),
        };
        // What failed is told right after this; until then any place will do.
        let nowhere = Place { segment: 0, slot: 0 };
        let place =
            |candidate: u32| places.get(candidate as usize).copied().flatten().unwrap_or(nowhere);
        let located = self.sharing.strategy().locate(team.raw(), assignment, &begun, &place);
        let located =
            located.map_err(|error| GivenUp { error: error.into(), begun: begun.clone() })?;
        let (taken, places) = stored?;
        let foreign = self.refer(positions, candidates, assignment, &located, &begun, &places);
        Ok(Taken { foreign, ..taken })
    }

    /// Copies or stages the candidates that this rank stores; where each lies, by candidate.
    ///
    /// # Safety
    /// As [`Capturer::capture`]: mapped, and nobody writes to it until this returns.
    unsafe fn store_own(
        &mut self,
        staging: Staging<'_>,
        candidates: &Candidates,
        assignment: &Assignment,
    ) -> std::result::Result<(Taken, OwnPlaces), GivenUp> {
        let on_device: Vec<bool> =
            staging.regions.iter().map(|region| region.device().is_some()).collect();
        let (there, here): (Vec<u32>, Vec<u32>) =
            assignment.mine().partition(|candidate| on_device[candidates.place(*candidate).0]);
        let staged = stage_whole(staging, candidates, &there).map_err(GivenUp::early)?;
        let now: &[u32] = if staged { &[] } else { &there };
        let mut places: OwnPlaces = vec![None; assignment.len()];
        // SAFETY: the caller vouches for the memory.
        let taken = unsafe { self.copy_own(staging, candidates, (&here, now), &mut places) };
        let mut taken = taken?;
        if staged {
            self.reserve(candidates, &there, &mut taken, &mut places)?;
        }
        Ok((taken, places))
    }

    /// Copies candidates in this memory and on the device.
    ///
    /// # Safety
    /// As [`Capturer::capture`]: mapped, and nobody writes to it until this returns.
    unsafe fn copy_own(
        &mut self,
        staging: Staging<'_>,
        candidates: &Candidates,
        (here, there): (&[u32], &[u32]),
        places: &mut OwnPlaces,
    ) -> std::result::Result<Taken, GivenUp> {
        let Staging { regions, order, .. } = staging;
        let page_bytes = self.config.page.0 as usize;
        let pages = here.len() + there.len();
        self.catalog.reserve(pages);
        // SAFETY: the caller vouches for the memory.
        let memory: Vec<&[u8]> = regions.iter().map(|region| unsafe { region.memory() }).collect();
        let mut store = self.storing(regions, order, pages as u64 * page_bytes as u64);
        for candidate in here {
            let (region, page) = candidates.place(*candidate);
            let bytes = memory[region].chunks(page_bytes).nth(page).expect("it was scanned");
            let hash = candidates.hash(*candidate);
            let stored = store.changed(Changed { region, page, bytes, hash, zero: false });
            if let Err(error) = stored {
                return Err(GivenUp { error, begun: store.begun });
            }
            places[*candidate as usize] = Some(store.last_place());
        }
        let stored = store_from_device(&mut store, staging, candidates, there, places);
        match stored.and_then(|()| store.close()) {
            Ok(()) => Ok(Taken::of(store.batch.finish(), store.begun)),
            Err(error) => Err(GivenUp { error, begun: store.begun }),
        }
    }

    /// Replaces candidates by references to where they are; returns other ranks' new segments.
    fn refer(
        &mut self,
        positions: &mut [Positions],
        candidates: &Candidates,
        assignment: &Assignment,
        located: &Places,
        begun: &[SegmentId],
        places: &[Option<Place>],
    ) -> Vec<SegmentId> {
        let own: Vec<u32> = begun.iter().map(|id| self.catalog.foreign_segment(*id)).collect();
        let foreign: Vec<u32> =
            located.segments().iter().map(|id| self.catalog.foreign_segment(*id)).collect();
        if let Some(owners) = self.sharing.owners() {
            owners.agreed(assignment, located);
        }
        let mut earlier: HashMap<SegmentId, u32> = HashMap::new();
        let final_places: Vec<PageRef> = (0..assignment.len() as u32)
            .map(|candidate| match (places[candidate as usize], assignment.fate(candidate)) {
                // Also what another rank stores too: a segment to which nobody refers would go.
                (Some(Place { segment, slot }), _) => PageRef::at(own[segment as usize], slot),
                (None, Fate::Mine) => unreachable!("this rank has stored it"),
                (None, Fate::Theirs { .. }) => {
                    let Place { segment, slot } = located.get(candidate).expect("it was located");
                    PageRef::at(foreign[segment as usize], slot)
                }
                (None, Fate::Old { segment, slot }) => {
                    let number = *earlier
                        .entry(segment)
                        .or_insert_with(|| self.catalog.foreign_segment(segment));
                    PageRef::at(number, slot)
                }
            })
            .collect();
        for positions in positions {
            positions.remap(|page| candidates.find(page).map_or(page, |at| final_places[at]));
        }
        located.segments().to_vec()
    }
}
