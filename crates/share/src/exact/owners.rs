//! Owners: each home names who stores the shared pages of its part of the hashes.
//!
//! Data: shared groups and what every rank must store anyway -> an owner for each group.
//!
//! Homes must not all load the same rank. Where the holder sets of all homes together are few
//! (the common case) every rank gathers them, computes the same division, and each home deals the
//! next stretch of it. Where they are many, each home divides its own: hashes spread pages evenly,
//! so every home sees a true sample, and balancing each sample against its share of the forced
//! load balances the whole.
//!
//! Invariants:
//! - The owner of a page is one of its holders.
//! - All ranks take the same of the two ways: it depends on a sum that all know.

use standfast_comm::collective::{all_gather, all_reduce};
use standfast_comm::{Comm, Error, Result};

use super::super::wire::Reader;
use super::balance::balance;
use super::group::Shared;
use super::holders::Classes;

/// Most bytes of holder sets, over all homes, that every rank gathers.
const GATHERED_BYTES_MAX: u64 = 64 << 10;

/// What a home knows of its part, and then of the whole.
pub(super) struct Survey {
    /// Pages that each rank must store, because it alone holds them.
    pub(super) forced: Vec<u64>,
    /// Shared pages at each home.
    pub(super) shared: Vec<u64>,
    /// Bytes of all homes' holder sets.
    set_bytes: u64,
    /// Pages known from earlier checkpoints.
    pub(super) known: u64,
}

impl Survey {
    /// Adds up what all homes know.
    pub(super) fn add_up(&self, comm: &dyn Comm) -> Result<Self> {
        let ranks = comm.size();
        let refuse = || {
            let why = "a survey has another number of ranks";
            Error::Message { rank: comm.rank(), from: comm.rank(), why }
        };
        let length = 8 * (2 * ranks + 2);
        let sums = all_reduce(comm, self.encode(), |lower, upper| {
            if lower.len() != length || upper.len() != length {
                return Err(refuse());
            }
            let mut all = lower.to_vec();
            let (sums, _) = all.as_chunks_mut::<8>();
            for (sum, other) in sums.iter_mut().zip(upper.as_chunks::<8>().0) {
                let total = u64::from_le_bytes(*sum).saturating_add(u64::from_le_bytes(*other));
                *sum = total.to_le_bytes();
            }
            Ok(all)
        })?;
        if sums.len() != length {
            return Err(refuse());
        }
        let mut numbers = sums.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let forced = numbers.by_ref().take(ranks).collect();
        let shared = numbers.by_ref().take(ranks).collect();
        let mut next = || numbers.next().expect("two more numbers");
        Ok(Self { forced, shared, set_bytes: next(), known: next() })
    }

    fn encode(&self) -> Vec<u8> {
        let numbers = self.forced.iter().chain(&self.shared).chain([&self.set_bytes, &self.known]);
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Shared pages of all homes.
    pub(super) fn shared_pages(&self) -> u64 {
        self.shared.iter().sum()
    }
}

/// The shared groups of a home, by holder set.
pub(super) struct Choices {
    classes: Classes,
    /// Class of each group.
    of: Vec<usize>,
    encoded: Vec<u8>,
}

impl Choices {
    pub(super) fn sort(shared: &Shared, ranks: usize) -> Self {
        let mut classes = Classes::default();
        let mut holders = Vec::new();
        let mut of = Vec::with_capacity(shared.len());
        for members in shared.iter() {
            holders.clear();
            holders.extend(members.iter().map(|member| member.rank));
            of.push(classes.add(&holders, 1));
        }
        let encoded = classes.encode(ranks);
        Self { classes, of, encoded }
    }

    /// What this home contributes to the survey.
    pub(super) fn survey(&self, rank: usize, forced: Vec<u64>, known: u64) -> Survey {
        let mut shared = vec![0; forced.len()];
        shared[rank] = self.of.len() as u64;
        Survey { forced, shared, set_bytes: self.encoded.len() as u64, known }
    }

    /// Names the owner of each group. Collective.
    pub(super) fn owners(&self, comm: &dyn Comm, whole: &Survey) -> Result<Vec<u32>> {
        if whole.set_bytes <= GATHERED_BYTES_MAX {
            self.owners_together(comm, whole)
        } else {
            Ok(self.owners_alone(comm.rank(), whole))
        }
    }

    fn owners_together(&self, comm: &dyn Comm, whole: &Survey) -> Result<Vec<u32>> {
        let (rank, ranks) = (comm.rank(), comm.size());
        let mut all = Classes::default();
        // Which class of all each of this home's is, and how many of it lower homes deal.
        let mut own = Vec::new();
        let mut dealt = Vec::new();
        for (from, sets) in all_gather(comm, &self.encoded)?.iter().enumerate() {
            let added = all.add_encoded(Reader::new(sets, rank, from), ranks)?;
            dealt.resize(all.len(), 0);
            if from < rank {
                added.iter().for_each(|(class, pages)| dealt[*class] += pages);
            } else if from == rank {
                own = added.into_iter().map(|(class, _)| class).collect();
            }
        }
        let loads = whole.forced.iter().map(|pages| *pages as f64).collect();
        let given = balance(loads, &all, 0);
        Ok(deal(&all, given, &dealt, self.of.iter().map(|class| own[*class])))
    }

    fn owners_alone(&self, rank: usize, whole: &Survey) -> Vec<u32> {
        let share = self.of.len() as f64 / whole.shared_pages().max(1) as f64;
        let loads: Vec<f64> = whole.forced.iter().map(|pages| *pages as f64 * share).collect();
        // Where rounding decides, homes go on where the one before has stopped.
        let before: u64 = whole.shared[..rank].iter().sum();
        let first = (before % loads.len() as u64) as usize;
        let given = balance(loads, &self.classes, first);
        deal(&self.classes, given, &vec![0; self.classes.len()], self.of.iter().copied())
    }
}

/// Gives each group an owner: the pages of a class go to its holders one after the other, each as
/// many as it is given, beginning after those that are `dealt` already.
fn deal(
    classes: &Classes,
    mut given: Vec<u64>,
    dealt: &[u64],
    groups: impl Iterator<Item = usize>,
) -> Vec<u32> {
    let mut next: Vec<usize> = (0..classes.len()).map(|class| classes.range(class).start).collect();
    for (class, dealt) in dealt.iter().enumerate() {
        let mut left = *dealt;
        while left > 0 {
            let taken = left.min(given[next[class]]);
            given[next[class]] -= taken;
            left -= taken;
            next[class] += usize::from(left > 0);
        }
    }
    groups
        .map(|class| {
            while given[next[class]] == 0 {
                next[class] += 1;
            }
            given[next[class]] -= 1;
            classes.holders[next[class]]
        })
        .collect()
}
