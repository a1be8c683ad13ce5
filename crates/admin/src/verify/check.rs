//! The checking itself: manifests, images, segments, references, in this order.
//!
//! Invariants:
//! - A segment's data are read once, however many checkpoints need it.
//! - A finding affects the checkpoints whose runs touch what is damaged, not all that name the
//!   segment. Images are read again for that, but only where damage was found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use standfast::{Image, Manifest, Version};
use standfast_format::{Run, SegmentId, SegmentRef, name};
use standfast_restart::{
    Damaged, Error, Inventory, Rebuild, Unreadable, check_segment, damaged_headers, history,
    read_image,
};
use standfast_write::{Error as PackError, SegmentReader};

use super::findings::{Finding, segment_of};
use super::{Checked, Progress};
use crate::place::OpenJob;

/// The segments needed, each with who needs it. One id with two descriptions is kept twice: at
/// most one of them can be true.
type Needed = BTreeMap<SegmentId, Vec<(SegmentRef, BTreeSet<Version>)>>;

/// Checks the wanted checkpoints; `quick` reads no data.
pub fn verify(
    job: &OpenJob,
    inventory: &Inventory,
    wanted: &BTreeSet<Version>,
    quick: bool,
    progress: &Progress,
) -> Checked {
    let mut checked = Checked { checkpoints: wanted.len(), ..Checked::default() };
    for damaged in &inventory.damaged {
        let version = name::parse_manifest(&damaged.object).map(|name| name.version);
        if version.is_none_or(|version| wanted.contains(&version)) {
            let object = damaged.object.clone();
            checked.findings.push(Finding::new(
                object,
                damaged.error.clone(),
                version.into_iter().collect(),
            ));
        }
    }
    beside_checkpoints(job, inventory, &mut checked);
    let manifests: Vec<&Manifest> =
        inventory.checkpoints.iter().filter(|m| wanted.contains(&m.version)).collect();
    let needed = needed(&manifests);
    checked.segments = needed.len();
    let total = needed.values().flatten().map(|(segment, _)| segment.file_bytes);
    if !quick {
        progress.total.store(total.fold(0, u64::saturating_add), Ordering::Relaxed);
    }
    for (id, descriptions) in &needed {
        for (segment, versions) in descriptions {
            one_segment(job, &manifests, *id, segment, versions, quick, progress, &mut checked);
        }
    }
    for manifest in &manifests {
        images(job, manifest, &mut checked);
    }
    let all_damaged = checked.findings.iter().flat_map(|finding| &finding.checkpoints);
    checked.damaged = all_damaged.copied().collect();
    checked.intact = wanted.difference(&checked.damaged).copied().collect();
    checked
}

/// What belongs to no single checkpoint: copies of the header, and the job's history.
fn beside_checkpoints(job: &OpenJob, inventory: &Inventory, checked: &mut Checked) {
    let none = BTreeSet::new;
    for Damaged { object, error } in damaged_headers(&*job.store) {
        checked.findings.push(Finding::new(object, error, none()));
    }
    if let Err(error) = history::read(&*job.store, &inventory.header) {
        checked.findings.push(Finding::new(name::HISTORY.into(), error, none()));
    }
}

fn needed(manifests: &[&Manifest]) -> Needed {
    let mut needed = Needed::new();
    for manifest in manifests {
        for segment in &manifest.segments {
            let descriptions = needed.entry(segment.id).or_default();
            match descriptions.iter_mut().find(|(known, _)| known == segment) {
                Some((_, versions)) => {
                    versions.insert(manifest.version);
                }
                None => descriptions.push((*segment, BTreeSet::from([manifest.version]))),
            }
        }
    }
    needed
}

