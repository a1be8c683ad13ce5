//! Making a checkpoint of all ranks durable, in the documented order: segments, images, manifest.
//!
//! Data: blocks of all ranks in shared segments, and each rank's image description -> the same
//! files that ranks write by themselves. Images come from other processes: what they refer to is
//! checked before anything names it.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use standfast_checkpoint::{Draft, Error as CommitError, Moved, Order, Part, Publisher, relocate};
use standfast_format::{
    AttemptId, Image, Kind, Manifest, Rank, SegmentId, SegmentRef, Stats, Tally, name,
};
use standfast_restart::Inventory;
use standfast_write::{Segments, SharedSegment};

use crate::message::{Failure, HandOver, Place, Settled};

/// An attempt that every rank has handed over, with the time of each.
pub(super) struct Ready {
    pub(super) batch: Segments,
    pub(super) parts: BTreeMap<u32, (HandOver, Instant)>,
}

/// Why it failed, and whether its files must stay.
pub(super) struct Failed {
    pub(super) failure: Failure,
    files_stay: bool,
}

impl From<CommitError> for Failed {
    fn from(error: CommitError) -> Self {
        Self { failure: Failure::new(error.kind(), &error), files_stay: false }
    }
}

/// Commits; tells what became of it.
pub(super) fn commit(
    publisher: &Publisher,
    order: Order,
    ranks: u32,
    ready: Ready,
    inventory: &mut Inventory,
) -> Settled {
    let _busy = standfast_checkpoint::busy::hold(&*publisher.store);
    standfast_checkpoint::failpoint::pass("commit.before_segments");
    let sealed = match ready.batch.seal() {
        Ok(sealed) => sealed,
        Err(error) => {
            let failure = Failure::new(error.kind(), &error);
            return settled(order.attempt, Err(failure), Some(inventory));
        }
    };
    let segments: Vec<SegmentId> =
        sealed.iter().map(|segment| segment.sealed.reference.id).collect();
    match publish(publisher, order, ranks, &sealed, ready.parts, inventory) {
        Ok((removed, notes)) => {
            let places = places(&sealed);
            let settled = settled(order.attempt, Ok(()), Some(inventory));
            Settled { places, removed, notes, ..settled }
        }
        Err(Failed { failure, files_stay }) => {
            if !files_stay {
                for rank in 0..ranks {
                    let own = if rank == 0 { segments.as_slice() } else { &[] };
                    publisher.discard(order.version, order.attempt, Rank(rank), own);
                }
            }
            settled(order.attempt, Err(failure), Some(inventory))
        }
    }
}

/// The news of an attempt.
pub(super) fn settled(
    attempt: AttemptId,
    outcome: Result<(), Failure>,
    inventory: Option<&Inventory>,
) -> Settled {
    let checkpoints = inventory.map(|inventory| inventory.checkpoints.as_slice());
    let damaged = inventory.map(|inventory| inventory.damaged.as_slice());
    Settled {
        attempt,
        outcome,
        places: Vec::new(),
        pledged: None,
        removed: Vec::new(),
        notes: Vec::new(),
        manifests: checkpoints.unwrap_or_default().iter().map(Manifest::encode).collect(),
        damaged: damaged
            .unwrap_or_default()
            .iter()
            .map(|damaged| (damaged.object.clone(), damaged.error.to_string()))
            .collect(),
    }
}

pub(super) fn places(sealed: &[SharedSegment]) -> Vec<Place> {
    let of_segment = |shared: &SharedSegment| {
        let segment = shared.sealed.reference.id;
        let place = move |placed: &standfast_write::Placed| Place {
            stream: placed.stream,
            segment,
            first_slot: placed.first_slot,
        };
        shared.streams.iter().map(place).collect::<Vec<Place>>()
    };
    sealed.iter().flat_map(of_segment).collect()
}

fn publish(
    publisher: &Publisher,
    order: Order,
    ranks: u32,
    sealed: &[SharedSegment],
    parts: BTreeMap<u32, (HandOver, Instant)>,
    inventory: &mut Inventory,
) -> Result<(Vec<SegmentId>, Vec<String>), Failed> {
    standfast_checkpoint::failpoint::pass("commit.before_image");
    let moved = moved(sealed);
    let known = known(inventory);
    let written = parts.into_iter().map(|(rank, (part, received))| {
        let image = check_image(publisher, order, rank, &part)?;
        let image = resolve(publisher, image, &part.streams, &moved, &known)?;
        let figures = (stats(rank, &part, sealed), tallies(rank, sealed));
        write_image(publisher, order, image, figures, part.elapsed_ns, received)
    });
    let parts = written.collect::<Result<Vec<Part>, Failed>>()?;
    // What the agent committed for ranks that died the job may not know of.
    let newest = inventory.checkpoints.first().map_or(0, |newest| newest.sequence);
    let sequence = order.sequence.max(newest.saturating_add(1));
    let published = publisher.publish(order, (sequence, ranks), parts, inventory);
    match published {
        Ok(published) => Ok((published.removed, published.notes)),
        Err(unpublished) => {
            Err(Failed { files_stay: unpublished.files_stay, ..Failed::from(unpublished.error) })
        }
    }
}

