//! Compaction: which segments are worth storing again, so that a store of many checkpoints stays small.
//!
//! ```text
//! newest checkpoint: how many pages of each segment does it need?
//! few of many -> the next checkpoint stores those pages again, and refers to the segment no more
//! once no kept checkpoint refers to it -> prune removes it
//! ```
//! Nothing is rewritten in place: a checkpoint that stores some pages again is a checkpoint like any
//! other, so a crash at any instant leaves what a crash of any checkpoint leaves.
//!
//! Why these bounds: pages of random changes leave holes everywhere. With an eighth of the slots as
//! holes, a checkpoint stores about four times its changed pages beside them, and with eight
//! checkpoints kept the store stays below 1.3 times the pages that are needed.

use standfast_format::SegmentId;

/// Compaction begins when slots outnumber needed pages by this, and ends at the lower one.
const SLOTS_PER_PAGE: (f64, f64) = (1.12, 1.10);
/// It also begins with more segments than this, and ends at the lower number.
const SEGMENTS: (usize, usize) = (44, 36);
/// One page of so many is stored again in one checkpoint, but for the segment that goes beyond.
const STEP_SHARE: u64 = 32;

/// How a segment is used by the newest checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Which one.
    pub id: SegmentId,
    /// Pages it has.
    pub slots: u32,
    /// Pages of it that are needed.
    pub needed: u32,
}

/// Whether so many segments, with so many slots for these needed pages, are too many.
pub fn is_due(segments: usize, slots: u64, needed: u64) -> bool {
    segments > SEGMENTS.0 || exceeds(slots, needed, SLOTS_PER_PAGE.0)
}

/// The segments whose needed pages the next checkpoint stores again.
pub fn retire(segments: &[Use]) -> Vec<SegmentId> {
    let mut used: Vec<Use> = segments.iter().copied().filter(|used| used.needed > 0).collect();
    let needed: u64 = used.iter().map(|used| u64::from(used.needed)).sum();
    let mut slots: u64 = used.iter().map(|used| u64::from(used.slots)).sum();
    let mut step = Step { left: needed / STEP_SHARE, retired: Vec::new() };
    if exceeds(slots, needed, SLOTS_PER_PAGE.0) {
        used.sort_by(|a, b| share(a).total_cmp(&share(b)));
        for one in &used {
            if !exceeds(slots, needed, SLOTS_PER_PAGE.1) || !step.take(one, 1) {
                break;
            }
            slots -= u64::from(one.slots - one.needed.min(one.slots));
        }
    }
    used.retain(|one| !step.retired.contains(&one.id));
    if used.len() > SEGMENTS.0 {
        used.sort_by_key(|one| one.needed);
        let beyond = used.len() - SEGMENTS.1;
        // One alone would be as many segments as before.
        used.iter().take(beyond).all(|one| step.take(one, 2));
    }
    step.retired
}

/// What one checkpoint may store again.
struct Step {
    left: u64,
    retired: Vec<SegmentId>,
}

impl Step {
    /// Whether there was room for one more; the first `least` go in any case.
    fn take(&mut self, one: &Use, least: usize) -> bool {
        let needed = u64::from(one.needed);
        if needed > self.left && self.retired.len() >= least {
            return false;
        }
        self.left = self.left.saturating_sub(needed);
        self.retired.push(one.id);
        true
    }
}

fn exceeds(slots: u64, needed: u64, bound: f64) -> bool {
    slots as f64 > needed as f64 * bound
}

fn share(used: &Use) -> f64 {
    f64::from(used.needed) / f64::from(used.slots.max(1))
}

#[cfg(test)]
mod tests;
