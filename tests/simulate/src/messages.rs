//! Messages between simulated ranks: each takes some time, those of one conversation keep their
//! order, and a rank that is killed takes its unsent ones along.
//!
//! A send may wait until it is received, as MPI's may: one run of two does that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_comm::{Comm, Concurrency, Error, Result, Tag, collective};

use crate::chance::Chance;
use crate::fibers;
use crate::world::World;

/// Tags of the communicator's own conversations; a program's tags are below.
const ALL_TO_ALL: u32 = 1 << 16;
const SPLIT: u32 = ALL_TO_ALL + 1;
/// How long a message or the news of a death takes, at most.
const DELAY_MAX: u64 = 20;

/// Communicator, receiver, sender, tag; ranks of the world.
type Address = (u64, usize, usize, u32);

struct Message {
    bytes: Vec<u8>,
    arrives: u64,
}

struct State {
    queues: BTreeMap<Address, VecDeque<Message>>,
    /// From when on it is known that a rank is gone.
    gone: Vec<Option<u64>>,
    made: u64,
    chance: Chance,
    /// Whether a send waits until it is received.
    waits: bool,
}

/// What carries the messages of one job.
pub struct Net {
    world: Arc<World>,
    state: Mutex<State>,
}

impl Net {
    /// Between so many ranks.
    pub fn new(world: &Arc<World>, size: usize, seed: u64) -> Arc<Self> {
        let mut chance = Chance::new(seed);
        let waits = chance.one_in(2);
        let (queues, gone) = (BTreeMap::new(), vec![None; size]);
        let state = Mutex::new(State { queues, gone, made: 0, chance, waits });
        Arc::new(Self { world: Arc::clone(world), state })
    }

    /// A rank's end of it.
    pub fn comm(self: &Arc<Self>, rank: usize) -> SimComm {
        let members = (0..self.state().gone.len()).collect();
        SimComm { net: Arc::clone(self), communicator: 0, members: Arc::new(members), rank }
    }

