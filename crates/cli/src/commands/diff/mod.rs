//! `diff`: which pages differ between two checkpoints, from their hashes alone.
//!
//! Data: two images and the indexes of their segments -> per region the pages that changed. No
//! page is read: equal slots are equal pages, and for others the indexes hold every hash.
//!
//! Regions are matched by rank and name. Where one is longer, its additional pages count as
//! changed.

mod compare;

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::json;
use standfast::{Image, Kind, Manifest, Rank, human_bytes};
use standfast_format::{HASH_BYTES_MAX, RegionImage};
use standfast_reduce::PageHasher;
use standfast_restart::read_image;

use crate::args::{DiffArgs, Global};
use crate::escape;
use crate::failure::{Failure, Result};
use crate::output::{Align, Column, GOOD, Output, TITLE};
use crate::place::{self, OpenJob};
use compare::{Indexes, compare};

/// Compares two checkpoints.
pub(crate) fn run(global: &Global, args: &DiffArgs, output: &Output) -> Result<ExitCode> {
    let job = place::open(global)?;
    let _lock = job.lock()?;
    let inventory = job.inventory()?;
    let before = place::choose(&inventory, Some(args.before))?;
    let after = place::choose(&inventory, Some(args.after))?;
    let mut differ = Differ::new(&job, output, args.ranges);
    let mut ranks: Vec<Rank> =
        before.images.iter().chain(&after.images).map(|image| image.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    for rank in ranks {
        let (before, after) = (image(&job, before, rank)?, image(&job, after, rank)?);
        differ.rank(rank, before.as_ref(), after.as_ref())?;
    }
    differ.finish(args)?;
    Ok(ExitCode::SUCCESS)
}

fn image(job: &OpenJob, manifest: &Manifest, rank: Rank) -> Result<Option<Image>> {
    match manifest.image(rank) {
        Some(_) => Ok(Some(read_image(&*job.store, manifest, rank)?)),
        None => Ok(None),
    }
}

struct Differ<'a> {
    job: &'a OpenJob,
    output: &'a Output,
    ranges: bool,
    indexes: Indexes,
    rows: Vec<Vec<String>>,
    /// Lines of ranges, printed below the table.
    listing: Vec<String>,
    regions_changed: usize,
    pages_changed: u64,
    bytes_changed: u64,
}

/// Both sides of a region; at least one is there.
type Pair<'a> = (Option<(&'a Image, &'a RegionImage)>, Option<(&'a Image, &'a RegionImage)>);

fn with_image(image: Option<&Image>) -> impl Iterator<Item = (&Image, &RegionImage)> {
    image.into_iter().flat_map(|image| image.regions.iter().map(move |region| (image, region)))
}

impl<'a> Differ<'a> {
    fn new(job: &'a OpenJob, output: &'a Output, ranges: bool) -> Self {
        Self {
            job,
            output,
            ranges,
            indexes: Indexes::default(),
            rows: Vec::new(),
            listing: Vec::new(),
            regions_changed: 0,
            pages_changed: 0,
            bytes_changed: 0,
        }
    }

    fn rank(&mut self, rank: Rank, before: Option<&Image>, after: Option<&Image>) -> Result<()> {
        let mut pairs: BTreeMap<&str, Pair<'_>> = BTreeMap::new();
        for (image, region) in with_image(before) {
            pairs.entry(&region.name).or_default().0 = Some((image, region));
        }
        for (image, region) in with_image(after) {
            pairs.entry(&region.name).or_default().1 = Some((image, region));
        }
        pairs.into_iter().try_for_each(|(name, pair)| self.region(rank, name, pair))
    }

