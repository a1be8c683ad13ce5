//! Images: one rank's part of a checkpoint, as references to stored pages.
//!
//! ```text
//! frame of:
//!   fields   job, version, rank, page size, hash, segment table, region table, references
//!   runs     12 bytes each, region after region
//!   hashes   of the pages that references are to
//! ```
//! A region is cut into pages from its own start (so equal arrays give equal pages wherever they
//! lie); its last page counts as filled up with zeros. A *run* says where consecutive pages are:
//! in consecutive slots of a segment, or nowhere because they are zero.
//!
//! Why a digest over page hashes instead of the hashes themselves: the segment index has every
//! page's hash already. The digest proves, before any data is read, that the runs lead to exactly
//! the pages that were captured, for 32 bytes a region instead of 16 a page. Where ranks share pages
//! by the paper's strategy, pages that others store are also written as (hash, owner) ([`Reference`]).
//!
//! Images before format 4 have no references: their fields end before, and a reader finds none.
//!
//! Invariants of a decoded image:
//! - The runs of a region cover exactly its pages.
//! - Every run lies inside its segment, as long as the segment has the slots the table says.
//! - Region names are valid and distinct.

use std::collections::HashSet;

use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::algorithm::HashKind;
use crate::error::{Error, Result};
use crate::frame::{self, Sort};
use crate::id::{Digest, JobId, Rank, SegmentId, Version};
use crate::reference::{self, Reference, Referred, Stretch};
use crate::{name, segment};

const SORT: Sort = Sort { mark: *b"SFIMAGE\0", what: "image" };

/// Run records whose segment is this number are zero pages.
const ZERO: u32 = u32::MAX;

/// Format from which an image has references.
const REFERENCES_SINCE: u16 = 4;

/// A segment that a checkpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SegmentRef {
    /// Which one.
    pub id: SegmentId,
    /// The rank that wrote it: whom to ask for its pages.
    pub rank: Rank,
    /// How many slots it has.
    pub slots: u32,
    /// Length of its file.
    pub file_bytes: u64,
    /// Digest of its index.
    pub index: Digest,
}

/// Where consecutive pages of a region are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// So many pages of zeros.
    Zero {
        /// Length of the run.
        pages: u32,
    },
    /// So many pages in consecutive slots.
    Stored {
        /// Length of the run.
        pages: u32,
        /// Position in the image's segment table.
        segment: u32,
        /// Slot of the first page.
        slot: u32,
    },
}

impl Run {
    /// Length of the run in pages.
    pub fn pages(self) -> u32 {
        match self {
            Run::Zero { pages } | Run::Stored { pages, .. } => pages,
        }
    }

    /// So many pages of it, after so many others.
    pub fn part(self, after: u32, pages: u32) -> Self {
        match self {
            Run::Zero { .. } => Run::Zero { pages },
            Run::Stored { segment, slot, .. } => Run::Stored { pages, segment, slot: slot + after },
        }
    }
}

/// One protected region as it was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionImage {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Size of its elements if the program said so, else 0.
    pub elem: u8,
    /// BLAKE3 over the hashes of its pages, in order.
    pub pages_digest: Digest,
    /// Where its pages are.
    pub runs: Vec<Run>,
}

impl RegionImage {
    /// Number of pages a region of so many bytes has.
    pub fn pages(bytes: u64, page_bytes: u32) -> u64 {
        bytes.div_ceil(u64::from(page_bytes))
    }
}

