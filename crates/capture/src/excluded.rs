//! Memory that no checkpoint holds: what the program has excluded, and what it keeps out of core dumps
//! (`MADV_DONTDUMP`).
//!
//! Excluding goes by bytes, not by pages: of a page that is excluded in part, the other bytes are stored
//! with zeros between them.

use std::ops::Range;

use crate::tracker::Span;

/// Stretches of memory, by address.
///
/// Invariant: ascending, not empty, and none touches the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excluded(Vec<Range<usize>>);

impl Excluded {
    /// Adds some bytes.
    pub fn add(&mut self, start: usize, bytes: usize) {
        let mut new = start..start.saturating_add(bytes);
        if new.is_empty() {
            return;
        }
        self.0.retain(|old| {
            let meets = old.start <= new.end && new.start <= old.end;
            if meets {
                new = old.start.min(new.start)..old.end.max(new.end);
            }
            !meets
        });
        let at = self.0.partition_point(|old| old.start < new.start);
        self.0.insert(at, new);
    }

    /// Adds those of another.
    pub fn join(&mut self, other: &Excluded) {
        other.0.iter().for_each(|range| self.add(range.start, range.len()));
    }

    /// Takes some bytes out again.
    pub fn remove(&mut self, start: usize, bytes: usize) {
        let gone = start..start.saturating_add(bytes);
        if gone.is_empty() {
            return;
        }
        let left = self.0.iter().flat_map(|old| {
            let before = old.start..old.end.min(gone.start).max(old.start);
            let behind = old.start.max(gone.end).min(old.end)..old.end;
            [before, behind]
        });
        self.0 = left.filter(|range| !range.is_empty()).collect();
    }

    /// What lies within some memory, counted from its start.
    pub fn within(&self, span: Span) -> Excluded {
        let end = span.start + span.bytes;
        let inside = self.0.iter().map(|range| range.start.max(span.start)..range.end.min(end));
        let inside = inside.filter(|range| !range.is_empty());
        Self(inside.map(|range| range.start - span.start..range.end - span.start).collect())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Overwrites with zeros what is excluded of some bytes that were read from this place on.
    pub fn blank(&self, from: usize, bytes: &mut [u8]) {
        for part in self.overlapping(from, bytes.len()) {
            bytes[part].fill(0);
        }
    }

    /// The parts of so many bytes, from this place on, that are not excluded.
    pub fn others(&self, from: usize, bytes: usize) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        let ends = self.overlapping(from, bytes).chain(std::iter::once(bytes..bytes));
        let between = ends.map(move |part| std::mem::replace(&mut at, part.end)..part.start);
        between.filter(|range| !range.is_empty())
    }

    fn overlapping(&self, from: usize, bytes: usize) -> impl Iterator<Item = Range<usize>> {
        let to = from.saturating_add(bytes);
        let first = self.0.partition_point(|range| range.end <= from);
        let found = self.0[first..].iter().take_while(move |range| range.start < to);
        found.map(move |range| range.start.max(from) - from..range.end.min(to) - from)
    }
}

/// The mappings of this process that are kept out of core dumps, as the kernel lists them.
pub(crate) fn undumped() -> Excluded {
    let smaps = std::fs::read("/proc/self/smaps").unwrap_or_default();
    let mut found = Excluded::default();
    parse(&String::from_utf8_lossy(&smaps)).for_each(|range| found.add(range.start, range.len()));
    found
}

/// Mappings begin with their addresses; `VmFlags` ends what is told of each.
fn parse(smaps: &str) -> impl Iterator<Item = Range<usize>> {
    let mut mapping = 0..0;
    smaps.lines().filter_map(move |line| {
        let mut words = line.split_ascii_whitespace();
        let first = words.next()?;
        if first == "VmFlags:" {
            return words.any(|flag| flag == "dd").then(|| mapping.clone());
        }
        let (start, end) = first.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        mapping = address(start)?..address(end)?;
        None
    })
}

#[cfg(test)]
mod tests;
