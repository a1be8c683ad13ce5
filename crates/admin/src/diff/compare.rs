//! Two regions, run by run: which pages have different hashes. No I/O beyond the indexes.
//!
//! Invariants:
//! - Every index in use is the one its image names: a slot of a run lies inside it.

use std::collections::HashMap;

use standfast::Image;
use standfast_format::{RegionImage, Run, SegmentId, SegmentIndex, SegmentRef};
use standfast_write::{Error, SegmentReader};

use crate::error::Result;
use crate::place::OpenJob;

/// The indexes of the segments that were needed so far.
#[derive(Default)]
pub(super) struct Indexes(HashMap<SegmentId, (SegmentRef, SegmentIndex)>);

impl Indexes {
    /// Reads the indexes that an image needs.
    pub(super) fn load(&mut self, job: &OpenJob, image: &Image) -> Result<()> {
        for segment in &image.segments {
            let id = segment.id;
            match self.0.get(&id) {
                Some((known, _)) if known == segment => continue,
                Some(_) => {
                    let why = "two checkpoints describe it differently";
                    return Err(Error::Mismatch { id, why }.into());
                }
                None => {}
            }
            let index = SegmentReader::open(&*job.store, job.header.id, segment)?.into_index();
            if index.hash != image.hash {
                return Err(Error::Mismatch { id, why: "its hash is not that of the image" }.into());
            }
            self.0.insert(id, (*segment, index));
        }
        Ok(())
    }

    fn hash<'a>(&'a self, place: Option<(SegmentId, u32)>, at: u32, zero: &'a [u8]) -> &'a [u8] {
        match place {
            Some((id, slot)) => self.0[&id].1.hash_of(slot + at),
            None => zero,
        }
    }
}

/// A walk over the runs of a region.
struct Side<'a> {
    image: &'a Image,
    runs: std::slice::Iter<'a, Run>,
    /// What is left of the current run.
    left: Option<Run>,
}

impl<'a> Side<'a> {
    fn new(image: &'a Image, region: &'a RegionImage) -> Self {
        let mut runs = region.runs.iter();
        let left = runs.next().copied();
        Self { image, runs, left }
    }

    fn pages(&self) -> Option<u32> {
        self.left.map(Run::pages)
    }

    /// The segment and slot of the next page; `None` if it is zero.
    fn place(&self) -> Option<(SegmentId, u32)> {
        match self.left {
            Some(Run::Stored { segment, slot, .. }) => {
                Some((self.image.segments[segment as usize].id, slot))
            }
            _ => None,
        }
    }

    /// Pages from here to the end.
    fn rest(self) -> u64 {
        self.left.iter().chain(self.runs).map(|run| u64::from(run.pages())).sum()
    }

    fn advance(&mut self, by: u32) {
        self.left = match self.left {
            Some(run) if run.pages() == by => self.runs.next().copied(),
            Some(Run::Zero { pages }) => Some(Run::Zero { pages: pages - by }),
            Some(Run::Stored { pages, segment, slot }) => {
                Some(Run::Stored { pages: pages - by, segment, slot: slot + by })
            }
            None => None,
        };
    }
}

/// Walks both regions in step and calls `each(first page, end)` for every stretch of pages that
/// differ. `zero` is the hash of a page of zeros.
pub(super) fn compare(
    indexes: &Indexes,
    [a, b]: [(&Image, &RegionImage); 2],
    zero: &[u8],
    each: impl FnMut(u64, u64),
) {
    let (mut a, mut b) = (Side::new(a.0, a.1), Side::new(b.0, b.1));
    let mut stretches = Stretches { open: None, each };
    let mut page = 0u64;
    while let (Some(left_a), Some(left_b)) = (a.pages(), b.pages()) {
        let pages = left_a.min(left_b);
        let (place_a, place_b) = (a.place(), b.place());
        if place_a == place_b {
            stretches.same(page);
        } else {
            for at in 0..pages {
                let here = page + u64::from(at);
                if indexes.hash(place_a, at, zero) == indexes.hash(place_b, at, zero) {
                    stretches.same(here);
                } else {
                    stretches.differs(here);
                }
            }
        }
        page += u64::from(pages);
        a.advance(pages);
        b.advance(pages);
    }
    let rest = a.rest() + b.rest();
    if rest > 0 {
        stretches.differs(page);
    }
    stretches.same(page + rest);
}

/// Joins pages that differ to stretches.
struct Stretches<F> {
    open: Option<u64>,
    each: F,
}

impl<F: FnMut(u64, u64)> Stretches<F> {
    fn differs(&mut self, page: u64) {
        self.open.get_or_insert(page);
    }

    fn same(&mut self, page: u64) {
        if let Some(from) = self.open.take() {
            (self.each)(from, page);
        }
    }
}