/// One rank's part of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The store it belongs to.
    pub job: JobId,
    /// The checkpoint it belongs to.
    pub version: Version,
    /// The rank it belongs to.
    pub rank: Rank,
    /// Size of its pages.
    pub page_bytes: u32,
    /// Hash of its pages.
    pub hash: HashKind,
    /// Segments that its runs refer to.
    pub segments: Vec<SegmentRef>,
    /// Its regions.
    pub regions: Vec<RegionImage>,
    /// The pages that other ranks store, in the order of regions and pages; `None` where that was
    /// not written down.
    pub references: Option<Vec<Reference>>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Fields {
    job: JobId,
    version: Version,
    rank: Rank,
    page_bytes: u32,
    hash: HashKind,
    segments: Vec<SegmentRef>,
    regions: Vec<RegionFields>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct RegionFields {
    name: String,
    bytes: u64,
    elem: u8,
    pages_digest: Digest,
    runs: u32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RunRecord {
    pages: U32,
    segment: U32,
    slot: U32,
}

impl Image {
    /// Bytes of all regions together.
    pub fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.bytes).sum()
    }

    /// The region with this name.
    pub fn region(&self, name: &str) -> Option<&RegionImage> {
        self.regions.iter().find(|region| region.name == name)
    }

    /// The references, cut where the runs of their pages end.
    pub fn referred(&self) -> impl Iterator<Item = Referred<'_>> {
        reference::referred(self)
    }

    /// The bytes of the file, and the digest by which the manifest names them.
    pub fn encode(&self) -> (Vec<u8>, Digest) {
        let regions = self
            .regions
            .iter()
            .map(|region| RegionFields {
                name: region.name.clone(),
                bytes: region.bytes,
                elem: region.elem,
                pages_digest: region.pages_digest,
                runs: region.runs.len() as u32,
            })
            .collect();
        let mut body = frame::encode(&Fields {
            job: self.job,
            version: self.version,
            rank: self.rank,
            page_bytes: self.page_bytes,
            hash: self.hash,
            segments: self.segments.clone(),
            regions,
        });
        let references = self.references.as_deref();
        let stretch = |reference: &Reference| Stretch::of(reference, self.hash);
        let stretches = |references: &[Reference]| references.iter().map(stretch).collect();
        body.extend(frame::encode::<Option<Vec<Stretch>>>(&references.map(stretches)));
        for run in self.regions.iter().flat_map(|region| &region.runs) {
            body.extend_from_slice(record(*run).as_bytes());
        }
        for reference in references.unwrap_or_default() {
            body.extend_from_slice(&reference.hashes);
        }
        let bytes = frame::seal(SORT, &body);
        let digest = Digest(bytes[bytes.len() - 32..].try_into().expect("32 bytes"));
        (bytes, digest)
    }

    /// Reads and checks the bytes of the file.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Digest)> {
        let opened = frame::open(SORT, bytes)?;
        let (fields, rest): (Fields, _) = frame::decode_prefix(SORT, opened.body)?;
        let (stretches, rest): (Option<Vec<Stretch>>, _) = match opened.version {
            REFERENCES_SINCE.. => frame::decode_prefix(SORT, rest)?,
            _ => (None, rest),
        };
        segment::check_page_bytes(SORT.what, fields.page_bytes)?;
        let runs: u64 = fields.regions.iter().map(|region| u64::from(region.runs)).sum();
        let runs_bytes = runs.saturating_mul(size_of::<RunRecord>() as u64);
        let (runs, hashes) = usize::try_from(runs_bytes)
            .ok()
            .and_then(|bytes| rest.split_at_checked(bytes))
            .ok_or_else(|| malformed("its runs are cut off"))?;
        let regions = read_regions(fields.regions, runs, fields.page_bytes, &fields.segments)?;
        let mut image = Self {
            job: fields.job,
            version: fields.version,
            rank: fields.rank,
            page_bytes: fields.page_bytes,
            hash: fields.hash,
            segments: fields.segments,
            regions,
            references: None,
        };
        match stretches {
            Some(stretches) => {
                image.references = Some(reference::read(stretches, hashes, &image)?);
            }
            None if hashes.is_empty() => {}
            None => return Err(malformed("bytes follow its runs")),
        }
        if image.referred().any(|piece| matches!(piece.run, Run::Zero { .. })) {
            return Err(malformed("a reference is to a page of zeros"));
        }
        Ok((image, opened.digest))
    }
}

fn malformed(why: &'static str) -> Error {
    Error::Malformed { what: SORT.what, why }
}

fn record(run: Run) -> RunRecord {
    let (pages, segment, slot) = match run {
        Run::Zero { pages } => (pages, ZERO, 0),
        Run::Stored { pages, segment, slot } => (pages, segment, slot),
    };
    RunRecord { pages: pages.into(), segment: segment.into(), slot: slot.into() }
}

/// Reads the runs of all regions; there are as many as the fields say.
fn read_regions(
    fields: Vec<RegionFields>,
    runs: &[u8],
    page_bytes: u32,
    segments: &[SegmentRef],
) -> Result<Vec<RegionImage>> {
    let mut records =
        <[RunRecord]>::ref_from_bytes(runs).map_err(|_| malformed("its runs are cut off"))?;
    let mut names = HashSet::new();
    let mut regions = Vec::with_capacity(fields.len());
    for region in fields {
        name::check_region(&region.name)?;
        if !names.insert(region.name.clone()) {
            return Err(malformed("two regions have one name"));
        }
        let (own, others) = records
            .split_at_checked(region.runs as usize)
            .ok_or_else(|| malformed("it has fewer runs than its regions say"))?;
        records = others;
        regions.push(read_region(region, own, page_bytes, segments)?);
    }
    Ok(regions)
}

fn read_region(
    fields: RegionFields,
    records: &[RunRecord],
    page_bytes: u32,
    segments: &[SegmentRef],
) -> Result<RegionImage> {
    let runs =
        records.iter().map(|record| read_run(record, segments)).collect::<Result<Vec<Run>>>()?;
    let pages: u64 = runs.iter().map(|run| u64::from(run.pages())).sum();
    if pages != RegionImage::pages(fields.bytes, page_bytes) {
        return Err(malformed("the runs of a region do not cover its pages"));
    }
    Ok(RegionImage {
        name: fields.name,
        bytes: fields.bytes,
        elem: fields.elem,
        pages_digest: fields.pages_digest,
        runs,
    })
}

fn read_run(record: &RunRecord, segments: &[SegmentRef]) -> Result<Run> {
    let (pages, segment, slot) = (record.pages.get(), record.segment.get(), record.slot.get());
    if pages == 0 {
        return Err(malformed("a run is empty"));
    }
    if segment == ZERO {
        return Ok(Run::Zero { pages });
    }
    let slots = segments
        .get(segment as usize)
        .ok_or_else(|| malformed("a run names a segment that is not in the table"))?
        .slots;
    if slot.checked_add(pages).is_none_or(|end| end > slots) {
        return Err(malformed("a run leaves its segment"));
    }
    Ok(Run::Stored { pages, segment, slot })
}

#[cfg(test)]
mod tests;
