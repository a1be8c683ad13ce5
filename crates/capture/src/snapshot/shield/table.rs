//! The table of a shield: which parts of its ranges are still to be read. Bookkeeping only.
//!
//! A range is cut into granules on a grid of addresses. A granule is *pending* until the reader
//! gives it up or a writer comes, whose granule is then copied.
//!
//! Invariants:
//! - A slot of the pool belongs to one granule or to the free ones.

use std::ops::Range;
use std::time::Instant;

use super::Held;

/// What one writer makes free at a time.
pub(super) const GRANULE: usize = 64 << 10;
/// A huge page. What is released in whole blocks stays mapped by huge pages.
pub(super) const BLOCK: usize = 2 << 20;

#[derive(Default)]
pub(super) struct Table {
    pub(super) ranges: Vec<Shielded>,
    /// Places in the pool.
    pub(super) free: Vec<usize>,
    /// How many places there are in all.
    pub(super) slots: usize,
    /// Granules whose writers wait for a slot: range and number, and since when.
    pub(super) waiting: Vec<((usize, usize), Instant)>,
    /// Stretches that are still to be released.
    pub(super) unreleased: Vec<Range<usize>>,
    /// Memory was given back or mapped anew before it was read.
    pub(super) lost: bool,
    /// What writers were held up.
    pub(super) held: Held,
}

pub(super) struct Shielded {
    pub(super) range: Range<usize>,
    pub(super) granules: Vec<State>,
    /// Granules before this one were given up by the reader.
    given_up: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    /// At this place of the pool.
    Copied(usize),
    /// Nobody needs it any more.
    Over,
}

impl Table {
    /// Everything pending; copies may use the places from `first` to `last`.
    pub(super) fn new(ranges: &[Range<usize>], places: impl Iterator<Item = usize>) -> Self {
        let free: Vec<usize> = places.collect();
        Self {
            ranges: ranges.iter().cloned().map(Shielded::new).collect(),
            slots: free.len(),
            free,
            ..Self::default()
        }
    }

    /// The range and the granule of an address.
    pub(super) fn find(&self, address: usize) -> Option<(usize, usize)> {
        let at = self.ranges.iter().position(|shielded| shielded.range.contains(&address))?;
        Some((at, self.ranges[at].number(address)))
    }

    /// Marks granules of a range as over, frees their slots, and returns the addresses to release.
    pub(super) fn end(&mut self, range: usize, granules: Range<usize>) -> Range<usize> {
        let shielded = &mut self.ranges[range];
        let stretch =
            shielded.granule(granules.start).start..shielded.granule(granules.end - 1).end;
        for state in &mut shielded.granules[granules] {
            if let State::Copied(place) = std::mem::replace(state, State::Over) {
                self.free.push(place);
            }
        }
        stretch
    }

    /// The granules that the reader gives up when it has come to an address: whole blocks, unless
    /// that is the end.
    pub(super) fn passed(&mut self, range: usize, before: usize) -> Option<Range<usize>> {
        let shielded = &mut self.ranges[range];
        let done = match before >= shielded.range.end {
            true => shielded.granules.len(),
            false => shielded.number((before / BLOCK * BLOCK).max(shielded.range.start)),
        };
        let fresh = shielded.given_up..done;
        (!fresh.is_empty()).then(|| {
            shielded.given_up = done;
            fresh
        })
    }

    /// The granules of the block around one.
    pub(super) fn block(&self, range: usize, number: usize) -> Range<usize> {
        let shielded = &self.ranges[range];
        let start = shielded.granule(number).start / BLOCK * BLOCK;
        let first = shielded.number(start.max(shielded.range.start));
        let last = shielded.number((start + BLOCK).min(shielded.range.end) - 1);
        first..last + 1
    }

    /// Memory was given back: what was pending there is lost.
    pub(super) fn removed(&mut self, gone: &Range<usize>) {
        let lost = self.ranges.iter().any(|shielded| {
            let part = gone.start.max(shielded.range.start)..gone.end.min(shielded.range.end);
            !part.is_empty()
                && shielded.granules[shielded.number(part.start)..=shielded.number(part.end - 1)]
                    .contains(&State::Pending)
        });
        self.lost |= lost;
    }
}

impl Shielded {
    fn new(range: Range<usize>) -> Self {
        let grid = range.start / GRANULE * GRANULE;
        let granules = vec![State::Pending; (range.end - grid).div_ceil(GRANULE)];
        Self { range, granules, given_up: 0 }
    }

    /// The granule of an address of the range.
    pub(super) fn number(&self, address: usize) -> usize {
        address / GRANULE - self.range.start / GRANULE
    }

    /// The addresses of a granule.
    pub(super) fn granule(&self, number: usize) -> Range<usize> {
        let start = (self.range.start / GRANULE + number) * GRANULE;
        start.max(self.range.start)..(start + GRANULE).min(self.range.end)
    }
}

#[cfg(test)]
mod tests;
