//! Pages that lie in other ranks' segments: which are wanted, what they hash to, where they go.
//!
//! Wanted slots are sorted by segment and slot, each once, however many pages of the image they
//! make. A wanted page is known by its number in that order.

use std::collections::BTreeMap;
use std::ops::Range;

use standfast_format::{Image, Run, SegmentId};

/// Consecutive slots of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slots {
    /// Place in the image's segment table.
    pub segment: u32,
    /// The first one.
    pub slot: u32,
    /// How many.
    pub pages: u32,
}

/// Pages of a region that a stretch of slots goes to.
#[derive(Clone, Copy)]
struct Use {
    slots: Slots,
    region: u32,
    page: u32,
}

/// What an image wants of other ranks.
#[derive(Default)]
pub(crate) struct Remote {
    wanted: Vec<Slots>,
    /// Number of the first page of each stretch, and of all pages at the end.
    firsts: Vec<usize>,
    hash_bytes: usize,
    hashes: Vec<u8>,
    /// For each wanted page, where its destinations begin.
    starts: Vec<u32>,
    destinations: Vec<(u32, u32)>,
}

/// The uses of an image's pages in segments that are remote.
pub(crate) struct Wanted(Vec<Use>);

/// What an image wants of remote segments.
pub(crate) fn wanted_of(image: &Image, is_remote: impl Fn(u32) -> bool) -> Wanted {
    let mut uses = Vec::new();
    for (region, image) in image.regions.iter().enumerate() {
        let mut page = 0;
        for run in &image.runs {
            if let Run::Stored { pages, segment, slot } = *run
                && is_remote(segment)
            {
                let slots = Slots { segment, slot, pages };
                uses.push(Use { slots, region: region as u32, page });
            }
            page += run.pages();
        }
    }
    uses.sort_unstable_by_key(|one| one.slots);
    Wanted(uses)
}

/// How many pages of each segment an image needs, each counted once.
pub fn wanted_pages(image: &Image) -> BTreeMap<SegmentId, u64> {
    let mut pages = BTreeMap::new();
    for slots in join(&wanted_of(image, |_| true).0) {
        let segment = image.segments[slots.segment as usize].id;
        *pages.entry(segment).or_default() += u64::from(slots.pages);
    }
    pages
}

impl Remote {
    pub(crate) fn new(wanted: Wanted, hash_bytes: usize) -> Self {
        let uses = wanted.0;
        let mut remote = Self { wanted: join(&uses), hash_bytes, ..Self::default() };
        let mut first = 0;
        for slots in &remote.wanted {
            remote.firsts.push(first);
            first += slots.pages as usize;
        }
        remote.firsts.push(first);
        remote.index(&uses, first);
        remote
    }

    /// Lists the destinations of each wanted page.
    fn index(&mut self, uses: &[Use], pages: usize) {
        let spots = |one: &Use| -> Range<usize> {
            let first = self.find(one.slots.segment, one.slots.slot);
            first..first + one.slots.pages as usize
        };
        let mut starts = vec![0u32; pages + 1];
        for at in uses.iter().flat_map(spots) {
            starts[at + 1] += 1;
        }
        for at in 0..pages {
            starts[at + 1] += starts[at];
        }
        let mut filled = starts.clone();
        let mut destinations = vec![(0, 0); starts[pages] as usize];
        for one in uses {
            for (page, at) in (one.page..).zip(spots(one)) {
                destinations[filled[at] as usize] = (one.region, page);
                filled[at] += 1;
            }
        }
        self.starts = starts;
        self.destinations = destinations;
    }

    pub(crate) fn wanted(&self) -> &[Slots] {
        &self.wanted
    }

    /// Takes the hashes of all wanted pages; false if they are not as many.
    pub(crate) fn take_hashes(&mut self, hashes: Vec<u8>) -> bool {
        let pages = self.firsts.last().copied().unwrap_or(0);
        let fits = hashes.len() == pages * self.hash_bytes;
        self.hashes = hashes;
        fits
    }

    pub(crate) fn hashes(&self) -> &Vec<u8> {
        &self.hashes
    }

    /// The hash of a wanted page.
    pub(crate) fn hash(&self, at: usize) -> &[u8] {
        &self.hashes[at * self.hash_bytes..][..self.hash_bytes]
    }

    /// The number of a wanted slot.
    pub(crate) fn find(&self, segment: u32, slot: u32) -> usize {
        let after = self.wanted.partition_point(|run| (run.segment, run.slot) <= (segment, slot));
        let at = after.checked_sub(1).expect("only wanted slots are asked for");
        self.firsts[at] + (slot - self.wanted[at].slot) as usize
    }

    /// Segment and slot of a wanted page.
    pub(crate) fn slot(&self, at: usize) -> (u32, u32) {
        let run = self.firsts.partition_point(|first| *first <= at) - 1;
        let slots = self.wanted[run];
        (slots.segment, slots.slot + (at - self.firsts[run]) as u32)
    }

    /// Region and page of everywhere a wanted page goes.
    pub(crate) fn destinations(&self, at: usize) -> impl Iterator<Item = (usize, usize)> {
        let range = self.starts[at] as usize..self.starts[at + 1] as usize;
        self.destinations[range].iter().map(|(region, page)| (*region as usize, *page as usize))
    }

    /// How many wanted pages from this one on go to one place each, one behind the other; 1 if the
    /// first goes to several.
    pub(crate) fn neighbours(&self, at: usize, most: usize) -> usize {
        let only = |at: usize| {
            let mut places = self.destinations(at);
            places.next().filter(|_| places.next().is_none())
        };
        let Some((region, page)) = only(at) else { return 1 };
        let follows = |ahead: &usize| only(at + ahead) == Some((region, page + ahead));
        1 + (1..most).take_while(follows).count()
    }
}

/// Joins the slots of sorted uses to stretches in which each slot is once.
fn join(uses: &[Use]) -> Vec<Slots> {
    let mut joined: Vec<Slots> = Vec::new();
    for Slots { segment, slot, pages } in uses.iter().map(|one| one.slots) {
        match joined.last_mut() {
            Some(last) if last.segment == segment && slot <= last.slot + last.pages => {
                last.pages = last.pages.max(slot + pages - last.slot);
            }
            _ => joined.push(Slots { segment, slot, pages }),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
