//! Who has which unit of the pool: pure bookkeeping, so that fairness and hostile numbers are
//! tested without processes.
//!
//! ```text
//! free --grant--> rank --hand over--> agent --written--> free
//!                   \--return, death----------------------^
//! ```
//! Ranks ask when they need units and are granted them in turn, one each per turn, up to what they
//! asked for; no rank has a fixed share. A pool that ran empty refills a little first: woken for
//! every single unit, ranks and writer would change places at every block.
//!
//! A rank gets units that it has had before as long as some are free: they are mapped in its process
//! already. Then others' that are free, and only then such as nobody has touched, which cost memory.
//!
//! Invariants:
//! - A unit is free, with one rank, or with the agent.
//! - A rank that waits has not been granted anything since it asked.

use std::collections::{BTreeMap, VecDeque};

/// A pool that ran empty grants again when one unit of so many is free.
const REFILL_SHARE: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Free,
    Rank(u32),
    /// The agent, which got it from this rank.
    Agent(u32),
}

/// The lease table of one pool.
#[derive(Debug)]
pub(crate) struct Leases {
    holders: Vec<Holder>,
    free: Free,
    waiting: VecDeque<(u32, u32)>,
    ran_empty: bool,
}

/// Units that nobody holds.
#[derive(Debug)]
struct Free {
    /// By the rank that had them last. The one given back last is granted first: it is still in the
    /// caches.
    had: BTreeMap<u32, Vec<u32>>,
    /// Nobody has had these.
    fresh: Vec<u32>,
    count: usize,
}

impl Free {
    fn all(units: usize) -> Self {
        Self { had: BTreeMap::new(), fresh: (0..units as u32).rev().collect(), count: units }
    }

    /// A unit for a rank.
    fn take(&mut self, rank: u32) -> Option<u32> {
        let own = self.had.get_mut(&rank).and_then(Vec::pop);
        let taken = own.or_else(|| self.most()?.pop()).or_else(|| self.fresh.pop())?;
        self.count -= 1;
        Some(taken)
    }

    /// Those of the rank that misses one least.
    fn most(&mut self) -> Option<&mut Vec<u32>> {
        self.had.values_mut().max_by_key(|units| units.len())
    }

    fn put(&mut self, rank: u32, unit: u32) {
        self.had.entry(rank).or_default().push(unit);
        self.count += 1;
    }
}

/// Units granted to a rank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) rank: u32,
    pub(crate) units: Vec<u32>,
}

impl Leases {
    pub(crate) fn new(units: usize) -> Self {
        Self {
            holders: vec![Holder::Free; units],
            free: Free::all(units),
            waiting: VecDeque::new(),
            ran_empty: false,
        }
    }

    pub(crate) fn free(&self) -> usize {
        self.free.count
    }

    pub(crate) fn leased(&self) -> usize {
        self.holders.iter().filter(|holder| matches!(holder, Holder::Rank(_))).count()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A rank wants up to so many units. It asks once at a time.
    pub(crate) fn ask(&mut self, rank: u32, count: u32) -> Result<(), &'static str> {
        if count == 0 || self.waiting.iter().any(|(other, _)| *other == rank) {
            return Err("it asks for units out of turn");
        }
        self.waiting.push_back((rank, count));
        Ok(())
    }

    /// Grants what there is to those who wait.
    pub(crate) fn grant(&mut self) -> Vec<Grant> {
        let refill = (self.holders.len() / REFILL_SHARE).max(1);
        if self.waiting.is_empty() || (self.ran_empty && self.free() < refill) {
            return Vec::new();
        }
        let mut grants: Vec<Grant> = Vec::new();
        let mut wants: VecDeque<(usize, u32)> = VecDeque::new();
        while let Some((rank, count)) = self.waiting.pop_front() {
            if self.free() <= grants.len() {
                self.waiting.push_front((rank, count));
                break;
            }
            wants.push_back((grants.len(), count));
            grants.push(Grant { rank, units: Vec::new() });
        }
        while let Some((at, count)) = wants.pop_front() {
            let rank = grants[at].rank;
            let Some(unit) = self.free.take(rank) else { break };
            self.holders[unit as usize] = Holder::Rank(rank);
            grants[at].units.push(unit);
            if count > 1 {
                wants.push_back((at, count - 1));
            }
        }
        self.ran_empty = self.free() == 0;
        grants
    }

    /// A rank hands a filled unit to the agent.
    pub(crate) fn hand_over(&mut self, rank: u32, unit: u32) -> Result<(), &'static str> {
        self.expect(unit, Holder::Rank(rank))?;
        self.holders[unit as usize] = Holder::Agent(rank);
        Ok(())
    }

    /// The agent is done with a unit.
    pub(crate) fn written(&mut self, unit: u32) {
        let Holder::Agent(rank) = self.holders[unit as usize] else {
            panic!("a unit is given back once");
        };
        self.set_free(rank, unit);
    }

    /// A rank does not need a unit any more.
    pub(crate) fn give_back(&mut self, rank: u32, unit: u32) -> Result<(), &'static str> {
        self.expect(unit, Holder::Rank(rank))?;
        self.set_free(rank, unit);
        Ok(())
    }

    /// A rank is gone: what it had comes back, and it waits no more.
    pub(crate) fn rank_gone(&mut self, rank: u32) {
        self.waiting.retain(|(other, _)| *other != rank);
        for unit in 0..self.holders.len() as u32 {
            if self.holders[unit as usize] == Holder::Rank(rank) {
                self.set_free(rank, unit);
            }
        }
    }

    fn expect(&self, unit: u32, holder: Holder) -> Result<(), &'static str> {
        match self.holders.get(unit as usize) {
            Some(found) if *found == holder => Ok(()),
            Some(_) => Err("it names a unit that it does not have"),
            None => Err("it names a unit that does not exist"),
        }
    }

    fn set_free(&mut self, rank: u32, unit: u32) {
        self.holders[unit as usize] = Holder::Free;
        self.free.put(rank, unit);
    }
}

#[cfg(test)]
mod tests;