fn moved(sealed: &[SharedSegment]) -> HashMap<SegmentId, Moved> {
    let of_segment = |shared: &SharedSegment| {
        let segment = shared.sealed.reference;
        let moved = move |placed: &standfast_write::Placed| {
            (placed.stream, Moved { segment, first_slot: placed.first_slot })
        };
        shared.streams.iter().map(moved).collect::<Vec<_>>()
    };
    sealed.iter().flat_map(of_segment).collect()
}

fn known(inventory: &Inventory) -> HashMap<SegmentId, SegmentRef> {
    let segments = inventory.checkpoints.iter().flat_map(|manifest| &manifest.segments);
    segments.map(|segment| (segment.id, *segment)).collect()
}

/// The image that a rank describes, if it is one of this checkpoint.
pub(super) fn check_image(
    publisher: &Publisher,
    order: Order,
    rank: u32,
    part: &HandOver,
) -> Result<Image, Failed> {
    let wrong = |why: String| Failed {
        failure: Failure::new(Kind::Invalid, format!("the image of rank {rank}: {why}")),
        files_stay: false,
    };
    let (image, _) = Image::decode(&part.image).map_err(|error| wrong(error.to_string()))?;
    let expected = (publisher.job, order.version, Rank(rank), publisher.page_bytes, publisher.hash);
    let found = (image.job, image.version, image.rank, image.page_bytes, image.hash);
    match expected == found {
        true => Ok(image),
        false => Err(wrong("it belongs to another checkpoint".into())),
    }
}

/// Puts this checkpoint's streams where they are, and makes sure that all other segments exist.
fn resolve(
    publisher: &Publisher,
    mut image: Image,
    streams: &[SegmentId],
    moved: &HashMap<SegmentId, Moved>,
    known: &HashMap<SegmentId, SegmentRef>,
) -> Result<Image, Failed> {
    for segment in &image.segments {
        let there = match streams.contains(&segment.id) {
            true => moved.contains_key(&segment.id),
            false => known.get(&segment.id) == Some(segment) || is_stored(publisher, segment),
        };
        if !there {
            return Err(CommitError::Unsealed { segment: segment.id }.into());
        }
    }
    relocate(&mut image.segments, &mut image.regions, moved)?;
    Ok(image)
}

/// Whether a segment that no manifest names is there all the same: after a prune that failed half
/// way, ranks may know more than the inventory.
fn is_stored(publisher: &Publisher, segment: &SegmentRef) -> bool {
    let object = publisher.store.open(&name::segment(segment.id));
    object.is_ok_and(|object| object.bytes() == segment.file_bytes)
}

/// A rank's figures, with what its blocks took. What a shared file takes beyond its blocks counts
/// for the rank that the segment is named after.
pub(super) fn stats(rank: u32, part: &HandOver, sealed: &[SharedSegment]) -> Stats {
    let mut stats = part.stats;
    (stats.compressed_bytes, stats.segment_bytes) = (0, 0);
    for shared in sealed {
        let own = shared.streams.iter().filter(|placed| placed.rank.0 == rank);
        let own: u64 = own.map(|placed| placed.compressed_bytes).sum();
        stats.compressed_bytes += own;
        stats.segment_bytes += own;
        if shared.sealed.reference.rank.0 == rank {
            stats.segment_bytes +=
                shared.sealed.reference.file_bytes - shared.sealed.compressed_bytes;
        }
    }
    stats
}

/// What shared files were made of and how they were written counts for the rank that they are
/// named after: nobody can tell whose part of a write was whose.
pub(super) fn tallies(rank: u32, sealed: &[SharedSegment]) -> (Tally, Tally) {
    let (mut pieces, mut writes) = (Tally::default(), Tally::default());
    for shared in sealed.iter().filter(|shared| shared.sealed.reference.rank.0 == rank) {
        pieces.join(&shared.sealed.pieces);
        writes.join(&shared.sealed.writes);
    }
    (pieces, writes)
}

fn write_image(
    publisher: &Publisher,
    order: Order,
    image: Image,
    (stats, (pieces, writes)): (Stats, (Tally, Tally)),
    elapsed_ns: u64,
    received: Instant,
) -> Result<Part, Failed> {
    let Image { rank, segments, regions, references, .. } = image;
    let table = segments.into_iter().map(|segment| (segment.id, Some(segment))).collect();
    // The rank's clock, carried on by ours.
    let started = received.checked_sub(Duration::from_nanos(elapsed_ns)).unwrap_or(received);
    let draft = Draft { rank, regions, table, references, stats, started, pieces, writes };
    Ok(publisher.write_image(order, draft, &[])?)
}
