//! Places: an owner tells, without being asked, where the pages lie that others refer to.
//!
//! ```text
//! ids of the sender's segments
//! count, (segment, slot)*     pages that the receiver refers to, in the order both know
//! (segment, slot)*            pages that the sender has stored, to their home: for its index
//! ```
//! One message from each rank to each; an empty one says that there is nothing between them.

use standfast_comm::{Comm, Result};
use standfast_format::SegmentId;

use super::assignment::{Assignment, Location, Pairs, Places};
use super::wire::{Reader, count, put, put_ids};

/// Pages that a rank has stored in a checkpoint that is not committed yet.
#[derive(Clone, Debug)]
pub(super) struct NewPages {
    pub(super) ids: Vec<SegmentId>,
    pub(super) hashes: Vec<u8>,
    /// Of each hash; segments are numbers into `ids`.
    pub(super) places: Vec<Location>,
}

/// Pages whose home this rank is, by the rank that stores them: their hashes, end to end.
#[derive(Clone, Copy)]
pub(super) struct StoredHashes<'a> {
    pub(super) hashes: &'a [Vec<u8>],
    pub(super) hash_bytes: usize,
}

/// Exchanges places with all ranks: where the candidates are that others store, and what is new
/// for the index of this home. Collective.
pub(super) fn exchange(
    comm: &dyn Comm,
    assignment: &Assignment,
    segments: &[SegmentId],
    place: &dyn Fn(u32) -> Location,
    stored: StoredHashes<'_>,
) -> Result<(Places, Vec<NewPages>)> {
    let mut places = Places::new(assignment.len());
    let Some(pairs) = &assignment.pairs else { return Ok((places, Vec::new())) };
    let messages = comm.all_to_all(write(pairs, segments, place))?;
    let new = read(comm.rank(), &messages, pairs, stored, &mut places)?;
    Ok((places, new))
}

/// Writes the messages to all ranks.
fn write(pairs: &Pairs, segments: &[SegmentId], place: &dyn Fn(u32) -> Location) -> Vec<Vec<u8>> {
    let nothing = Vec::new();
    let ranks = pairs.wanted.len();
    let messages = (0..ranks).map(|to| {
        let reported = pairs.reported.get(to).unwrap_or(&nothing);
        let wanted = &pairs.wanted[to];
        if wanted.is_empty() && reported.is_empty() {
            return Vec::new();
        }
        let pages = wanted.len() + reported.len();
        let mut bytes = Vec::with_capacity(8 + 16 * segments.len() + 8 * pages);
        put_ids(&mut bytes, segments);
        put(&mut bytes, count(wanted.len()));
        for candidate in wanted.iter().chain(reported) {
            let place = place(*candidate);
            assert!((place.segment as usize) < segments.len(), "a page lies in a listed segment");
            put(&mut bytes, place.segment);
            put(&mut bytes, place.slot);
        }
        bytes
    });
    messages.collect()
}

/// Reads the messages of all ranks.
fn read(
    rank: usize,
    messages: &[Vec<u8>],
    pairs: &Pairs,
    stored: StoredHashes<'_>,
    places: &mut Places,
) -> Result<Vec<NewPages>> {
    let mut new = Vec::new();
    for (from, message) in messages.iter().enumerate() {
        let mut reader = Reader::new(message, rank, from);
        let hashes = stored.hashes.get(from).map_or(&[][..], |hashes| hashes);
        let expected = &pairs.expected[from];
        if expected.is_empty() && hashes.is_empty() && reader.is_empty() {
            continue;
        }
        let ids = reader.ids()?;
        if reader.number()? as usize != expected.len() {
            return Err(reader.refuse("it tells the places of other pages"));
        }
        let first = places.add_segments(&ids);
        for candidate in expected {
            let Location { segment, slot } = read_place(&mut reader, &ids)?;
            places.set(*candidate, Location { segment: first + segment, slot });
        }
        let pages = hashes.len() / stored.hash_bytes;
        let told = (0..pages).map(|_| read_place(&mut reader, &ids));
        let told = told.collect::<Result<Vec<Location>>>()?;
        reader.finish()?;
        if pages > 0 {
            new.push(NewPages { ids, hashes: hashes.to_vec(), places: told });
        }
    }
    Ok(new)
}

fn read_place(reader: &mut Reader<'_>, ids: &[SegmentId]) -> Result<Location> {
    let segment = reader.below(ids.len(), "it names a segment without an id")?;
    Ok(Location { segment, slot: reader.number()? })
}

#[cfg(test)]
mod tests;