#[expect(clippy::too_many_arguments, reason = "one step of a loop, cut out to be read")]
fn one_segment(
    job: &OpenJob,
    manifests: &[&Manifest],
    id: SegmentId,
    segment: &SegmentRef,
    versions: &BTreeSet<Version>,
    quick: bool,
    progress: &Progress,
    checked: &mut Checked,
) {
    let object = name::segment(id);
    let reader = match SegmentReader::open(&*job.store, job.header.id, segment) {
        Ok(reader) => reader,
        Err(error) => {
            checked.findings.push(Finding::new(object, error, versions.clone()));
            progress.done.fetch_add(segment.file_bytes, Ordering::Relaxed);
            return;
        }
    };
    if quick {
        return;
    }
    let before = progress.done.load(Ordering::Relaxed);
    let damage = Mutex::new(Vec::new());
    check_segment(&reader, &job.header, job.threads(), &progress.done, |error| {
        damage.lock().expect("nobody panics with it").push(error);
    });
    checked.bytes = checked.bytes.saturating_add(segment.file_bytes);
    // What was not data counts as well, so that the end is the total.
    progress.done.store(before.saturating_add(segment.file_bytes), Ordering::Relaxed);
    let mut damage = damage.into_inner().expect("nobody panics with it");
    damage.sort_by_key(|error| place_of(&reader, error).0);
    let Some(first) = damage.first() else { return };
    let places: Vec<(u32, u32)> = damage.iter().map(|error| place_of(&reader, error)).collect();
    let using = manifests.iter().filter(|manifest| versions.contains(&manifest.version));
    let affected = using
        .filter(|manifest| touches(job, manifest, id, &places))
        .map(|manifest| manifest.version)
        .collect();
    let finding = Finding::new(object, first.clone(), affected);
    checked.findings.push(Finding { count: damage.len(), ..finding });
}

/// The slots that an error may concern: from the first bad page to the end of its block, because
/// a block is checked up to its first bad page; all slots where the place is unknown.
fn place_of(reader: &SegmentReader, error: &Error) -> (u32, u32) {
    let end_of = |block: u32| reader.first_slot(block) + reader.block(block).pages;
    match error {
        Error::Page { slot, .. } => (*slot, end_of(reader.block_of(*slot))),
        Error::Pack(PackError::Block { block, .. }) => (reader.first_slot(*block), end_of(*block)),
        _ => (0, u32::MAX),
    }
}

/// Whether a checkpoint's pages lie in damaged slots; yes where its image cannot tell.
fn touches(job: &OpenJob, manifest: &Manifest, id: SegmentId, places: &[(u32, u32)]) -> bool {
    manifest.images.iter().any(|image| match read_image(&*job.store, manifest, image.rank) {
        Ok(image) => image_touches(&image, id, places),
        Err(_) => true,
    })
}

fn image_touches(image: &Image, id: SegmentId, places: &[(u32, u32)]) -> bool {
    image.regions.iter().flat_map(|region| &region.runs).any(|run| match *run {
        Run::Stored { pages, segment, slot } => {
            image.segments.get(segment as usize).is_some_and(|segment| segment.id == id)
                && places.iter().any(|(from, to)| slot < *to && slot.saturating_add(pages) > *from)
        }
        Run::Zero { .. } => false,
    })
}

/// Checks a checkpoint's images, and that their references lead to the pages captured.
fn images(job: &OpenJob, manifest: &Manifest, checked: &mut Checked) {
    let version = BTreeSet::from([manifest.version]);
    for wanted in &manifest.images {
        let object = name::image(manifest.version, manifest.attempt, wanted.rank);
        let image = match read_image(&*job.store, manifest, wanted.rank) {
            Ok(image) => image,
            Err(error) => {
                checked.findings.push(Finding::new(object, error, version.clone()));
                continue;
            }
        };
        let unknown = image.segments.iter().any(|segment| !manifest.segments.contains(segment));
        if unknown {
            let error = Unreadable::Mismatch {
                object: object.clone(),
                why: "it needs segments that its manifest does not name",
            };
            checked.findings.push(Finding::new(object.clone(), error, version.clone()));
        }
        if let Err(error) = Rebuild::open(&*job.store, &job.header, image, 1) {
            // A damaged segment has its own finding already.
            let object = segment_of(&error).unwrap_or(object);
            if checked.findings.iter().all(|finding| finding.object != object)
                && !is_missing_segment(&error, checked)
            {
                checked.findings.push(Finding::new(object, error, version.clone()));
            }
        }
    }
}

/// A segment that is not there was found so before, by its name.
fn is_missing_segment(error: &Error, checked: &Checked) -> bool {
    matches!(error, Error::Pack(PackError::Store(_)))
        && checked.findings.iter().any(|finding| finding.object.starts_with(name::SEGMENTS))
}
