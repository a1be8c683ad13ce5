//! The pledge: one node's part of a checkpoint, durable and not yet committed.
//!
//! Data: segments of this node's ranks, and each rank's image description -> a record that holds
//! both -> told to the ranks, which commit with the other nodes. Where they cannot any more, the
//! next opening of the job does it from the pledges.
//!
//! Invariant: a pledge is written after everything it names is durable.

use std::collections::BTreeMap;

use standfast_checkpoint::{Order, Part, Publisher, StreamPlace};
use standfast_format::{Pledge, PledgedPart, PledgedStream, SegmentId, Stats, Writes};

use crate::message::{Figures, Pledged};

/// What is stored. `ranks`: of the job, on all nodes.
pub(super) fn record(
    publisher: &Publisher,
    order: Order,
    ranks: u32,
    part: &Part,
    parts: Vec<PledgedPart>,
) -> Pledge {
    let at: BTreeMap<SegmentId, u32> = part.ids().zip(0..).collect();
    let stream = |place: &StreamPlace| PledgedStream {
        stream: place.stream,
        segment: at[&place.segment],
        first_slot: place.first_slot,
    };
    Pledge {
        job: publisher.job,
        version: order.version,
        attempt: order.attempt,
        sequence: order.sequence,
        taken_ns: order.taken_ns,
        ranks,
        node: publisher.node.clone(),
        segments: part.segments.clone(),
        streams: part.places.iter().map(stream).collect(),
        parts,
        abandons: order.abandons,
    }
}

/// What the ranks are told of it.
pub(super) fn told(pledge: Pledge) -> Pledged {
    let figures = |part: PledgedPart| {
        let Stats { compressed_bytes, segment_bytes, .. } = part.stats;
        let Writes { pieces, writes, .. } = part.writes;
        Figures { rank: part.rank.0, compressed_bytes, segment_bytes, pieces, writes }
    };
    Pledged { segments: pledge.segments, figures: pledge.parts.into_iter().map(figures).collect() }
}
