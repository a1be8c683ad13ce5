//! A job's session: its ranks, its pool, the checkpoint under way.
//!
//! Invariants:
//! - One attempt at a time. It is committed (or pledged, where other nodes take part) when every rank
//!   has handed its part over, whatever becomes of the ranks then; it is given up when a rank is gone
//!   before.
//! - The job's writer lock is held as long as anything can be committed: nobody prunes that.
//! - An attempt is taken once: what has settled, or is in the store, cannot be sent again.
//! - However a commit ends, by a guard the session goes on, and its ranks are told ([`Committing`]).
//! - Nothing is sent while the state is locked: a rank that takes nothing holds up only itself.
//! - A connection is not closed from this side while a commit runs: a rank that finds it closed may
//!   look at the store, and what it sees is final.

mod attempt;
mod committing;
mod open;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use standfast_checkpoint::{Order, Publisher};
use standfast_format::{AttemptId, Kind, Rank};
use standfast_restart::Inventory;
use standfast_sys::Stopwatch;
use standfast_write::{Filled, Head, SegmentCore, SegmentSettings};

use self::attempt::Attempt;
use self::committing::Committing;
use super::commit::{self, Ready};
use super::connection::Outbox;
use super::log::Log;
use super::pool::Pool;
use crate::error::{Error, Result};
use crate::message::{Begin, Block, Failure, HandOver, Reply, Settled};
use crate::status::SessionStatus;

/// Attempts that have ended and are remembered: of those given up blocks may still be on their way.
const ENDED_MAX: usize = 4096;
/// Largest place in the order of commits that a rank may ask for: others come after it.
const SEQUENCE_MAX: u64 = u64::MAX / 2;

/// One job's session.
pub(super) struct Session {
    pub(super) begin: Begin,
    pub(super) publisher: Publisher,
    pool: Arc<Pool>,
    core: Arc<SegmentCore>,
    state: Mutex<State>,
    changed: Condvar,
    log: Log,
    /// A copy of the job's writer lock, and which file that is.
    lock: Mutex<Option<OwnedFd>>,
    lock_id: (u64, u64),
}

/// What ranks are told when the state is no longer locked.
#[must_use = "they wait for it"]
struct News {
    links: Vec<Arc<Outbox>>,
    settled: Settled,
}

impl News {
    fn tell(self) {
        let reply = Reply::Settled(Box::new(self.settled));
        for outbox in self.links {
            // A rank that cannot be told is gone; its connection's end tells that.
            let _ = outbox.send(&reply);
        }
    }
}

/// How an attempt has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    GivenUp,
    Settled,
}

struct State {
    links: BTreeMap<u32, Arc<Outbox>>,
    /// Ranks that came and went.
    gone: BTreeSet<u32>,
    /// A rank was lost: beyond what it has handed over, nothing can be committed any more.
    broken: bool,
    attempt: Option<Attempt>,
    /// Attempts that have ended, the last ones.
    ended: VecDeque<(AttemptId, Ended)>,
    /// The checkpoint before did not fit into the pool: the ranks will wait for the disk again, so
    /// it must not wait for them.
    overflowed: bool,
    committing: Option<Order>,
    /// `None` while it travels with a commit.
    inventory: Option<Inventory>,
    committed: u64,
    failed: u64,
    blocks: u64,
    block_bytes: u64,
}

impl State {
    fn ended(&self, id: AttemptId) -> Option<Ended> {
        self.ended.iter().find(|(ended, _)| *ended == id).map(|(_, how)| *how)
    }

    fn end(&mut self, id: AttemptId, how: Ended) {
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((id, how));
    }

    fn news(&self, settled: Settled) -> News {
        News { links: self.links.values().cloned().collect(), settled }
    }
}

impl Session {
    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// A rank comes.
    pub(super) fn join(&self, rank: u32, outbox: &Arc<Outbox>) -> Result<()> {
        let mut state = self.state();
        let known = state.links.contains_key(&rank) || state.gone.contains(&rank);
        if self.begin.ranks.binary_search(&rank).is_err() || known {
            return Err(refused(Kind::Invalid, &format!("rank {rank} is not expected")));
        }
        state.links.insert(rank, Arc::clone(outbox));
        self.pool.joined(rank, outbox);
        Ok(())
    }

