//! A job's pool at the agent: memory, leases, and the ranks that wait.
//!
//! Data: units come filled from ranks, travel through encoder and store, and come back when dropped;
//! then whoever waits is granted them.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_write::{Lender, Unit};

use super::connection::Outbox;
use crate::error::{Error, Result};
use crate::lease::{Grant, Leases};
use crate::memory::Memory;
use crate::message::Reply;

/// A pool fills up when one unit of so many is free. What ranks have in stock counts as in use.
const FILLED_SHARE: usize = 16;

/// The pool of one job.
pub(super) struct Pool {
    memory: Memory,
    fd: OwnedFd,
    table: Mutex<Table>,
}

struct Table {
    leases: Leases,
    ranks: BTreeMap<u32, Arc<Outbox>>,
    peak: usize,
}

impl Pool {
    pub(super) fn new(units: usize, unit_bytes: usize) -> Result<Arc<Self>> {
        let (memory, fd) = Memory::create(units, unit_bytes)?;
        let leases = Leases::new(units);
        let table = Mutex::new(Table { leases, ranks: BTreeMap::new(), peak: 0 });
        Ok(Arc::new(Self { memory, fd, table }))
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub(super) fn units(&self) -> u32 {
        self.memory.units() as u32
    }

    pub(super) fn unit_bytes(&self) -> u32 {
        self.memory.unit_bytes() as u32
    }

    pub(super) fn joined(&self, rank: u32, outbox: &Arc<Outbox>) {
        self.table().ranks.insert(rank, Arc::clone(outbox));
    }

    pub(super) fn ask(&self, rank: u32, count: u32) -> Result<()> {
        let mut table = self.table();
        // A share of the pool at most: whoever asks first must not make the others wait.
        let most = table.ranks.len().max(1) * 4;
        let count = count.min((self.memory.units() / most).max(1) as u32);
        table.leases.ask(rank, count).map_err(protocol)?;
        self.grant(table);
        Ok(())
    }

    pub(super) fn give_back(&self, rank: u32, units: &[u32]) -> Result<()> {
        let mut table = self.table();
        for unit in units {
            table.leases.give_back(rank, *unit).map_err(protocol)?;
        }
        self.grant(table);
        Ok(())
    }

    /// Fills a unit that a rank has leased, as the rank does through its own mapping.
    #[cfg(feature = "simulation")]
    pub(super) fn fill(&self, unit: u32, bytes: &[u8]) {
        assert!(bytes.len() <= self.memory.unit_bytes(), "it fits");
        // SAFETY: inside of the mapping; the unit is leased, so nobody else looks at it.
        unsafe {
            let start = self.memory.unit(unit).as_ptr();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
        }
    }

    /// A filled unit, which is in the agent's hands from now on.
    pub(super) fn hand_over(self: &Arc<Self>, rank: u32, unit: u32) -> Result<Unit> {
        self.table().leases.hand_over(rank, unit).map_err(protocol)?;
        let (start, lender) = (self.memory.unit(unit), Arc::clone(self) as Arc<dyn Lender>);
        // SAFETY: inside of the mapping, which the pool keeps; the unit was handed over, so its rank
        // writes to it no more, and the table gives it to nobody else until it comes back.
        Ok(unsafe { Unit::new(start, self.memory.unit_bytes(), unit, lender) })
    }

    pub(super) fn rank_gone(&self, rank: u32) {
        let mut table = self.table();
        table.ranks.remove(&rank);
        table.leases.rank_gone(rank);
        self.grant(table);
    }

    /// Whether hardly any units are left to be granted.
    pub(super) fn is_filling_up(&self) -> bool {
        self.table().leases.free() <= self.memory.units() / FILLED_SHARE
    }

    /// Units free, leased, most in use at once, and ranks waiting.
    pub(super) fn figures(&self) -> (u32, u32, u32, u32) {
        let table = self.table();
        let numbers =
            [table.leases.free(), table.leases.leased(), table.peak, table.leases.waiting()];
        let [free, leased, peak, waiting] = numbers.map(|number| number as u32);
        (free, leased, peak, waiting)
    }

    /// Tells ranks what they were granted, without holding the table.
    fn grant(&self, mut table: MutexGuard<'_, Table>) {
        let grants = table.leases.grant();
        table.peak = table.peak.max(self.memory.units() - table.leases.free());
        let told: Vec<(Arc<Outbox>, Grant)> = grants
            .into_iter()
            .filter_map(|grant| Some((Arc::clone(table.ranks.get(&grant.rank)?), grant)))
            .collect();
        drop(table);
        for (outbox, grant) in told {
            // A rank that cannot be told is gone; its connection's end gives the units back.
            let _ = outbox.send(&Reply::Granted { units: grant.units });
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lender for Pool {
    fn take_back(&self, number: u32) {
        let mut table = self.table();
        table.leases.written(number);
        self.grant(table);
    }
}

fn protocol(why: &'static str) -> Error {
    Error::Protocol(why)
}