    /// A rank has ended, or was killed.
    pub fn leave(&self, rank: usize) {
        let mut state = self.state();
        let known = self.world.clock.now() + state.chance.below(DELAY_MAX);
        state.gone[rank].get_or_insert(known);
        self.world.clock.change();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One rank's end of a simulated communicator.
pub struct SimComm {
    net: Arc<Net>,
    communicator: u64,
    /// World ranks of the members, by rank here.
    members: Arc<Vec<usize>>,
    rank: usize,
}

impl SimComm {
    fn world_rank(&self, peer: usize) -> Result<usize> {
        let size = self.members.len();
        self.members.get(peer).copied().ok_or(Error::NoRank { peer, size })
    }

    fn own(&self) -> usize {
        self.members[self.rank]
    }

    fn gone(&self, op: &'static str, peer: usize) -> Error {
        Error::Gone { rank: self.rank, op, peer }
    }

    fn put(&self, to: usize, tag: u32, bytes: Vec<u8>) -> Result<Address> {
        let address = (self.communicator, self.world_rank(to)?, self.own(), tag);
        fibers::give_way();
        let mut state = self.net.state();
        // A killed rank says nothing more.
        if state.gone[self.own()].is_some() {
            return Err(self.gone("send a message", self.rank));
        }
        let arrives = self.net.world.clock.now() + state.chance.below(DELAY_MAX);
        state.queues.entry(address).or_default().push_back(Message { bytes, arrives });
        self.net.world.clock.change();
        Ok(address)
    }

    /// Waits until the messages of a conversation are received, where sends do that.
    fn wait_taken(&self, address: Address, to: usize) -> Result<()> {
        loop {
            let state = self.net.state();
            let waiting = state.queues.get(&address).is_some_and(|queue| !queue.is_empty());
            if !state.waits || !waiting {
                return Ok(());
            }
            if self.is_over(&state, address.1, "send a message", to)? {
                return Err(self.gone("send a message", to));
            }
            let until = state.gone[address.1];
            drop(state);
            fibers::wait(until);
        }
    }

    /// Whether a peer is known to be gone; an error if waiting makes no sense at all.
    fn is_over(
        &self,
        state: &State,
        peer_in_world: usize,
        op: &'static str,
        peer: usize,
    ) -> Result<bool> {
        if state.gone[self.own()].is_some() {
            return Err(self.gone(op, self.rank));
        }
        if self.net.world.clock.is_stuck() {
            let why = "everybody waits for ever".into();
            return Err(Error::Transport { rank: self.rank, op, why });
        }
        Ok(state.gone[peer_in_world]
            .is_some_and(|known| known <= self.net.world.clock.now() && peer != self.rank))
    }

    fn take(&self, from: usize, tag: u32) -> Result<Vec<u8>> {
        let op = "receive a message";
        let sender = self.world_rank(from)?;
        let address = (self.communicator, self.own(), sender, tag);
        fibers::give_way();
        loop {
            let mut state = self.net.state();
            let mut until = None;
            if let Some(queue) = state.queues.get_mut(&address) {
                match queue.front().map(|message| message.arrives) {
                    Some(arrives) if arrives <= self.net.world.clock.now() => {
                        let message = queue.pop_front().map(|message| message.bytes);
                        if queue.is_empty() {
                            state.queues.remove(&address);
                        }
                        self.net.world.clock.change();
                        return Ok(message.unwrap_or_default());
                    }
                    arrives => until = arrives,
                }
            }
            if self.is_over(&state, sender, op, from)? && until.is_none() {
                return Err(self.gone(op, from));
            }
            until = until.or(state.gone[sender]);
            drop(state);
            fibers::wait(until);
        }
    }

    /// The number of a new communicator, from its first member.
    fn agree_on_number(&self, members: &[usize]) -> Result<u64> {
        let first = members[0];
        if first != self.rank {
            let bytes = self.take(first, SPLIT)?;
            let why = "a communicator's number has 8 bytes";
            let wrong = |_| Error::Message { rank: self.rank, from: first, why };
            return Ok(u64::from_le_bytes(bytes.try_into().map_err(wrong)?));
        }
        let number = {
            let mut state = self.net.state();
            state.made += 1;
            state.made
        };
        for other in &members[1..] {
            self.put(*other, SPLIT, number.to_le_bytes().to_vec())?;
        }
        Ok(number)
    }
}

impl Comm for SimComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    /// So that all talking is done by fibers.
    fn concurrency(&self) -> Concurrency {
        Concurrency::CallerOnly
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        let address = self.put(to, tag.0.into(), bytes.to_vec())?;
        // What a rank sends to itself nobody else receives meanwhile.
        if to == self.rank { Ok(()) } else { self.wait_taken(address, to) }
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.take(from, tag.0.into())
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.world_rank(from)?;
        let address = self.put(to, tag.0.into(), bytes.to_vec())?;
        let received = self.take(from, tag.0.into())?;
        if to != self.rank {
            self.wait_taken(address, to)?;
        }
        Ok(received)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        assert_eq!(outgoing.len(), self.size(), "one message for each rank");
        for (to, bytes) in outgoing.into_iter().enumerate() {
            self.put(to, ALL_TO_ALL, bytes)?;
        }
        (0..self.size()).map(|from| self.take(from, ALL_TO_ALL)).collect()
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        let own = [u64::from(colour.is_some()), colour.unwrap_or(0).into(), key.into()];
        let own: Vec<u8> = own.iter().flat_map(|number| number.to_le_bytes()).collect();
        let told = collective::all_gather(self, &own)?;
        let Some(_) = colour else { return Ok(None) };
        // Colour first, then key: equal first halves belong together.
        let same = told.iter().enumerate().filter(|(_, choice)| choice[..16] == own[..16]);
        let mut same: Vec<(Vec<u8>, usize)> = same
            .map(|(rank, choice)| (choice[16..].iter().rev().copied().collect(), rank))
            .collect();
        same.sort();
        let same: Vec<usize> = same.into_iter().map(|(_, rank)| rank).collect();
        let communicator = self.agree_on_number(&same)?;
        let rank = same.iter().position(|rank| *rank == self.rank).expect("this rank is a member");
        let members = Arc::new(same.into_iter().map(|rank| self.members[rank]).collect());
        Ok(Some(Box::new(Self { net: Arc::clone(&self.net), communicator, members, rank })))
    }
}