    /// A block arrives.
    pub(super) fn block(&self, rank: u32, block: Block) -> Result<()> {
        let unit = self.pool.hand_over(rank, block.unit)?;
        let mut state = self.state();
        if state.ended(block.order.attempt) == Some(Ended::GivenUp) {
            return Ok(());
        }
        state.blocks += 1;
        let raw_bytes = u64::from(block.pages) * u64::from(self.begin.packing.page_bytes);
        state.block_bytes = state.block_bytes.saturating_add(raw_bytes);
        let attempt = self.attempt(&mut state, block.order)?;
        let Block { stream, number, pages, elem, hashes, .. } = block;
        let (rank, size_hint) = (Rank(rank), None);
        let head = Head { stream, rank, number, pages, elem, hashes, size_hint };
        let block = Filled { head, unit };
        attempt.segments.check(&block).map_err(|error| refused(error.kind(), &error))?;
        attempt.held.push(block);
        attempt.fills_up |= self.pool.is_filling_up();
        match attempt.fills_up || attempt.goes_at_once {
            true => attempt.let_go(),
            false => Ok(()),
        }
    }

    /// A rank's part is complete; the last one starts the commit.
    pub(super) fn hand_over(self: &Arc<Self>, rank: u32, part: HandOver) -> Result<()> {
        let mut state = self.state();
        let id = part.order.attempt;
        if state.ended(id) == Some(Ended::GivenUp) {
            let failure = Failure::new(Kind::Io, "another rank is gone");
            let news = state.news(settled_failed(id, failure, state.inventory.as_ref()));
            drop(state);
            news.tell();
            return Ok(());
        }
        let attempt = self.attempt(&mut state, part.order)?;
        if attempt.parts.insert(rank, (part, Stopwatch::start())).is_some() {
            return Err(Error::Protocol("a rank hands its part over twice"));
        }
        if attempt.parts.len() < self.begin.ranks.len() {
            self.give_up_if_short(state);
            return Ok(());
        }
        if let Err(error) = attempt.let_go() {
            let news = self.give_up(&mut state, id, Failure::new(error.kind(), &error));
            drop(state);
            news.into_iter().for_each(News::tell);
            return Err(error);
        }
        let Attempt { order, segments: batch, parts, fills_up, .. } =
            state.attempt.take().expect("just found");
        state.overflowed = fills_up;
        let committing = Committing::begin(self, &mut state, order);
        drop(state);
        // In this thread: it has nothing else to do for its rank, and another might not start.
        committing.run(Ready { batch, parts });
        Ok(())
    }

    /// A rank gives the attempt up; all of them do.
    pub(super) fn abort(&self, attempt: AttemptId) {
        let mut state = self.state();
        if state.committing.is_some_and(|order| order.attempt == attempt) {
            return;
        }
        let failure = Failure::new(Kind::Io, "a rank has given the checkpoint up");
        let news = self.give_up(&mut state, attempt, failure);
        drop(state);
        news.into_iter().for_each(News::tell);
    }

    /// A rank's connection has ended, by its will or not.
    pub(super) fn leave(&self, rank: u32, willingly: bool) {
        let mut state = self.state();
        state.links.remove(&rank);
        state.gone.insert(rank);
        let event = if willingly { "leave" } else { "rank lost" };
        self.log.event(event, json!({ "store": self.begin.store.path, "rank": rank }));
        state.broken |= !willingly;
        // What this rank has handed over stays; but the attempt may wait for what never comes.
        self.give_up_if_short(state);
        self.release_if_broken(&self.state());
        self.pool.rank_gone(rank);
        self.changed.notify_all();
    }

    /// Gives the attempt up if a rank is gone that has not handed over.
    fn give_up_if_short(&self, mut state: MutexGuard<'_, State>) {
        let Some(attempt) = &state.attempt else { return };
        let missing = state.gone.iter().find(|rank| !attempt.parts.contains_key(rank));
        if let Some(rank) = missing {
            let failure = Failure::new(Kind::Io, format!("rank {rank} is gone"));
            let id = attempt.order.attempt;
            let news = self.give_up(&mut state, id, failure);
            drop(state);
            news.into_iter().for_each(News::tell);
        }
    }

    fn give_up(&self, state: &mut State, id: AttemptId, failure: Failure) -> Option<News> {
        if state.ended(id).is_some() {
            return None;
        }
        state.end(id, Ended::GivenUp);
        let ours = state.attempt.as_ref().is_some_and(|attempt| attempt.order.attempt == id);
        if ours && let Some(attempt) = state.attempt.take() {
            state.failed += 1;
            self.log.event(
                "given up",
                json!({ "store": self.begin.store.path, "version": attempt.order.version.0 }),
            );
        }
        // Those that have handed it over wait for news; the others pass them over.
        Some(state.news(settled_failed(id, failure, state.inventory.as_ref())))
    }

