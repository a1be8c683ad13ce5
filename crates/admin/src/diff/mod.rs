//! Which pages differ between two checkpoints, from their hashes alone.
//!
//! Data: two images and the indexes of their segments -> per region the pages that changed. No
//! page is read: equal slots are equal pages, and for others the indexes hold every hash.
//!
//! Regions are matched by rank and name. Where one is longer, its additional pages count as
//! changed.

mod compare;

use std::collections::BTreeMap;

use standfast::{Image, Manifest, Rank};
use standfast_format::{HASH_BYTES_MAX, RegionImage};
use standfast_reduce::PageHasher;
use standfast_restart::read_image;

use crate::error::{Error, Result};
use crate::place::OpenJob;
use compare::{Indexes, compare};

/// A region of the one checkpoint, the other, or both.
#[derive(Debug, serde::Serialize)]
pub struct RegionDiff {
    /// Whose.
    pub rank: Rank,
    /// Its name; any text.
    #[serde(rename = "region")]
    pub name: String,
    /// What has become of it, in a word.
    pub state: &'static str,
    /// Its size in the one, if it is there.
    pub bytes_before: Option<u64>,
    /// Its size in the other.
    pub bytes_after: Option<u64>,
    /// Pages that differ.
    pub pages_changed: u64,
    /// Their bytes.
    pub bytes_changed: u64,
    /// Stretches of bytes that differ, in whole pages.
    #[serde(skip)]
    pub ranges: Vec<(u64, u64)>,
}

impl RegionDiff {
    fn state(&self) -> &'static str {
        match (self.bytes_before, self.bytes_after) {
            (None, _) => "added",
            (_, None) => "removed",
            (before, after) if before != after => "resized",
            _ if self.pages_changed > 0 => "changed",
            _ => "same",
        }
    }

    /// Its size, where it is larger.
    pub fn whole(&self) -> u64 {
        self.bytes_before.unwrap_or(0).max(self.bytes_after.unwrap_or(0))
    }
}

/// Compares two checkpoints, region by region.
pub fn diff(job: &OpenJob, before: &Manifest, after: &Manifest) -> Result<Vec<RegionDiff>> {
    let mut differ = Differ { job, indexes: Indexes::default(), regions: Vec::new() };
    let mut ranks: Vec<Rank> =
        before.images.iter().chain(&after.images).map(|image| image.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    for rank in ranks {
        let (before, after) = (image(job, before, rank)?, image(job, after, rank)?);
        differ.rank(rank, before.as_ref(), after.as_ref())?;
    }
    Ok(differ.regions)
}

fn image(job: &OpenJob, manifest: &Manifest, rank: Rank) -> Result<Option<Image>> {
    match manifest.image(rank) {
        Some(_) => Ok(Some(read_image(&*job.store, manifest, rank)?)),
        None => Ok(None),
    }
}

struct Differ<'a> {
    job: &'a OpenJob,
    indexes: Indexes,
    regions: Vec<RegionDiff>,
}

/// One side of a region.
type Side<'a> = (&'a Image, &'a RegionImage);

fn with_image(image: Option<&Image>) -> impl Iterator<Item = Side<'_>> {
    image.into_iter().flat_map(|image| image.regions.iter().map(move |region| (image, region)))
}

impl Differ<'_> {
    fn rank(&mut self, rank: Rank, before: Option<&Image>, after: Option<&Image>) -> Result<()> {
        let mut pairs: BTreeMap<&str, [Option<Side<'_>>; 2]> = BTreeMap::new();
        for (at, image) in [before, after].into_iter().enumerate() {
            for side in with_image(image) {
                pairs.entry(&side.1.name).or_default()[at] = Some(side);
            }
        }
        pairs.into_iter().try_for_each(|(name, pair)| self.region(rank, name, pair))
    }

    fn region(&mut self, rank: Rank, name: &str, pair: [Option<Side<'_>>; 2]) -> Result<()> {
        let [bytes_before, bytes_after] = pair.map(|side| side.map(|(_, region)| region.bytes));
        let mut found = RegionDiff {
            rank,
            name: name.to_owned(),
            state: "",
            bytes_before,
            bytes_after,
            pages_changed: 0,
            bytes_changed: 0,
            ranges: Vec::new(),
        };
        let whole = found.whole();
        self.changes(name, pair, |page_bytes, from, to| {
            let end = (to.saturating_mul(page_bytes)).min(whole);
            let start = from.saturating_mul(page_bytes).min(end);
            found.pages_changed += to - from;
            found.bytes_changed += end - start;
            found.ranges.push((start, end));
        })?;
        found.state = found.state();
        self.regions.push(found);
        Ok(())
    }

    /// Calls `each(page size, first page, end)` for every stretch of pages that differ.
    fn changes(
        &mut self,
        name: &str,
        pair: [Option<Side<'_>>; 2],
        mut each: impl FnMut(u64, u64, u64),
    ) -> Result<()> {
        let ((image_a, a), (image_b, b)) = match pair {
            [Some(a), Some(b)] => (a, b),
            [Some((image, region)), None] | [None, Some((image, region))] => {
                let pages = RegionImage::pages(region.bytes, image.page_bytes);
                if pages > 0 {
                    each(u64::from(image.page_bytes), 0, pages);
                }
                return Ok(());
            }
            [None, None] => return Ok(()),
        };
        if image_a.page_bytes != image_b.page_bytes || image_a.hash != image_b.hash {
            return Err(Error::CapturedDifferently(name.to_owned()));
        }
        if a.pages_digest == b.pages_digest && a.bytes == b.bytes {
            return Ok(());
        }
        self.indexes.load(self.job, image_a)?;
        self.indexes.load(self.job, image_b)?;
        let hasher = PageHasher::new(image_a.hash, &self.job.header.key);
        let mut zero = [0; HASH_BYTES_MAX];
        let zero = &mut zero[..hasher.bytes()];
        hasher.hash(&vec![0; image_a.page_bytes as usize], zero);
        let page_bytes = u64::from(image_a.page_bytes);
        compare(&self.indexes, [(image_a, a), (image_b, b)], zero, |from, to| {
            each(page_bytes, from, to);
        });
        Ok(())
    }
}
