//! A rank's share of the pages on its device, where ranks agree on who stores which page.
//!
//! ```text
//! call:   candidates that are this rank's -> staged -> places reserved in segments of their own
//! thread: staged pages -> encoded there -> cross -> those segments
//! ```
//! Other ranks refer to the reserved places before anything is in them. That is safe: nothing counts
//! before all ranks have committed, and a rank that fails until then takes the checkpoint with it.
//!
//! A share that does not fit the staging memory is stored in the call.

use std::sync::Arc;

use standfast_capture::{Device, Which};
use standfast_format::SegmentId;
use standfast_reduce::Found;
use standfast_share::Place;

use super::capture::Capturer;
use super::device::{Staging, push_drained};
use super::draft::{GivenUp, Taken};
use super::sharing::Candidates;
use super::storing::Storing;
use super::together::OwnPlaces;
use crate::error::{Error, Result};
use crate::identity;

/// A segment whose pages are known and still on the device.
pub(super) struct Reserved {
    id: SegmentId,
    hashes: Arc<Vec<u8>>,
    /// Regions in the order of their pages, each with the staged pages of it.
    runs: Vec<(usize, Vec<u32>)>,
}

impl Capturer {
    /// Reserves places for candidates that are staged, in segments of their own.
    pub(super) fn reserve(
        &mut self,
        candidates: &Candidates,
        staged: &[u32],
        taken: &mut Taken,
        places: &mut OwnPlaces,
    ) -> std::result::Result<(), GivenUp> {
        let slots_max = (self.segment_bytes() / self.config.page.0) as usize;
        let numbers: Vec<u32> = (0..staged.len() as u32).collect();
        for (segment, numbers) in staged.chunks(slots_max).zip(numbers.chunks(slots_max)) {
            let broken = |error, taken: &Taken| GivenUp { error, begun: taken.own.clone() };
            let id = SegmentId(identity::bytes().map_err(|error| broken(error, taken))?);
            taken.own.push(id);
            self.catalog.open_segment(id);
            let mut runs: Vec<(usize, Vec<u32>)> = Vec::new();
            for (slot, (candidate, number)) in (0..).zip(segment.iter().zip(numbers)) {
                let Found::Entered(_) = self.catalog.find_or_enter(candidates.hash(*candidate))
                else {
                    return Err(broken(Error::Broken { what: "reserving" }, taken));
                };
                let of = taken.own.len() as u32 - 1;
                places[*candidate as usize] = Some(Place { segment: of, slot });
                let (at, _) = candidates.place(*candidate);
                match runs.last_mut() {
                    Some((region, run)) if *region == at => run.push(*number),
                    _ => runs.push((at, vec![*number])),
                }
            }
            let hashes = self.catalog.seal_segment();
            taken.reserved.push(Reserved { id, hashes, runs });
        }
        Ok(())
    }

    /// Brings what was staged to the segments that are reserved for it.
    pub(super) fn store_reserved(
        &mut self,
        staging: Staging<'_>,
        reserved: &[Reserved],
    ) -> std::result::Result<Taken, GivenUp> {
        let mut device = staging.device();
        let outcome = {
            let hash_bytes = self.scanner.hash_bytes();
            let mut store = self.storing(staging.regions, staging.order, 0);
            let outcome = reserved.iter().try_for_each(|segment| {
                store.batch.open_segment(segment.id, None);
                let mut hashes = segment.hashes.as_slice();
                for (at, staged) in &segment.runs {
                    let (own, rest) = hashes.split_at(staged.len() * hash_bytes);
                    push_drained(&mut store, &mut **device, staged, own, *at)?;
                    hashes = rest;
                }
                store.batch.close_segment().map_err(Error::from)
            });
            outcome.map(|()| Taken::of(store.batch.finish(), Vec::new()))
        };
        device.clear();
        self.notes.extend(device.messages());
        outcome.map_err(GivenUp::early)
    }
}

/// Stages all of these candidates, if there are any and they fit.
pub(super) fn stage_whole(
    staging: Staging<'_>,
    candidates: &Candidates,
    wanted: &[u32],
) -> Result<bool> {
    if wanted.is_empty() {
        return Ok(false);
    }
    let mut device = staging.device();
    device.clear();
    for run in wanted.chunk_by(|a, b| candidates.place(*a).0 == candidates.place(*b).0) {
        let region = staging.region_of(candidates, run[0]);
        let pages: Vec<u64> =
            run.iter().map(|candidate| candidates.place(*candidate).1 as u64).collect();
        if device.stage(region, Which::Pages(&pages))? < pages.len() as u64 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Stores candidates that lie on the device; where each lies then, by candidate.
pub(super) fn store_from_device(
    store: &mut Storing<'_>,
    staging: Staging<'_>,
    candidates: &Candidates,
    wanted: &[u32],
    places: &mut OwnPlaces,
) -> Result<()> {
    if !wanted.is_empty() {
        staging.device().clear();
    }
    for run in wanted.chunk_by(|a, b| candidates.place(*a).0 == candidates.place(*b).0) {
        let (at, _) = candidates.place(run[0]);
        let region = staging.region_of(candidates, run[0]);
        let mut rest = run;
        while !rest.is_empty() {
            let pages: Vec<u64> =
                rest.iter().map(|candidate| candidates.place(*candidate).1 as u64).collect();
            let mut device = staging.device();
            let count = device.stage(region, Which::Pages(&pages))? as usize;
            if count == 0 {
                return Err(Error::Broken { what: "staging" });
            }
            let stored = store_staged(store, &mut **device, at, &rest[..count], candidates, places);
            device.clear();
            stored?;
            rest = &rest[count..];
        }
    }
    Ok(())
}

/// Stores the candidates that are staged, in their order.
fn store_staged(
    store: &mut Storing<'_>,
    device: &mut dyn Device,
    at: usize,
    staged: &[u32],
    candidates: &Candidates,
    places: &mut OwnPlaces,
) -> Result<()> {
    let mut next = 0;
    while next < staged.len() {
        store.make_room()?;
        let room = (store.slots_max - store.batch.slots().expect("a segment is open")) as usize;
        let now = &staged[next..][..room.min(staged.len() - next)];
        let hashes: Vec<u8> =
            now.iter().flat_map(|candidate| candidates.hash(*candidate)).copied().collect();
        let first = store.batch.slots().expect("a segment is open");
        for (slot, candidate) in (first..).zip(now) {
            let Found::Entered(_) = store.find_or_enter(candidates.hash(*candidate)) else {
                return Err(Error::Broken { what: "storing" });
            };
            let segment = store.begun.len() as u32 - 1;
            places[*candidate as usize] = Some(Place { segment, slot });
        }
        let slots: Vec<u32> = (next as u32..).take(now.len()).collect();
        push_drained(store, device, &slots, &hashes, at)?;
        next += now.len();
    }
    Ok(())
}
