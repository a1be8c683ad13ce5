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

use super::assignment::{Assignment, Pairs, Place, Places};
use super::wire::{Reader, count, put, put_ids};

/// Pages that a rank has stored in a checkpoint that is not committed yet.
#[derive(Clone, Debug)]
pub(super) struct NewPages {
    pub(super) ids: Vec<SegmentId>,
    pub(super) hashes: Vec<u8>,
    /// Of each hash; segments are numbers into `ids`.
    pub(super) places: Vec<Place>,
}

/// Pages whose home this rank is, by the rank that stores them: their hashes, end to end.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) hashes: &'a [Vec<u8>],
    pub(super) hash_bytes: usize,
}

/// Exchanges places with all ranks: where the candidates are that others store, and what is new
/// for the index of this home. Collective.
pub(super) fn exchange(
    comm: &dyn Comm,
    assignment: &Assignment,
    segments: &[SegmentId],
    place: &dyn Fn(u32) -> Place,
    stored: Stored<'_>,
) -> Result<(Places, Vec<NewPages>)> {
    let mut places = Places::new(assignment.len());
    let Some(pairs) = &assignment.pairs else { return Ok((places, Vec::new())) };
    let messages = comm.all_to_all(write(pairs, segments, place))?;
    let new = read(comm.rank(), &messages, pairs, stored, &mut places)?;
    Ok((places, new))
}

/// Writes the messages to all ranks.
fn write(pairs: &Pairs, segments: &[SegmentId], place: &dyn Fn(u32) -> Place) -> Vec<Vec<u8>> {
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
    stored: Stored<'_>,
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
            let Place { segment, slot } = read_place(&mut reader, &ids)?;
            places.set(*candidate, Place { segment: first + segment, slot });
        }
        let pages = hashes.len() / stored.hash_bytes;
        let told = (0..pages).map(|_| read_place(&mut reader, &ids));
        let told = told.collect::<Result<Vec<Place>>>()?;
        reader.finish()?;
        if pages > 0 {
            new.push(NewPages { ids, hashes: hashes.to_vec(), places: told });
        }
    }
    Ok(new)
}

fn read_place(reader: &mut Reader<'_>, ids: &[SegmentId]) -> Result<Place> {
    let segment = reader.below(ids.len(), "it names a segment without an id")?;
    Ok(Place { segment, slot: reader.number()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Stored<'_> = Stored { hashes: &[], hash_bytes: 16 };

    /// What a rank makes of a message about its candidates 3 and 1, out of 5.
    fn read_one(segments: u32, numbers: &[u32]) -> Result<Places> {
        let mut message = Vec::new();
        put_ids(&mut message, &vec![SegmentId([9; 16]); segments as usize]);
        numbers.iter().for_each(|number| put(&mut message, *number));
        let pairs = Pairs { expected: vec![vec![3, 1]], ..Pairs::new(1) };
        let mut places = Places::new(5);
        read(0, &[message], &pairs, NOTHING, &mut places)?;
        Ok(places)
    }

    #[test]
    fn places_come_in_the_order_that_both_know() {
        let places = read_one(2, &[2, 1, 40, 0, 50]).unwrap();
        assert_eq!(places.get(3), Some(Place { segment: 1, slot: 40 }));
        assert_eq!(places.page(1), Some((SegmentId([9; 16]), 50)));
        assert_eq!(places.get(0), None);
    }

    #[test]
    fn messages_about_other_pages_are_refused() {
        assert!(read_one(2, &[1, 1, 40]).is_err(), "one page too few");
        assert!(read_one(2, &[3, 1, 40, 0, 50, 0, 60]).is_err(), "one too many");
        assert!(read_one(2, &[2, 2, 40, 0, 50]).is_err(), "a segment without an id");
        assert!(read_one(2, &[2, 1, 40, 0]).is_err(), "cut off");
        assert!(read_one(2, &[2, 1, 40, 0, 50, 0, 60]).is_err(), "an index that this rank lacks");
        let pairs = Pairs { expected: vec![vec![3]], ..Pairs::new(1) };
        assert!(read(0, &[Vec::new()], &pairs, NOTHING, &mut Places::new(5)).is_err(), "nothing");
    }
}
