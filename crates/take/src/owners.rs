//! Whose pages a rank refers to: what top-K writes into images as (hash, owner).
//!
//! Data: segments that ranks begin, assignments, images that a restart has read -> [`Owners`]: the
//! rank that stored a page. PageTable of a checkpoint's pages -> those of other ranks -> the image's
//! references.
//!
//! A segment belongs to the rank that wrote it. Where the node's agent writes, several ranks' pages lie
//! in a segment that is named after one of them; a page is that of the rank whose *stream* it was in,
//! and ranks name pages by stream. A restart knows segments only: then the image it read tells.
//!
//! Limit: a page that no image this rank has read tells of, found in the index of a segment that an
//! agent wrote for an earlier run, counts as that of the rank which the segment is named after, and
//! which reads it for all others.

use std::collections::BTreeMap;
use std::ops::Range;

use standfast_format::{Image, Rank, Reference, Referred, Run, SegmentId};
use standfast_reduce::PageTable;
use standfast_share::{Assignment, Fate, Places};

use crate::ledger::Ledger;
use crate::remembered::Env;

/// Beyond so many bytes of hashes an image goes without: readers take images of 1 GiB.
const LIST_BYTES_MAX: usize = 1 << 29;

/// Who stores which pages.
#[derive(Default)]
pub(crate) struct Owners {
    /// Of segments, and of streams that the agent puts into segments, of this run.
    writers: BTreeMap<SegmentId, Rank>,
    /// Of segments that a restart has read: slots of ranks that these are not named after.
    guests: BTreeMap<SegmentId, Vec<(Rank, Range<u32>)>>,
}

/// Whose the pages of one segment are.
#[derive(Clone, Copy)]
struct Shares<'a> {
    writer: Rank,
    guests: &'a [(Rank, Range<u32>)],
}

impl Shares<'_> {
    fn owner(&self, slot: u32) -> Rank {
        let guest = self.guests.iter().find(|(_, slots)| slots.contains(&slot));
        guest.map_or(self.writer, |(rank, _)| *rank)
    }
}

impl Owners {
    /// A rank has begun these segments.
    fn began(&mut self, segments: &[SegmentId], rank: Rank) {
        self.writers.extend(segments.iter().map(|id| (*id, rank)));
    }

    /// Takes in who stores what others store for this rank, and in which segments.
    pub(crate) fn agreed(&mut self, assignment: &Assignment, located: &Places) {
        let mut last = None;
        for candidate in 0..assignment.len() as u32 {
            let Fate::Theirs { owner } = assignment.fate(candidate) else { continue };
            let segment = located.page(candidate).map(|(segment, _)| segment);
            if let Some(id) = segment
                && segment != last
            {
                self.writers.insert(id, Rank(owner));
                last = segment;
            }
        }
    }

    /// Takes in what a restart has read. Slots of one rank follow each other in a segment, so the
    /// first and the last that an image has of them tell of those between.
    pub(crate) fn learn(&mut self, image: &Image) {
        if image.references.is_none() {
            return;
        }
        let mut theirs = image.referred().peekable();
        for (at, region) in image.regions.iter().enumerate() {
            let mut first = 0;
            for run in &region.runs {
                let end = first + u64::from(run.pages());
                let mut next = first;
                let own = |owners: &mut Self, from: u64, to: u64| {
                    let part = run.part((from - first) as u32, (to - from) as u32);
                    owners.note(image, part, image.rank);
                };
                let here = |piece: &Referred<'_>| {
                    piece.reference.region as usize == at && piece.page < end
                };
                while let Some(piece) = theirs.next_if(here) {
                    own(self, next, piece.page);
                    self.note(image, piece.run, piece.reference.owner);
                    next = piece.page + u64::from(piece.run.pages());
                }
                own(self, next, end);
                first = end;
            }
        }
    }

    fn note(&mut self, image: &Image, run: Run, owner: Rank) {
        let Run::Stored { pages, segment, slot } = run else { return };
        let segment = &image.segments[segment as usize];
        if pages == 0 || segment.rank == owner {
            return;
        }
        let guests = self.guests.entry(segment.id).or_default();
        let end = slot + pages;
        match guests.iter_mut().find(|(rank, _)| *rank == owner) {
            Some((_, slots)) => *slots = slots.start.min(slot)..slots.end.max(end),
            None => guests.push((owner, slot..end)),
        }
    }

    pub(crate) fn forget(&mut self, segments: &[SegmentId]) {
        for id in segments {
            self.writers.remove(id);
            self.guests.remove(id);
        }
    }

    /// The pages of a checkpoint that other ranks store; `began`: the segments of this rank's own
    /// pages.
    pub(crate) fn refer_by_hash(
        &mut self,
        env: &Env,
        ledger: &Ledger,
        positions: &[PageTable],
        began: &[SegmentId],
    ) -> Option<Vec<Reference>> {
        self.began(began, env.rank);
        let shares = |number: u32| {
            let (id, reference) = ledger.table_entry(number);
            let named = || reference.map_or(env.rank, |segment| segment.rank);
            Shares {
                writer: self.writers.get(&id).copied().unwrap_or_else(named),
                guests: self.guests.get(&id).map_or(&[], Vec::as_slice),
            }
        };
        list(positions, env.rank, env.scanner.hash_bytes(), shares)
    }
}

/// The pages of other ranks, with their hashes; nothing if these are too many for an image.
fn list<'a>(
    positions: &[PageTable],
    rank: Rank,
    hash_bytes: usize,
    shares: impl Fn(u32) -> Shares<'a>,
) -> Option<Vec<Reference>> {
    let mut list: Vec<Reference> = Vec::new();
    let (mut last, mut bytes_left) = (None, LIST_BYTES_MAX);
    for (region, positions) in (0..).zip(positions) {
        let hashes = positions.hashes().chunks_exact(hash_bytes);
        for ((page, place), hash) in (0..).zip(positions.refs()).zip(hashes) {
            let Some((number, slot)) = place.stored() else { continue };
            // Pages of one segment follow each other, as a rule.
            let of_segment = match last {
                Some((known, of_segment)) if known == number => of_segment,
                _ => shares(number),
            };
            last = Some((number, of_segment));
            let owner = of_segment.owner(slot);
            if owner == rank {
                continue;
            }
            bytes_left = bytes_left.checked_sub(hash_bytes)?;
            match list.last_mut() {
                Some(last) if follows(last, region, page, hash_bytes) && last.owner == owner => {
                    last.hashes.extend_from_slice(hash);
                }
                _ => list.push(Reference { region, page, owner, hashes: hash.to_vec() }),
            }
        }
    }
    Some(list)
}

fn follows(last: &Reference, region: u32, page: u64, hash_bytes: usize) -> bool {
    last.region == region && last.page + (last.hashes.len() / hash_bytes) as u64 == page
}
