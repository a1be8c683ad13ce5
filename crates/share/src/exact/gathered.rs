//! What a home has gathered: the hashes of its part from all ranks, and what it makes of them.
//!
//! Data: one message of hashes from each rank -> groups, of which some are known from earlier
//! checkpoints and some have several holders -> owners -> answers, and what to expect in the end.

use standfast_comm::{Comm, Result};

use super::answer;
use super::group::{Group, Groups, Shared};
use super::index::{HomeIndex, Known};
use super::owners::{Choices, Survey};

/// The hashes of one home.
pub(super) struct Gathered {
    received: Vec<Vec<u8>>,
    hash_bytes: usize,
    groups: Groups,
    /// Of each group, its place in an earlier checkpoint; empty where nothing can be known.
    known: Vec<Option<Known>>,
    /// New pages of several holders.
    shared: Shared,
}

impl Gathered {
    /// Groups what `rank` received.
    pub(super) fn group(
        received: Vec<Vec<u8>>,
        hash_bytes: usize,
        rank: usize,
        index: Option<&HomeIndex>,
    ) -> Result<Self> {
        let groups = Groups::find(&received, hash_bytes, rank)?;
        let index = index.filter(|index| index.pages() > 0);
        let known: Vec<Option<Known>> = index.map_or_else(Vec::new, |index| {
            let find = |group: &Group| {
                let at = group.position as usize * hash_bytes;
                index.find(&received[group.source as usize][at..][..hash_bytes])
            };
            groups.groups.iter().map(find).collect()
        });
        let shared = Shared::collect(&groups, |group| !is_known(&known, group));
        Ok(Self { received, hash_bytes, groups, known, shared })
    }

    /// Adds up what all homes know, and names an owner for each shared page. Collective.
    pub(super) fn choose_owners(&self, comm: &dyn Comm) -> Result<(Survey, Vec<u32>)> {
        let known = self.known.iter().flatten().count() as u64;
        let choices = Choices::sort(&self.shared, comm.size());
        let whole = choices.survey(comm.rank(), self.forced(), known).add_up(comm)?;
        let owners = match whole.shared_pages() {
            0 => Vec::new(),
            _ => choices.owners(comm, &whole)?,
        };
        Ok((whole, owners))
    }

    /// What each rank is told of its hashes.
    pub(super) fn answers(&self, owners: &[u32], index: Option<&HomeIndex>) -> Vec<Vec<u8>> {
        let known = index.filter(|_| !self.known.is_empty()).map(|index| (index, &self.known[..]));
        answer::write(&self.groups, &self.shared, owners, known)
    }

    /// The hashes that each rank stores, in the order in which it sent them.
    pub(super) fn stored(&self, owners: &[u32]) -> Vec<Vec<u8>> {
        let sources = 0..self.groups.sources();
        let mut stores: Vec<Vec<bool>> =
            sources.map(|source| vec![true; self.groups.of(source).len()]).collect();
        for (members, owner) in self.shared.iter().zip(owners) {
            for member in members.iter().filter(|member| member.rank != *owner) {
                stores[member.rank as usize][member.position as usize] = false;
            }
        }
        let hashes = |(source, stores): (usize, Vec<bool>)| {
            let groups = self.groups.of(source).iter().zip(stores);
            let stored = groups.map(|(group, stores)| stores && !is_known(&self.known, *group));
            let hashes = self.received[source].chunks_exact(self.hash_bytes).zip(stored);
            hashes.filter(|(_, stored)| *stored).flat_map(|(hash, _)| hash).copied().collect()
        };
        stores.into_iter().enumerate().map(hashes).collect()
    }

    /// New pages that each rank alone holds.
    fn forced(&self) -> Vec<u64> {
        let mut forced = vec![0; self.groups.sources()];
        for (number, group) in (0u32..).zip(&self.groups.groups) {
            if group.holders == 1 && !is_known(&self.known, number) {
                forced[group.source as usize] += 1;
            }
        }
        forced
    }
}

fn is_known(known: &[Option<Known>], group: u32) -> bool {
    known.get(group as usize).is_some_and(Option::is_some)
}
