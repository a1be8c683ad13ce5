//! In which slot each message of a plan travels.
//!
//! A recovery may find its pieces anywhere, so there is no formula as for encoding. Every rank
//! colours all messages in the same order with the first slot that is free at both ends; it needs
//! less than twice as many slots as the busiest rank has messages.

use std::collections::BTreeMap;

use super::Plan;

/// Slots that are taken, as bits.
#[derive(Default)]
struct Taken(Vec<u64>);

impl Taken {
    fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }

    fn set(&mut self, slot: u32) {
        let word = slot as usize / 64;
        self.0.resize(self.0.len().max(word + 1), 0);
        self.0[word] |= 1 << (slot % 64);
    }
}

fn first_free(one: &Taken, other: &Taken) -> u32 {
    let full = |word: &usize| one.word(*word) | other.word(*word) == u64::MAX;
    let word = (0..).find(|word| !full(word)).expect("slots do not end");
    word as u32 * 64 + (one.word(word) | other.word(word)).trailing_ones()
}

/// The slots of every group's messages: target by target, all sources of each.
pub(super) fn slots(plan: &Plan) -> Vec<Vec<u32>> {
    let mut sending: BTreeMap<usize, Taken> = BTreeMap::new();
    let mut receiving: BTreeMap<usize, Taken> = BTreeMap::new();
    let mut all = Vec::with_capacity(plan.groups.len());
    for group in &plan.groups {
        let (sources, targets) = (group.sources.len(), group.targets.len());
        let mut slots = vec![0; sources * targets];
        // Along diagonals: neighbours in this order share neither end.
        for (step, target) in (0..sources).flat_map(|step| (0..targets).map(move |t| (step, t))) {
            let source = (target + step) % sources;
            let (from, to) = (group.sources[source].rank, group.targets[target].rank);
            let (Some(from), Some(to)) = (from, to) else { continue };
            let (leaves, arrives) =
                (sending.entry(from).or_default(), receiving.entry(to).or_default());
            let slot = first_free(leaves, arrives);
            leaves.set(slot);
            arrives.set(slot);
            slots[target * sources + source] = slot;
        }
        all.push(slots);
    }
    all
}