    fn region(&mut self, rank: Rank, name: &str, pair: Pair<'_>) -> Result<()> {
        let bytes = |side: Option<(&Image, &RegionImage)>| side.map(|(_, region)| region.bytes);
        let (bytes_before, bytes_after) = (bytes(pair.0), bytes(pair.1));
        let whole = bytes_before.unwrap_or(0).max(bytes_after.unwrap_or(0));
        let (mut pages, mut changed) = (0u64, 0u64);
        let mut ranges = Vec::new();
        let keep_ranges = self.ranges;
        self.changes(name, pair, |page_bytes, from, to| {
            pages += to - from;
            let end = (to.saturating_mul(page_bytes)).min(whole);
            let start = from.saturating_mul(page_bytes).min(end);
            changed += end - start;
            if keep_ranges {
                ranges.push((start, end));
            }
        })?;
        let state = match (bytes_before, bytes_after) {
            (None, _) => "added",
            (_, None) => "removed",
            (before, after) if before != after => "resized",
            _ if pages > 0 => "changed",
            _ => "same",
        };
        self.regions_changed += usize::from(state != "same");
        self.pages_changed = self.pages_changed.saturating_add(pages);
        self.bytes_changed = self.bytes_changed.saturating_add(changed);
        self.output.record(
            "region",
            json!({
                "rank": rank, "region": name, "state": state, "bytes_before": bytes_before,
                "bytes_after": bytes_after, "pages_changed": pages, "bytes_changed": changed,
            }),
        )?;
        for (start, end) in ranges {
            self.output.record(
                "range",
                json!({ "rank": rank, "region": name, "start": start, "end": end }),
            )?;
            self.listing.push(format!("  {}  {start}..{end}", escape::name(name)));
        }
        let size = |bytes: Option<u64>| bytes.map_or("-".into(), human_bytes);
        self.rows.push(vec![
            rank.to_string(),
            escape::name(name),
            state.into(),
            size(bytes_before),
            size(bytes_after),
            pages.to_string(),
            human_bytes(changed),
            format!(
                "{:.1} %",
                if whole == 0 { 0.0 } else { 100.0 * changed as f64 / whole as f64 }
            ),
        ]);
        Ok(())
    }

    /// Calls `each(page size, first page, end)` for every stretch of pages that differ.
    fn changes(
        &mut self,
        name: &str,
        pair: Pair<'_>,
        mut each: impl FnMut(u64, u64, u64),
    ) -> Result<()> {
        let ((image_a, a), (image_b, b)) = match pair {
            (Some(a), Some(b)) => (a, b),
            (Some((image, region)), None) | (None, Some((image, region))) => {
                let pages = RegionImage::pages(region.bytes, image.page_bytes);
                if pages > 0 {
                    each(u64::from(image.page_bytes), 0, pages);
                }
                return Ok(());
            }
            (None, None) => return Ok(()),
        };
        if image_a.page_bytes != image_b.page_bytes || image_a.hash != image_b.hash {
            return Err(Failure::new(
                Kind::Unsupported,
                format!("region {name:?} was captured with different page sizes or hashes"),
            )
            .advise("export it from both checkpoints and compare the files (cmp)"));
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

    fn finish(self, args: &DiffArgs) -> Result<()> {
        let output = self.output;
        output.record(
            "summary",
            json!({
                "before": args.before, "after": args.after,
                "regions_changed": self.regions_changed, "pages_changed": self.pages_changed,
                "bytes_changed": self.bytes_changed,
            }),
        )?;
        let title = format!("checkpoint {} against {}", args.before, args.after);
        output.line(output.paint(TITLE, title))?;
        let regions = self.rows.len();
        let columns = [
            Column("RANK", Align::Right),
            Column("REGION", Align::Left),
            Column("STATE", Align::Left),
            Column("BEFORE", Align::Right),
            Column("AFTER", Align::Right),
            Column("PAGES CHANGED", Align::Right),
            Column("BYTES CHANGED", Align::Right),
            Column("SHARE", Align::Right),
        ];
        output.table(&columns, self.rows)?;
        if !self.listing.is_empty() {
            output.line("\n  ranges of bytes that differ, in whole pages")?;
            self.listing.iter().try_for_each(|line| output.line(line))?;
        }
        if self.regions_changed == 0 {
            return output.line(output.paint(GOOD, "no difference"));
        }
        output.line(format_args!(
            "{} of {regions} regions differ, {} pages, {}",
            self.regions_changed,
            self.pages_changed,
            human_bytes(self.bytes_changed)
        ))
    }
}
