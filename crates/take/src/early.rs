//! How much of its memory a program has written to before its state was read.
//!
//! Data: copies of a state, and memory as it is now -> the share of pages that differ. It tells what
//! it would have cost to protect that memory instead of copying it.
//!
//! Why through the kernel's file: memory that was copied may be gone by now.

use std::fs::File;
use std::os::unix::fs::FileExt;

use standfast_capture::{Regions, Snapshot};

/// This process's memory, as a file.
const MEMORY: &str = "/proc/self/mem";
/// So many pages of a region are compared.
const SAMPLES: usize = 256;
const SAMPLE_BYTES: usize = 4096;

/// The share of sampled pages, of regions that were copied whole, that are not what they were;
/// `None`: there are none, or memory cannot be read.
pub(crate) fn share(regions: &Regions, snapshot: &Snapshot) -> Option<f64> {
    let memory = File::open(MEMORY).ok()?;
    let (mut written, mut all) = (0.0, 0.0);
    for (at, region) in regions.iter().enumerate() {
        let Some((copy, true)) = snapshot.copied(at) else { continue };
        let step = (copy.len() / SAMPLES).max(SAMPLE_BYTES);
        let mut now = [0; SAMPLE_BYTES];
        let samples = (0..copy.len().saturating_sub(SAMPLE_BYTES)).step_by(step);
        let differs = |place: &usize| {
            let address = (region.span().start + place) as u64;
            let read = memory.read_exact_at(&mut now, address);
            read.is_err() || now != copy[*place..][..SAMPLE_BYTES]
        };
        let count = samples.len().max(1) as f64;
        written += samples.filter(differs).count() as f64 / count * copy.len() as f64;
        all += copy.len() as f64;
    }
    (all > 0.0).then(|| written / all)
}
