//! Committing what the agents of several nodes have made durable.
//!
//! ```text
//! agent of each node:  segments, pledge -> told to its ranks
//! ranks:               tell each other segments and places of streams -> images, manifest, as ever
//! ```
//! A pledge outlives the ranks: if they die before the manifest is written, the next opening
//! commits what all nodes have pledged ([`crate::pledges`]).
//!
//! Invariant: a pledge goes before what it names, and after the manifest is there.

use std::collections::HashMap;
use std::time::Instant;

use standfast_agent::StreamPlace;
use standfast_checkpoint::{Moved, relocate};
use standfast_format::{Digest, Rank, SegmentId, SegmentRef, Stats, Tally, name};
use standfast_store::Store;

use super::commit::Sealed;
use super::draft::Order;
use super::sink::{Ticket, Unplaced};
use crate::error::{Error, Result};

/// What the node's agent has made of a draft. Every rank tells of the segments that are named after
/// it, so that each is told once.
pub(super) fn sealed(
    mut ticket: Ticket,
    order: Order,
    started: Instant,
    mut foreign: Vec<SegmentId>,
    stats: Stats,
    notes: Vec<String>,
) -> Sealed {
    foreign.extend(ticket.streams());
    let mut sealed = Sealed {
        order,
        sequence: order.sequence,
        started,
        own: Vec::new(),
        foreign,
        regions: Vec::new(),
        table: Vec::new(),
        references: None,
        stats,
        segments: Ok(Vec::new()),
        pieces: Tally::default(),
        writes: Tally::default(),
        notes,
        pledged: Some(Vec::new()),
    };
    sealed.segments = take_in(&mut ticket, &mut sealed);
    sealed
}

fn take_in(ticket: &mut Ticket, sealed: &mut Sealed) -> Result<Vec<SegmentRef>> {
    let standfast_agent::Settled { outcome, places, pledged, .. } = ticket.settled()?;
    outcome.map_err(standfast_agent::Failure::into_error)?;
    let (Some(Unplaced { image, streams }), Some(pledged)) = (ticket.unplaced.take(), pledged)
    else {
        return Err(Error::Broken { what: "pledging" });
    };
    let rank = image.rank;
    let own = |segment: &&SegmentRef| segment.rank == rank;
    let segments: Vec<SegmentRef> = pledged.segments.iter().filter(own).copied().collect();
    sealed.own = segments.iter().map(|segment| segment.id).collect();
    let told = places.into_iter().filter(|place| sealed.own.contains(&place.segment));
    sealed.pledged = Some(told.collect());
    let known =
        |segment: SegmentRef| (segment.id, (!streams.contains(&segment.id)).then_some(segment));
    sealed.table = image.segments.into_iter().map(known).collect();
    sealed.regions = image.regions;
    sealed.references = image.references;
    if let Some(figures) = pledged.figures.into_iter().find(|figures| figures.rank == rank.0) {
        sealed.stats.compressed_bytes = figures.compressed_bytes;
        sealed.stats.segment_bytes = figures.segment_bytes;
        (sealed.pieces, sealed.writes) = (figures.pieces, figures.writes);
    }
    Ok(segments)
}

/// Puts streams where they are; `segments` and `places` of all ranks.
pub(super) fn place(
    sealed: &mut Sealed,
    segments: &[SegmentRef],
    places: &[StreamPlace],
) -> Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let by_id: HashMap<SegmentId, &SegmentRef> =
        segments.iter().map(|segment| (segment.id, segment)).collect();
    let moved = places.iter().filter_map(|place| {
        let segment = **by_id.get(&place.segment)?;
        Some((place.stream, Moved { segment, first_slot: place.first_slot }))
    });
    let moved: HashMap<SegmentId, Moved> = moved.collect();
    let lost =
        |(id, known): &&(SegmentId, Option<SegmentRef>)| known.is_none() && !moved.contains_key(id);
    if let Some((segment, _)) = sealed.table.iter().find(lost) {
        return Err(Error::Unsealed { segment: *segment });
    }
    let mut table: Vec<SegmentRef> =
        sealed.table.iter().map(|(id, known)| known.unwrap_or_else(|| unplaced(*id))).collect();
    relocate(&mut table, &mut sealed.regions, &moved)?;
    sealed.table = table.into_iter().map(|segment| (segment.id, Some(segment))).collect();
    Ok(())
}

/// A stream in a segment table: where it ends up is not known yet, or not here.
pub(super) fn unplaced(id: SegmentId) -> SegmentRef {
    let index = Digest([0; 32]);
    SegmentRef { id, rank: Rank(0), slots: u32::MAX, file_bytes: 0, index }
}

/// Takes a pledge back, as far as the store lets it.
pub(super) fn forget(store: &dyn Store, order: Order) {
    let _ = store.remove(&name::pledge(order.version, order.attempt));
}
