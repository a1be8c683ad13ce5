//! References of an image: the pages that other ranks store for it, as (hash, owner).
//!
//! ```text
//! in the image's fields   per stretch: region, first page, pages, owner
//! behind its runs         the hashes of these pages, end to end, stretch after stretch
//! ```
//! A run says where a page is; a reference says what it is and whose. So a reader who follows a run
//! into another rank's segment knows which hash it must find there, page by page.
//!
//! Invariants of decoded references:
//! - They are in the order of regions and pages, and no page is in two of them.
//! - Each lies inside its region, on pages that are stored, and belongs to another rank.
//! - Each has one hash for every page.

use crate::algorithm::HashKind;
use crate::error::{Error, Result};
use crate::id::Rank;
use crate::image::{Image, RegionImage, Run};

/// Ranks are numbered below this: no communicator has more.
const RANKS_MAX: u32 = i32::MAX as u32;

/// Consecutive pages of a region that one other rank stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Place of the region in the image's list.
    pub region: u32,
    /// The first page within the region.
    pub page: u64,
    /// The rank that stores them.
    pub owner: Rank,
    /// The hashes of the pages, end to end.
    pub hashes: Vec<u8>,
}

impl Reference {
    /// How many pages, given the hash of the image.
    pub fn pages(&self, hash: HashKind) -> u64 {
        (self.hashes.len() / hash.bytes()) as u64
    }
}

/// Pages of a reference that one run leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Referred<'a> {
    /// The reference.
    pub reference: &'a Reference,
    /// The first page within the region.
    pub page: u64,
    /// The part of the run that these pages are.
    pub run: Run,
    /// Their hashes, end to end.
    pub hashes: &'a [u8],
}

/// A stretch as it stands in the fields of an image.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Stretch {
    region: u32,
    page: u64,
    pages: u64,
    owner: Rank,
}

impl Stretch {
    pub(crate) fn of(reference: &Reference, hash: HashKind) -> Self {
        let Reference { region, page, owner, .. } = *reference;
        Self { region, page, pages: reference.pages(hash), owner }
    }
}

/// Takes the hashes of stretches; `rest` must be used up by them.
pub(crate) fn read(
    stretches: Vec<Stretch>,
    mut rest: &[u8],
    image: &Image,
) -> Result<Vec<Reference>> {
    // Grows with the hashes that are really there.
    let mut references = Vec::new();
    let mut free = (0, 0);
    for stretch in stretches {
        let end = check(&stretch, free, image)?;
        free = (stretch.region, end);
        let bytes = usize::try_from(stretch.pages).ok();
        let bytes = bytes.and_then(|pages| pages.checked_mul(image.hash.bytes()));
        let (hashes, others) = bytes
            .and_then(|bytes| rest.split_at_checked(bytes))
            .ok_or_else(|| malformed("the hashes of its references are cut off"))?;
        rest = others;
        let Stretch { region, page, owner, .. } = stretch;
        references.push(Reference { region, page, owner, hashes: hashes.to_vec() });
    }
    match rest.is_empty() {
        true => Ok(references),
        false => Err(malformed("it has more hashes than its references say")),
    }
}

/// Checks a stretch whose first page must not be before `free`; the page after its last one.
fn check(stretch: &Stretch, free: (u32, u64), image: &Image) -> Result<u64> {
    let region = image
        .regions
        .get(stretch.region as usize)
        .ok_or_else(|| malformed("a reference names a region that is not in the list"))?;
    if stretch.pages == 0 {
        return Err(malformed("a reference is empty"));
    }
    if (stretch.region, stretch.page) < free {
        return Err(malformed("its references overlap or are out of order"));
    }
    if stretch.owner == image.rank || stretch.owner.0 >= RANKS_MAX {
        return Err(malformed("a reference names an owner that cannot be"));
    }
    let end = stretch.page.checked_add(stretch.pages);
    end.filter(|end| *end <= RegionImage::pages(region.bytes, image.page_bytes))
        .ok_or_else(|| malformed("a reference leaves its region"))
}

/// The pieces of all references, in their order.
pub(crate) fn referred(image: &Image) -> impl Iterator<Item = Referred<'_>> {
    let references = image.references.as_deref().unwrap_or_default();
    references.chunk_by(|a, b| a.region == b.region).flat_map(|same| {
        let region = image.regions.get(same[0].region as usize);
        region.into_iter().flat_map(|region| cut(&region.runs, same, image.hash.bytes()))
    })
}

/// Cuts the references to one region where its runs end.
fn cut<'a>(
    runs: &'a [Run],
    references: &'a [Reference],
    hash_bytes: usize,
) -> impl Iterator<Item = Referred<'a>> {
    // The run at hand with its first page, and what is left of the reference at hand.
    let (mut runs, mut run_page) = (runs, 0);
    let (mut references, mut done) = (references.iter().peekable(), 0);
    std::iter::from_fn(move || {
        loop {
            let reference = *references.peek()?;
            let hashes = &reference.hashes[done * hash_bytes..];
            let left = (hashes.len() / hash_bytes) as u64;
            if left == 0 {
                references.next();
                done = 0;
                continue;
            }
            let (run, later) = runs.split_first()?;
            let page = reference.page + done as u64;
            let run_end = run_page + u64::from(run.pages());
            if run_end <= page {
                (runs, run_page) = (later, run_end);
                continue;
            }
            let pages = left.min(run_end - page) as u32;
            done += pages as usize;
            let run = run.part((page - run_page) as u32, pages);
            let hashes = &hashes[..pages as usize * hash_bytes];
            return Some(Referred { reference, page, run, hashes });
        }
    })
}

fn malformed(why: &'static str) -> Error {
    Error::Malformed { what: "image", why }
}

#[cfg(test)]
mod tests;
