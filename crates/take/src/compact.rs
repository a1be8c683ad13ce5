//! Compaction: pages of segments that are mostly empty are stored again by the next checkpoint.
//!
//! ```text
//! every rank   which slots of which segments do its pages need?  -> the rank that wrote the segment
//! that rank    adds up, chooses (standfast_checkpoint::compact)  -> all ranks
//! every rank   forgets those segments; its pages in them count as changed
//! ```
//! Where checkpoints are kept for ever nothing is retired: old segments stay needed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use standfast_checkpoint::compact::{self, Use};
use standfast_checkpoint::failpoint;
use standfast_comm::{Collective, Lost, Step};
use standfast_format::SegmentId;
use standfast_restart::Inventory;

use crate::remembered::Remembered;

/// Checkpoints between two looks, where neither files nor figures say that it is due: figures do not
/// tell how many of the pages are equal.
const LOOK_EVERY: u32 = 8;
/// Checkpoints that are left alone after a look that has found nothing.
const REST: u32 = 4;

/// When all ranks looked last, in checkpoints.
#[derive(Default, Clone, Copy)]
pub(crate) struct Compaction {
    since_look: u32,
    /// So many are left alone after it.
    rests: u32,
}

/// The slots of a segment that a rank's pages need, a bit each.
#[derive(Serialize, Deserialize)]
struct Needed {
    segment: SegmentId,
    slots: Vec<u64>,
}

impl Needed {
    fn add(&mut self, slot: u32) {
        let word = slot as usize / 64;
        if self.slots.len() <= word {
            self.slots.resize(word + 1, 0);
        }
        self.slots[word] |= 1 << (slot % 64);
    }
}

/// Whether this rank's segments, or the figures of the newest checkpoint, ask for a look.
fn is_due(memory: &Remembered, inventory: &Inventory, team: &Collective) -> bool {
    let Some(newest) = inventory.checkpoints.first() else { return false };
    let own = newest.segments.iter().filter(|segment| is_at(segment.rank.0, team)).count();
    let slots = newest.segments.iter().map(|segment| u64::from(segment.slots)).sum();
    let needed = newest.stats.old_pages + newest.stats.new_pages;
    let Compaction { since_look, rests } = memory.compaction;
    since_look > rests && (since_look >= LOOK_EVERY || compact::is_due(own, slots, needed))
}

/// Whether this rank decides on the segments of another one, or its own.
fn is_at(writer: u32, team: &Collective) -> bool {
    writer as usize % team.size() == team.rank().0 as usize
}

/// What this rank needs, by the rank that decides; `None` where that is not known now.
fn needed(memory: &Remembered, ranks: usize) -> Vec<Option<Vec<Needed>>> {
    let Some(all) = memory.needed() else { return (0..ranks).map(|_| None).collect() };
    let mut parts: Vec<Option<Vec<Needed>>> = (0..ranks).map(|_| Some(Vec::new())).collect();
    for one in all {
        let Some(segment) = memory.ledger.references.get(&one.segment) else { continue };
        parts[segment.rank.0 as usize % ranks].as_mut().expect("made above").push(one);
    }
    parts
}

/// Adds up what all ranks need of the segments that this one decides on. Where a rank does not
/// know, none is retired.
fn choose(memory: &Remembered, told: Vec<Option<Vec<Needed>>>) -> Vec<SegmentId> {
    let Some(told) = told.into_iter().collect::<Option<Vec<_>>>() else { return Vec::new() };
    let mut all: BTreeMap<SegmentId, Vec<u64>> = BTreeMap::new();
    for Needed { segment, slots } in told.into_iter().flatten() {
        let sum = all.entry(segment).or_default();
        sum.resize(sum.len().max(slots.len()), 0);
        sum.iter_mut().zip(slots).for_each(|(sum, slots)| *sum |= slots);
    }
    let uses: Vec<Use> = all
        .into_iter()
        .filter_map(|(id, slots)| {
            let needed = slots.iter().map(|word| word.count_ones()).sum();
            Some(Use { id, slots: memory.ledger.references.get(&id)?.slots, needed })
        })
        .collect();
    compact::retire(&uses)
}

impl Remembered {
    /// Chooses segments whose pages this checkpoint stores again, and forgets them. Collective.
    pub fn compact(&mut self, inventory: &Inventory, team: &Collective) -> Result<(), Lost> {
        let settings = &self.env.settings;
        if settings.keeps_all || !settings.compare.back {
            return Ok(());
        }
        self.compaction.since_look += 1;
        let due = is_due(self, inventory, team);
        let [left_alone] = *team.all_hold(Step("compact: due"), [!due])?;
        if left_alone {
            return Ok(());
        }
        let told = team.exchange(Step("compact: needed"), &needed(self, team.size()))?;
        let own = choose(self, told);
        let retired = team.collect(Step("compact: retired"), own)?.map(|all| all.concat());
        let rests = if retired.is_empty() { REST } else { 0 };
        self.compaction = Compaction { since_look: 0, rests };
        self.retire(&retired);
        Ok(())
    }

    /// The slots that this rank's pages need, by segment.
    fn needed(&self) -> Option<Vec<Needed>> {
        let refs = self.ledger.known_refs()?;
        // By number of the catalog: where the slots of the segment go, and the first one's number.
        let mut places: Vec<Option<(usize, u32)>> = Vec::new();
        let mut at: BTreeMap<SegmentId, usize> = BTreeMap::new();
        let mut all: Vec<Needed> = Vec::new();
        for (number, slot) in refs.filter_map(|place| place.stored()) {
            if places.len() <= number as usize {
                places.resize(number as usize + 1, None);
            }
            let (place, first) = *places[number as usize].get_or_insert_with(|| {
                let id = self.ledger.catalog.segment_id(number);
                let (segment, first) = self.writer.agent.placed(id);
                let place = *at.entry(segment).or_insert_with(|| {
                    all.push(Needed { segment, slots: Vec::new() });
                    all.len() - 1
                });
                (place, first)
            });
            all[place].add(first + slot);
        }
        Some(all)
    }

    /// Stores the pages of these segments again, and refers to them no more. Every rank names the
    /// same ones.
    fn retire(&mut self, segments: &[SegmentId]) {
        if segments.is_empty() {
            return;
        }
        let segments = self.writer.agent.with_streams(segments);
        self.place.forget(&segments);
        let gone: BTreeSet<SegmentId> = segments.into_iter().collect();
        self.ledger.retire(&gone, &mut self.tracks);
        failpoint::pass("compact.retired");
    }
}