    fn attempt<'a>(&self, state: &'a mut State, order: Order) -> Result<&'a mut Attempt> {
        if state.committing.is_some() {
            return Err(Error::Protocol("a checkpoint begins before the last has settled"));
        }
        if state.attempt.is_none() {
            check_order(state, order)?;
        }
        let goes_at_once = state.overflowed;
        let current = state.attempt.get_or_insert_with(|| {
            let of = SegmentSettings {
                job: self.begin.store.job,
                rank: Rank(self.begin.ranks[0]),
                hash: self.begin.packing.hash,
                page_bytes: self.begin.packing.page_bytes,
                created_ns: order.taken_ns,
            };
            let segments = self.core.begin(of, self.begin.ranks.len());
            let (held, parts) = (Vec::new(), BTreeMap::new());
            Attempt { order, segments, held, goes_at_once, fills_up: false, parts }
        });
        match current.order.attempt == order.attempt && current.order.version == order.version {
            true => Ok(current),
            false => Err(Error::Protocol("two checkpoints at once")),
        }
    }

    pub(super) fn beat(&self) {
        let links: Vec<Arc<Outbox>> = self.state().links.values().cloned().collect();
        links.iter().for_each(|outbox| outbox.beat());
    }

    pub(super) fn is_committing(&self) -> bool {
        self.state().committing.is_some()
    }

    /// Whether nothing is left to be done and nobody is there.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state();
        state.links.is_empty() && state.committing.is_none() && !state.gone.is_empty()
    }

    /// Lets the lock go when nothing can be committed any more: ranks that hang must not keep the
    /// next life of their job from beginning.
    fn release_if_broken(&self, state: &State) {
        if state.broken && state.attempt.is_none() && state.committing.is_none() {
            self.release();
        }
    }

    /// Lets the job's writer lock go, as far as it is held here.
    pub(super) fn release(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Whether both hold the same lock.
    pub(super) fn shares_lock(&self, other: &Self) -> bool {
        let is_held = self.lock.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        is_held && self.lock_id == other.lock_id
    }

    /// Takes nothing more from its ranks; what has arrived is still finished.
    pub(super) fn hang_up(&self) {
        self.state().links.values().for_each(|outbox| outbox.hang_up());
    }

    /// Whether living ranks are connected and no commit runs: others have to wait for them.
    pub(super) fn is_alive(&self) -> bool {
        let state = self.state();
        state.committing.is_none()
            && !state.links.is_empty()
            && state.links.values().all(|outbox| outbox.peer_lives())
    }

    pub(super) fn connected(&self) -> usize {
        self.state().links.len()
    }

    pub(super) fn wait_change(&self, most: Duration) {
        drop(self.changed.wait_timeout(self.state(), most).unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn status(&self) -> SessionStatus {
        let (units_free, units_leased, units_peak, ranks_waiting) = self.pool.figures();
        let state = self.state();
        let order = state.committing.or(state.attempt.as_ref().map(|attempt| attempt.order));
        SessionStatus {
            store: self.begin.store.path.clone(),
            ranks: self.begin.ranks.len() as u32,
            connected: state.links.len() as u32,
            pool_bytes: u64::from(self.pool.units()) * u64::from(self.pool.unit_bytes()),
            units: self.pool.units(),
            units_free,
            units_leased,
            units_peak,
            ranks_waiting,
            under_way: order.map(|order| order.version.0),
            committing: state.committing.is_some(),
            committed: state.committed,
            failed: state.failed,
            blocks: state.blocks,
            block_bytes: state.block_bytes,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a rank may begin such an attempt: it is a new one.
fn check_order(state: &State, order: Order) -> Result<()> {
    let mut known = state.inventory.iter().flat_map(|inventory| &inventory.checkpoints);
    let is_known = known.any(|manifest| manifest.attempt == order.attempt);
    if is_known || state.ended(order.attempt).is_some() {
        return Err(Error::Protocol("an attempt that has ended"));
    }
    match order.version.0 > 0 && order.sequence <= SEQUENCE_MAX {
        true => Ok(()),
        false => Err(Error::Protocol("a checkpoint out of bounds")),
    }
}

fn settled_failed(id: AttemptId, failure: Failure, inventory: Option<&Inventory>) -> Settled {
    commit::settled(id, Err(failure), inventory)
}

pub(super) fn refused(kind: Kind, why: &dyn std::fmt::Display) -> Error {
    Error::Refused { kind, why: why.to_string() }
}
