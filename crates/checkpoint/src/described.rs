//! One rank's part of a checkpoint before it is written, and where its new pages lie.
//!
//! A rank numbers its new pages in *streams*. A segment that it writes by itself is one stream of
//! the same id, from slot 0 on; an agent's segment holds streams of many ranks. Where each lies is
//! known once the segments are durable.
//!
//! Data: [`Described`] of a rank, [`Part`]s of all -> [`Described::place`] -> the image to be written.

use std::collections::BTreeMap;

use standfast_format::{Digest, Image, Rank, SegmentId, SegmentRef, Stats, Writes};
use standfast_sys::Stopwatch;

use crate::error::{Error, Result};
use crate::inventory::Inventory;
use crate::relocate::{Moved, relocate};

/// A stream's place in a segment of the same checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StreamPlace {
    /// The stream.
    pub stream: SegmentId,
    /// The segment that holds it.
    pub segment: SegmentId,
    /// The slot of its first page.
    pub first_slot: u32,
}

/// What a rank, a node or a job has made durable for a checkpoint.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Part {
    /// Its segments.
    pub segments: Vec<SegmentRef>,
    /// Where streams lie in them; a segment that is a stream need not be listed.
    pub places: Vec<StreamPlace>,
}

impl Part {
    /// The parts of several.
    pub fn join(parts: impl IntoIterator<Item = Part>) -> Self {
        let (segments, places): (Vec<_>, Vec<_>) =
            parts.into_iter().map(|part| (part.segments, part.places)).unzip();
        Self { segments: segments.concat(), places: places.concat() }
    }

    /// The ids of its segments.
    pub fn ids(&self) -> impl Iterator<Item = SegmentId> {
        self.segments.iter().map(|segment| segment.id)
    }

    /// Where streams lie.
    pub fn moved(&self) -> BTreeMap<SegmentId, Moved> {
        let whole = self
            .segments
            .iter()
            .map(|segment| (segment.id, Moved { segment: *segment, first_slot: 0 }));
        let whole: BTreeMap<SegmentId, Moved> = whole.collect();
        let placed = self.places.iter().filter_map(|place| {
            let segment = whole.get(&place.segment)?.segment;
            Some((place.stream, Moved { segment, first_slot: place.first_slot }))
        });
        let placed: Vec<_> = placed.collect();
        whole.into_iter().chain(placed).collect()
    }
}

/// One rank's part of a checkpoint before it is written.
#[derive(Debug)]
pub struct Described {
    /// Its image; streams of this checkpoint stand in the segment table by id ([`unplaced`]).
    pub image: Image,
    /// Those streams, of any rank.
    pub streams: Vec<SegmentId>,
    /// Its figures so far.
    pub stats: Stats,
    /// How its segments were written.
    pub writes: Writes,
    /// When it was begun.
    pub started: Stopwatch,
}

impl Described {
    /// Puts streams where they are. `is_there`: whether a segment of an earlier checkpoint exists.
    /// Who has described the image itself knows that; from others it comes unchecked.
    pub fn place(
        &mut self,
        moved: &BTreeMap<SegmentId, Moved>,
        is_there: impl Fn(&SegmentRef) -> bool,
    ) -> Result<()> {
        let is_lost = |segment: &&SegmentRef| match self.streams.contains(&segment.id) {
            true => !moved.contains_key(&segment.id),
            false => !is_there(segment),
        };
        if let Some(segment) = self.image.segments.iter().find(is_lost) {
            return Err(Error::Unsealed { segment: segment.id });
        }
        relocate(&mut self.image.segments, &mut self.image.regions, moved)
    }
}

/// A stream in a segment table: where it ends up is not known yet, or not here.
pub fn unplaced(id: SegmentId) -> SegmentRef {
    let index = Digest([0; 32]);
    SegmentRef { id, rank: Rank(0), slots: u32::MAX, file_bytes: 0, index }
}

/// The segments that the checkpoints of a store need.
pub fn known_segments(inventory: &Inventory) -> BTreeMap<SegmentId, SegmentRef> {
    let segments = inventory.checkpoints.iter().flat_map(|manifest| &manifest.segments);
    segments.map(|segment| (segment.id, *segment)).collect()
}

#[cfg(test)]
mod tests;
