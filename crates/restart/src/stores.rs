//! Which ranks share a store: one that all of them reach, or one for each node.
//!
//! Ranks that find the same identity in their store share it; the first of them leads it.

/// Which rank has which store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreGroups {
    pub(crate) rank: usize,
    /// The store of every rank, numbered in the order of their first ranks.
    pub(crate) of: Vec<usize>,
    /// The first rank of every store.
    pub(crate) leaders: Vec<usize>,
}

impl StoreGroups {
    /// Groups the ranks of a job by the identities of their stores; `rank` is this one.
    pub fn new<T: PartialEq>(rank: usize, identities: &[T]) -> Self {
        let (mut of, mut leaders) = (Vec::new(), Vec::<usize>::new());
        for (rank, own) in identities.iter().enumerate() {
            let known = leaders.iter().position(|leader| identities[*leader] == *own);
            of.push(known.unwrap_or(leaders.len()));
            if known.is_none() {
                leaders.push(rank);
            }
        }
        Self { rank, of, leaders }
    }

    /// Whether all ranks share one store.
    pub fn are_one(&self) -> bool {
        self.leaders.len() == 1
    }

    pub(crate) fn own(&self) -> usize {
        self.of[self.rank]
    }

    /// The first rank of this rank's store.
    pub fn leader(&self) -> usize {
        self.leaders[self.own()]
    }

    /// The ranks that share this rank's store.
    pub fn own_ranks(&self) -> Vec<u32> {
        let own = |(rank, store): (usize, &usize)| (*store == self.own()).then_some(rank as u32);
        self.of.iter().enumerate().filter_map(own).collect()
    }

    /// Whether a rank has the same store as this one.
    pub fn is_here(&self, rank: usize) -> bool {
        self.of.get(rank) == Some(&self.own())
    }

    /// Whether this rank is the first of its store.
    pub fn is_leader(&self) -> bool {
        self.leader() == self.rank
    }

    /// Whether this rank speaks for what another one has written into this rank's store: that rank
    /// itself does where it shares the store, else the leader.
    pub fn answers_for(&self, rank: usize) -> bool {
        match self.of.get(rank) {
            Some(store) if *store == self.own() => rank == self.rank,
            _ => self.is_leader(),
        }
    }

    /// Does something on leaders only.
    pub fn lead<T, E>(&self, run: impl FnOnce() -> Result<T, E>) -> Result<Option<T>, E> {
        if self.is_leader() { run().map(Some) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests;
