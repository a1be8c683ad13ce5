//! What the agent has made of a draft: a checkpoint of all ranks, or its node's part of one.
//!
//! ```text
//! one store:    the agent has committed, or not -> told to its ranks
//! more stores:  agent of each node: segments, pledge -> told to its ranks
//!               ranks: tell each other segments and places of streams -> images, manifest, as ever
//! ```
//! A pledge outlives the ranks: if they die before the manifest is written, the next opening
//! commits what all nodes have pledged ([`crate::pledges`]).

use std::time::Instant;

use standfast_checkpoint::{Described, Inventory, Order, Part, refresh};
use standfast_format::{Level, SegmentId, SegmentRef, Stats, Writes};

use super::commit::{CommitSettings, Committed, Outcome, Sealed};
use super::sink::{Ticket, Unplaced};
use crate::error::{Error, Result};

impl CommitSettings {
    /// What the agent made of a draft of all ranks, and the news for whoever waits.
    pub(super) fn conclude_handed(
        &self,
        order: Order,
        mut ticket: Ticket,
        foreign: Vec<SegmentId>,
        notes: Vec<String>,
        inventory: &mut Inventory,
    ) -> Outcome {
        let begun = ticket.streams().iter().copied().chain(foreign).collect();
        let outcome = match ticket.settled() {
            Ok(settled) => self.take_settled(order, settled, notes, inventory),
            Err(error) => self.look_for(order, error, inventory),
        };
        self.settled(order.version, begun, Level::Local, outcome)
    }

    fn take_settled(
        &self,
        order: Order,
        settled: standfast_agent::Settled,
        notes: Vec<String>,
        inventory: &mut Inventory,
    ) -> Result<Committed> {
        let standfast_agent::Settled { outcome, places, removed, holdings, .. } = settled;
        holdings.take_in(inventory);
        outcome.map_err(standfast_agent::Failure::into_error)?;
        let notes = notes.into_iter().chain(settled.notes).collect();
        self.committed(order, removed, places, notes, inventory)
    }

    /// The agent is gone: the store knows whether the checkpoint exists. Nobody writes there now.
    fn look_for(&self, order: Order, error: Error, inventory: &mut Inventory) -> Result<Committed> {
        refresh(&*self.publisher.store, inventory);
        if inventory.checkpoints.iter().any(|found| found.attempt == order.attempt) {
            return self.committed(order, Vec::new(), Vec::new(), Vec::new(), inventory);
        }
        Err(error)
    }
}

impl Sealed {
    /// What the node's agent has made of a draft. Every rank tells of the segments that are named
    /// after it, so that each is told once.
    pub(super) fn pledged(
        mut ticket: Ticket,
        order: Order,
        started: Instant,
        mut foreign: Vec<SegmentId>,
        stats: Stats,
        notes: Vec<String>,
    ) -> Self {
        foreign.extend(ticket.streams());
        let part = pledged_part(&mut ticket, started, stats);
        let own = part.iter().flat_map(|(_, part)| part.ids()).collect();
        Self { order, own, foreign, part, pledged: true, notes }
    }
}

fn pledged_part(
    ticket: &mut Ticket,
    started: Instant,
    mut stats: Stats,
) -> Result<(Described, Part)> {
    let standfast_agent::Settled { outcome, places, pledged, .. } = ticket.settled()?;
    outcome.map_err(standfast_agent::Failure::into_error)?;
    let (Some(Unplaced { image, streams }), Some(pledged)) = (ticket.unplaced.take(), pledged)
    else {
        return Err(Error::Broken { what: "pledging" });
    };
    let rank = image.rank;
    let mut segments = pledged.segments;
    segments.retain(|segment: &SegmentRef| segment.rank == rank);
    let is_own = |id: SegmentId| segments.iter().any(|segment| segment.id == id);
    let places = places.into_iter().filter(|place| is_own(place.segment)).collect();
    let mut writes = Writes::of(rank);
    if let Some(figures) = pledged.figures.into_iter().find(|figures| figures.rank == rank.0) {
        stats.compressed_bytes = figures.compressed_bytes;
        stats.segment_bytes = figures.segment_bytes;
        (writes.pieces, writes.writes) = (figures.pieces, figures.writes);
    }
    let described = Described { image: *image, streams, stats, writes, started };
    Ok((described, Part { segments, places }))
}
