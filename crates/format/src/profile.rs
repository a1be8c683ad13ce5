//! The write profile: how a rank's bytes went out, by the size of the writes.
//!
//! Data: the write path counts each write into its size class -> [`Tally`] -> manifest ->
//! `standfast show --writes`.
//!
//! Two sides are kept. *Pieces* are what the write path was handed (blocks, indexes, the image),
//! *writes* are what went to the medium. The first says what a program's checkpoints are made of,
//! the second what became of it by aggregation.
//!
//! Invariants:
//! - Bounds of classes are part of the format: class *n* is sizes below `WRITE_BOUNDS[n]` that are
//!   not in a smaller one; the last class has no bound.

use crate::id::Rank;

/// Upper bounds of the size classes, exclusive; a last class without bound follows.
pub const WRITE_BOUNDS: [u64; 9] =
    [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20];

/// How many size classes there are.
pub const WRITE_CLASSES: usize = WRITE_BOUNDS.len() + 1;

/// The writes of one size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WriteCount {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time they took, in nanoseconds. Writes that overlap count each.
    pub ns: u64,
}

impl WriteCount {
    fn join(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// Writes by size class: pairs of class and count, empty classes left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tally(Vec<(u8, WriteCount)>);

impl Tally {
    /// The class of a write of this size.
    pub fn class_of(bytes: u64) -> usize {
        WRITE_BOUNDS.partition_point(|bound| *bound <= bytes)
    }

    /// Counts one write.
    pub fn add(&mut self, bytes: u64, ns: u64) {
        self.join_class(Self::class_of(bytes) as u8, WriteCount { count: 1, bytes, ns });
    }

    /// Adds the writes of another tally.
    pub fn join(&mut self, other: &Self) {
        other.0.iter().for_each(|(class, count)| self.join_class(*class, *count));
    }

    fn join_class(&mut self, class: u8, count: WriteCount) {
        match self.0.iter_mut().find(|(own, _)| *own == class) {
            Some((_, own)) => own.join(count),
            None => self.0.push((class, count)),
        }
    }

    /// Every class, empty ones too, smallest sizes first. Classes that this build does not know,
    /// from stored bytes, are left out.
    pub fn classes(&self) -> [WriteCount; WRITE_CLASSES] {
        let mut classes = [WriteCount::default(); WRITE_CLASSES];
        for (class, count) in &self.0 {
            if let Some(place) = classes.get_mut(usize::from(*class)) {
                place.join(*count);
            }
        }
        classes
    }

    /// All classes together.
    pub fn total(&self) -> WriteCount {
        let mut total = WriteCount::default();
        self.classes().iter().for_each(|class| total.join(*class));
        total
    }
}

/// How one rank's part of a checkpoint was written.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Writes {
    /// The rank.
    pub rank: Rank,
    /// What the write path was handed.
    pub pieces: Tally,
    /// What went to the medium.
    pub writes: Tally,
}

impl Writes {
    /// Nothing yet, of this rank.
    pub fn of(rank: Rank) -> Self {
        Self { rank, pieces: Tally::default(), writes: Tally::default() }
    }
}

#[cfg(test)]
mod tests;
