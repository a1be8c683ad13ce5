//! Relocating: pages named by the stream of the rank that stored them become places in the segment
//! that several streams share.
//!
//! Data: an image whose segment table names streams, and where each stream lies -> the same image
//! over segments. Both the rank (streams of earlier checkpoints) and the agent (those of this one)
//! do it. What an image refers to by hash and owner stays as it is: a page that lies in a segment of many
//! ranks is still the page of the rank that stored it.

use std::collections::BTreeMap;

use standfast_format::{RegionImage, Run, SegmentId, SegmentRef};

use crate::error::{Error, Result};

/// Where a stream lies: the segment that holds it and the slot of its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The segment.
    pub segment: SegmentRef,
    /// Slot of the stream's first page.
    pub first_slot: u32,
}

/// Replaces the streams in an image's segment table; entries that are no streams stay.
pub fn relocate(
    table: &mut Vec<SegmentRef>,
    regions: &mut [RegionImage],
    moved: &BTreeMap<SegmentId, Moved>,
) -> Result<()> {
    if !table.iter().any(|segment| moved.contains_key(&segment.id)) {
        return Ok(());
    }
    let mut segments: Vec<SegmentRef> = Vec::new();
    let mut places: BTreeMap<SegmentId, u32> = BTreeMap::new();
    // By place in the old table: place in the new one, and what to add to slots.
    let mut moves: Vec<(u32, u32)> = Vec::with_capacity(table.len());
    for segment in &*table {
        let (target, first_slot) = match moved.get(&segment.id) {
            Some(moved) => (moved.segment, moved.first_slot),
            None => (*segment, 0),
        };
        let place = *places.entry(target.id).or_insert_with(|| {
            segments.push(target);
            segments.len() as u32 - 1
        });
        moves.push((place, first_slot));
    }
    for run in regions.iter_mut().flat_map(|region| &mut region.runs) {
        let Run::Stored { pages, segment, slot } = run else { continue };
        let (place, first_slot) = moves[*segment as usize];
        let target = &segments[place as usize];
        let start = slot.checked_add(first_slot);
        let end = start.and_then(|start| start.checked_add(*pages));
        if end.is_none_or(|end| end > target.slots) {
            return Err(Error::Beyond { segment: target.id });
        }
        (*segment, *slot) = (place, start.expect("checked with its end"));
    }
    *table = segments;
    Ok(())
}

#[cfg(test)]
mod tests;
