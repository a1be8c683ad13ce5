//! Referring to pages that the ranks store for each other.
//!
//! Data: where this rank has put its share -> the ranks tell each other -> page tables that name
//! segments instead of candidates.

use std::collections::HashMap;

use standfast_comm::Collective;
use standfast_format::SegmentId;
use standfast_reduce::{PageRef, Positions};
use standfast_share::{Assignment, Fate, Place as Location, Places};

use super::candidates::Candidates;
use super::draft::{GivenUp, Stored};
use super::ledger::Ledger;
use super::place::Placement;
use crate::error::Error;

/// Where this rank has put what it stores, by candidate.
pub(super) type OwnPlaces = Vec<Option<Location>>;

/// Learns where the other ranks have put what they store for this one, and refers to it.
/// `stored`: where this rank has put what it stores, by candidate. Collective, whatever became
/// of this rank's part.
pub(super) fn locate(
    placement: &mut dyn Placement,
    team: &Collective,
    ledger: &mut Ledger,
    (candidates, assignment): (&Candidates, &Assignment),
    stored: std::result::Result<(Stored, OwnPlaces), GivenUp>,
    positions: &mut [Positions],
) -> std::result::Result<Stored, GivenUp> {
    let (begun, places) = match &stored {
        Ok((stored, places)) => (stored.own.clone(), places.as_slice()),
        Err(given_up) => (given_up.begun.clone(), &[][..]),
    };
    // What failed is told right after this; until then any place will do.
    let nowhere = Location { segment: 0, slot: 0 };
    let place =
        |candidate: u32| places.get(candidate as usize).copied().flatten().unwrap_or(nowhere);
    let located = placement.strategy().locate(team.raw(), assignment, &begun, &place);
    let located = located.map_err(|error| GivenUp { error: error.into(), begun: begun.clone() })?;
    let (stored, places) = stored?;
    if let Some(owners) = placement.owners() {
        owners.agreed(assignment, &located);
    }
    let fates = (assignment, &located);
    let final_places = final_places(ledger, fates, &begun, &places);
    let final_places =
        final_places.ok_or(Error::Broken { what: "locating pages" }).map_err(|error| {
            let foreign = located.segments().iter().copied();
            GivenUp { error, begun: begun.iter().copied().chain(foreign).collect() }
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
    let mut earlier: HashMap<SegmentId, u32> = HashMap::new();
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
