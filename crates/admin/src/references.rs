//! The pages of each rank that another rank holds, as (hash, owner).
//!
//! Data: the images' lists of references, cut where runs end. An image without a list has
//! (segment, slot) alone: runs in segments of other ranks -> the hashes in these segments' indexes;
//! the segment says who owns it, its index which page is meant.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use standfast::Image;
use standfast_format::{Rank, Run, SegmentId, SegmentIndex, SegmentRef};
use standfast_write::SegmentReader;

use crate::error::Result;
use crate::place::OpenJob;

/// A run of pages that another rank holds.
#[derive(Debug, serde::Serialize)]
pub struct Reference {
    /// Who refers.
    pub rank: Rank,
    /// In which region; any text.
    pub region: String,
    /// First page within the region.
    pub page: u64,
    /// How many.
    pub pages: u32,
    /// Who holds them.
    pub owner: Rank,
    /// Where.
    pub segment: String,
    /// First slot there.
    pub slot: u32,
    /// Size of a page.
    #[serde(skip)]
    pub page_bytes: u32,
    /// The hashes of the pages, in hexadecimal.
    pub hashes: Vec<String>,
}

/// The references of these images.
pub fn references(job: &OpenJob, images: &[Image]) -> Result<Vec<Reference>> {
    let mut indexes = HashMap::new();
    let mut found = Vec::new();
    for image in images {
        let all: Vec<Found<'_>> = match image.references {
            Some(_) => listed(image).collect(),
            None => followed(image).collect(),
        };
        for one in all {
            let hashes = match one.hashes {
                Some(hashes) => hashes.chunks_exact(image.hash.bytes()).map(hex).collect(),
                None => look_up(job, &one, &mut indexes)?,
            };
            found.push(Reference {
                rank: image.rank,
                region: one.region.to_owned(),
                page: one.page,
                pages: one.pages,
                owner: one.owner,
                segment: one.segment.id.to_string(),
                slot: one.slot,
                page_bytes: image.page_bytes,
                hashes,
            });
        }
    }
    Ok(found)
}

struct Found<'a> {
    region: &'a str,
    page: u64,
    pages: u32,
    owner: Rank,
    segment: &'a SegmentRef,
    slot: u32,
    /// End to end, where the image has them.
    hashes: Option<&'a [u8]>,
}

/// The list of an image, run by run.
fn listed(image: &Image) -> impl Iterator<Item = Found<'_>> {
    image.referred().filter_map(|piece| {
        let Run::Stored { pages, segment, slot } = piece.run else { return None };
        Some(Found {
            region: image.regions.get(piece.reference.region as usize)?.name.as_str(),
            page: piece.page,
            pages,
            owner: piece.reference.owner,
            segment: image.segments.get(segment as usize)?,
            slot,
            hashes: Some(piece.hashes),
        })
    })
}

/// The runs of an image in segments that other ranks wrote.
fn followed(image: &Image) -> impl Iterator<Item = Found<'_>> {
    image.regions.iter().flat_map(move |region| {
        let mut next = 0u64;
        region.runs.iter().filter_map(move |run| {
            let page = next;
            next += u64::from(run.pages());
            let Run::Stored { pages, segment, slot } = *run else { return None };
            let segment = image.segments.get(segment as usize)?;
            let (region, owner, hashes) = (region.name.as_str(), segment.rank, None);
            let found = Found { region, page, pages, owner, segment, slot, hashes };
            (owner != image.rank).then_some(found)
        })
    })
}

/// The hashes of a reference's pages, from its segment's index.
fn look_up(
    job: &OpenJob,
    found: &Found<'_>,
    indexes: &mut HashMap<SegmentId, SegmentIndex>,
) -> Result<Vec<String>> {
    let segment = found.segment;
    let index = match indexes.entry(segment.id) {
        Entry::Occupied(read) => read.into_mut(),
        Entry::Vacant(unread) => {
            let reader = SegmentReader::open(&*job.store, job.header.id, segment)?;
            unread.insert(reader.into_index())
        }
    };
    let slots = found.slot..found.slot.saturating_add(found.pages).min(index.slots());
    Ok(slots.map(|slot| hex(index.hash_of(slot))).collect())
}

fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
