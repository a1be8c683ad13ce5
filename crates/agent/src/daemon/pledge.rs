//! Making one node's part of a checkpoint durable: segments, then the pledge.
//!
//! Data: blocks of this node's ranks in shared segments, and each rank's image description -> a
//! pledge that holds both -> told to the ranks, which commit with the other nodes. Where they cannot
//! any more, the next opening of the job does it from the pledges.
//!
//! Invariant: a pledge is written after everything it names is durable.

use std::collections::BTreeMap;
use std::time::Instant;

use standfast_checkpoint::{Error as CommitError, Order, Publisher};
use standfast_format::{Pledge, PledgedPart, PledgedStream, Rank, SegmentRef, Stats, Writes, name};
use standfast_write::SharedSegment;

use super::commit::{Failed, Ready, check_image, places, settled, stats, tallies};
use crate::message::{Failure, Figures, HandOver, Pledged, Settled};

/// Pledges; tells what became of it. `ranks`: of the job, on all nodes.
pub(super) fn pledge(publisher: &Publisher, order: Order, ranks: u32, ready: Ready) -> Settled {
    let _busy = standfast_checkpoint::busy::hold(&*publisher.store);
    let sealed = match ready.batch.seal() {
        Ok(sealed) => sealed,
        Err(error) => {
            return settled(order.attempt, Err(Failure::new(error.kind(), &error)), None);
        }
    };
    match write(publisher, order, ranks, &sealed, ready.parts) {
        Ok(pledged) => {
            let pledged = Some(pledged);
            Settled { places: places(&sealed), pledged, ..settled(order.attempt, Ok(()), None) }
        }
        Err(Failed { failure, .. }) => {
            // The pledge first: it must not name what is gone.
            let _ = publisher.store.remove(&name::pledge(order.version, order.attempt));
            for shared in &sealed {
                let _ = publisher.store.remove(&name::segment(shared.sealed.reference.id));
            }
            settled(order.attempt, Err(failure), None)
        }
    }
}

fn write(
    publisher: &Publisher,
    order: Order,
    ranks: u32,
    sealed: &[SharedSegment],
    parts: BTreeMap<u32, (HandOver, Instant)>,
) -> Result<Pledged, Failed> {
    let parts = parts.into_iter().map(|(rank, (part, _))| {
        check_image(publisher, order, rank, &part)?;
        let (pieces, writes) = tallies(rank, sealed);
        let writes = Writes { rank: Rank(rank), pieces, writes };
        let stats = stats(rank, &part, sealed);
        let HandOver { image, streams, .. } = part;
        Ok(PledgedPart { rank: Rank(rank), image, streams, stats, writes })
    });
    let pledge = Pledge {
        job: publisher.job,
        version: order.version,
        attempt: order.attempt,
        sequence: order.sequence,
        taken_ns: order.taken_ns,
        ranks,
        node: publisher.node.clone(),
        segments: sealed.iter().map(|shared| shared.sealed.reference).collect(),
        streams: streams(sealed),
        parts: parts.collect::<Result<Vec<PledgedPart>, Failed>>()?,
    };
    let object = name::pledge(order.version, order.attempt);
    publisher.store.put(&object, &pledge.encode()).map_err(CommitError::from)?;
    Ok(told(pledge.segments, &pledge.parts))
}

fn streams(sealed: &[SharedSegment]) -> Vec<PledgedStream> {
    let of_segment = |(at, shared): (usize, &SharedSegment)| {
        let stream = move |placed: &standfast_write::Placed| PledgedStream {
            stream: placed.stream,
            segment: at as u32,
            first_slot: placed.first_slot,
        };
        shared.streams.iter().map(stream).collect::<Vec<PledgedStream>>()
    };
    sealed.iter().enumerate().flat_map(of_segment).collect()
}

fn told(segments: Vec<SegmentRef>, parts: &[PledgedPart]) -> Pledged {
    let figures = |part: &PledgedPart| {
        let Stats { compressed_bytes, segment_bytes, .. } = part.stats;
        let Writes { pieces, writes, .. } = part.writes.clone();
        Figures { rank: part.rank.0, compressed_bytes, segment_bytes, pieces, writes }
    };
    Pledged { segments, figures: parts.iter().map(figures).collect() }
}
