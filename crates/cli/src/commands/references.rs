//! `show --references`: the pages of each rank that another rank holds, as (hash, owner).
//!
//! Data: the images' lists of references, cut where runs end. An image without a list has
//! (segment, slot) alone: runs in segments of other ranks -> the hashes in these segments' indexes; the
//! segment says who owns it, its index which page is meant.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::json;
use standfast::{Image, human_bytes};
use standfast_format::{Rank, Run, SegmentId, SegmentIndex, SegmentRef};
use standfast_write::SegmentReader;

use crate::escape;
use crate::failure::Result;
use crate::output::{Align, Column, FAINT, Output, TITLE};
use crate::place::OpenJob;

/// Hashes that the table shows of a run; the JSON lines have all.
const SHOWN: usize = 1;

/// A run of pages that another rank holds.
struct Reference<'a> {
    rank: Rank,
    region: &'a str,
    /// First page within the region.
    page: u64,
    pages: u32,
    owner: Rank,
    segment: &'a SegmentRef,
    slot: u32,
    /// The hashes of its pages, end to end, where the image has them.
    hashes: Option<&'a [u8]>,
}

/// Lists the references of these images.
pub(crate) fn show(job: &OpenJob, images: &[Image], output: &Output) -> Result<()> {
    let mut indexes = HashMap::new();
    let mut rows = Vec::new();
    let mut bytes = 0u64;
    for image in images {
        for reference in references(image) {
            bytes += u64::from(reference.pages) * u64::from(image.page_bytes);
            let hashes = match reference.hashes {
                Some(hashes) => hashes.chunks_exact(image.hash.bytes()).map(hex).collect(),
                None => look_up(job, &reference, &mut indexes)?,
            };
            output.record("reference", record(&reference, &hashes))?;
            rows.push(row(&reference, &hashes));
        }
    }
    if rows.is_empty() {
        return output.line("\nno rank refers to a page of another one");
    }
    output.line(format_args!(
        "\n{}  {}",
        output.paint(TITLE, "pages that other ranks hold"),
        output.paint(FAINT, format_args!("{} by reference", human_bytes(bytes)))
    ))?;
    let columns = [
        Column("RANK", Align::Right),
        Column("REGION", Align::Left),
        Column("PAGE", Align::Right),
        Column("PAGES", Align::Right),
        Column("OWNER", Align::Right),
        Column("HASH", Align::Left),
    ];
    output.table(&columns, rows)
}

/// The references of an image: its list, or else what its runs lead to.
fn references(image: &Image) -> Vec<Reference<'_>> {
    match image.references {
        Some(_) => listed(image).collect(),
        None => followed(image).collect(),
    }
}

/// The list of an image, run by run.
fn listed(image: &Image) -> impl Iterator<Item = Reference<'_>> {
    image.referred().filter_map(|piece| {
        let Run::Stored { pages, segment, slot } = piece.run else { return None };
        Some(Reference {
            rank: image.rank,
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
fn followed(image: &Image) -> impl Iterator<Item = Reference<'_>> {
    image.regions.iter().flat_map(move |region| {
        let mut next = 0u64;
        region.runs.iter().filter_map(move |run| {
            let page = next;
            next += u64::from(run.pages());
            let Run::Stored { pages, segment, slot } = *run else { return None };
            let segment = image.segments.get(segment as usize)?;
            let (rank, region, owner) = (image.rank, region.name.as_str(), segment.rank);
            let hashes = None;
            let found = Reference { rank, region, page, pages, owner, segment, slot, hashes };
            (owner != rank).then_some(found)
        })
    })
}

/// The hashes of a reference's pages, from its segment's index.
fn look_up(
    job: &OpenJob,
    reference: &Reference<'_>,
    indexes: &mut HashMap<SegmentId, SegmentIndex>,
) -> Result<Vec<String>> {
    let segment = reference.segment;
    let index = match indexes.entry(segment.id) {
        Entry::Occupied(read) => read.into_mut(),
        Entry::Vacant(unread) => {
            let reader = SegmentReader::open(&*job.store, job.header.id, segment)?;
            unread.insert(reader.into_index())
        }
    };
    let slots = reference.slot..reference.slot.saturating_add(reference.pages).min(index.slots());
    Ok(slots.map(|slot| hex(index.hash_of(slot))).collect())
}

fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn record(reference: &Reference<'_>, hashes: &[String]) -> serde_json::Value {
    json!({
        "rank": reference.rank, "region": reference.region, "page": reference.page,
        "pages": reference.pages, "owner": reference.owner,
        "segment": reference.segment.id.to_string(), "slot": reference.slot, "hashes": hashes,
    })
}

fn row(reference: &Reference<'_>, hashes: &[String]) -> Vec<String> {
    let more = if hashes.len() > SHOWN { ", …" } else { "" };
    vec![
        reference.rank.to_string(),
        escape::name(reference.region),
        reference.page.to_string(),
        reference.pages.to_string(),
        reference.owner.to_string(),
        format!("{}{more}", hashes.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ")),
    ]
}
