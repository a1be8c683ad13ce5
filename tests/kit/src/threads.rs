//! Virtual ranks: each is a thread of one process.
//!
//! Every rank has a mailbox; a message waits there under its communicator, sender and tag. A rank
//! that panics or ends closes its part of the world, so that nobody waits for it for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use standfast_comm::{Comm, Concurrency, Error, Result, Tag, collective};

/// Tags of the communicator's own conversations; a program's tags are below.
const OWN: u32 = 1 << 16;
const ALL_TO_ALL: u32 = OWN;
const SPLIT: u32 = OWN + 1;

/// Buffers that a rank keeps for [`Comm::send_from`]. It sends about as many as it receives.
const SPARE_MAX: usize = 2;

/// Which conversation a message belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Address {
    communicator: u64,
    from: usize,
    tag: u32,
}

#[derive(Default)]
struct Mailbox {
    messages: HashMap<Address, VecDeque<Vec<u8>>>,
    /// Ranks of the world that will send no more.
    gone: Vec<usize>,
    /// Buffers that [`Comm::receive_into`] was given for those of messages.
    spare: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Slot {
    mailbox: Mutex<Mailbox>,
    arrived: Condvar,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        // Its queues are whole whenever the lock is free.
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All virtual ranks of one process.
struct World {
    slots: Vec<Slot>,
    /// Communicators made so far.
    made: Mutex<u64>,
}

/// One virtual rank's end of a communicator.
pub struct Threads {
    world: Arc<World>,
    communicator: u64,
    /// World ranks of the members, by rank here.
    members: Arc<Vec<usize>>,
    rank: usize,
}

/// Leaves the world when the thread of a rank ends, however it ends.
struct Leave {
    world: Arc<World>,
    rank: usize,
}

impl Drop for Leave {
    fn drop(&mut self) {
        for slot in &self.world.slots {
            slot.lock().gone.push(self.rank);
            slot.arrived.notify_all();
        }
    }
}

/// Runs `body` on so many virtual ranks, each in a thread of its own, and returns what each of
/// them returned, in order of rank.
///
/// # Panics
/// If one of them panics.
pub fn run_threads<T: Send>(size: usize, body: impl Fn(Threads) -> T + Sync) -> Vec<T> {
    let world = Arc::new(World {
        slots: (0..size).map(|_| Slot::default()).collect(),
        made: Mutex::new(1),
    });
    let members = Arc::new((0..size).collect::<Vec<_>>());
    let body = &body;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..size)
            .map(|rank| {
                let comm = Threads {
                    world: Arc::clone(&world),
                    communicator: 0,
                    members: Arc::clone(&members),
                    rank,
                };
                std::thread::Builder::new()
                    .name(format!("rank-{rank}"))
                    .stack_size(1 << 20)
                    .spawn_scoped(scope, move || {
                        let _leave = Leave { world: Arc::clone(&comm.world), rank };
                        body(comm)
                    })
                    .expect("a thread can be started")
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

impl Threads {
    fn world_rank(&self, peer: usize) -> Result<usize> {
        let size = self.members.len();
        self.members.get(peer).copied().ok_or(Error::NoRank { peer, size })
    }

    fn put(&self, to: usize, tag: u32, bytes: Vec<u8>) -> Result<()> {
        let slot = &self.world.slots[self.world_rank(to)?];
        let address = Address { communicator: self.communicator, from: self.rank, tag };
        slot.lock().messages.entry(address).or_default().push_back(bytes);
        slot.arrived.notify_all();
        Ok(())
    }

    fn take(&self, from: usize, tag: u32, op: &'static str) -> Result<Vec<u8>> {
        let sender = self.world_rank(from)?;
        let slot = self.own_slot();
        let address = Address { communicator: self.communicator, from, tag };
        let mut mailbox = slot.lock();
        loop {
            if let Some(queue) = mailbox.messages.get_mut(&address) {
                let message = queue.pop_front();
                if queue.is_empty() {
                    mailbox.messages.remove(&address);
                }
                if let Some(message) = message {
                    return Ok(message);
                }
            }
            if mailbox.gone.contains(&sender) {
                return Err(Error::Gone { rank: self.rank, op, peer: from });
            }
            mailbox = slot.arrived.wait(mailbox).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn own_slot(&self) -> &Slot {
        &self.world.slots[self.members[self.rank]]
    }

    /// The number of a new communicator, told by its first member to the others.
    fn agree_on_number(&self, members: &[usize]) -> Result<u64> {
        let first = members[0];
        if first != self.rank {
            let told = self.take(first, SPLIT, "split a communicator")?;
            let why = "a communicator's number has 8 bytes";
            let bytes = told.try_into().map_err(|_| Error::Message {
                rank: self.rank,
                from: first,
                why,
            })?;
            return Ok(u64::from_le_bytes(bytes));
        }
        let number = {
            let mut made = self.world.made.lock().unwrap_or_else(PoisonError::into_inner);
            *made += 1;
            *made
        };
        for other in &members[1..] {
            self.put(*other, SPLIT, number.to_le_bytes().to_vec())?;
        }
        Ok(number)
    }
}

impl Comm for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::AnyThread
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.put(to, tag.0.into(), bytes.to_vec())
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.take(from, tag.0.into(), "receive a message")
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.world_rank(from)?;
        self.send(to, tag, bytes)?;
        self.receive(from, tag)
    }

    /// The buffer itself becomes the message, and one of an earlier message takes its place.
    fn send_from(&self, to: usize, tag: Tag, message: &mut Vec<u8>) -> Result<()> {
        self.world_rank(to)?;
        let spare = self.own_slot().lock().spare.pop().unwrap_or_default();
        self.put(to, tag.0.into(), std::mem::replace(message, spare))
    }

    fn receive_into(&self, from: usize, tag: Tag, into: &mut Vec<u8>) -> Result<()> {
        let spare = std::mem::replace(into, self.receive(from, tag)?);
        let mut mailbox = self.own_slot().lock();
        if spare.capacity() > 0 && mailbox.spare.len() < SPARE_MAX {
            mailbox.spare.push(spare);
        }
        Ok(())
    }

    fn exchange_into(
        &self,
        to: usize,
        message: &mut Vec<u8>,
        from: usize,
        tag: Tag,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        self.world_rank(from)?;
        self.send_from(to, tag, message)?;
        self.receive_into(from, tag, into)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        assert_eq!(outgoing.len(), self.size(), "one message for each rank");
        for (to, bytes) in outgoing.into_iter().enumerate() {
            self.put(to, ALL_TO_ALL, bytes)?;
        }
        (0..self.size()).map(|from| self.take(from, ALL_TO_ALL, "exchange with all")).collect()
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        let told = collective::all_gather(self, &encode_choice(colour, key))?;
        let mut members = Vec::new();
        for (rank, choice) in told.iter().enumerate() {
            let why = "a choice of colour has 9 bytes";
            let choice =
                decode_choice(choice).ok_or(Error::Message { rank: self.rank, from: rank, why })?;
            members.push((choice, rank));
        }
        let Some(colour) = colour else { return Ok(None) };
        let mut own: Vec<(u32, usize)> = members
            .into_iter()
            .filter(|((other, _), _)| *other == Some(colour))
            .map(|((_, key), rank)| (key, rank))
            .collect();
        own.sort_unstable();
        let own: Vec<usize> = own.into_iter().map(|(_, rank)| rank).collect();
        let communicator = self.agree_on_number(&own)?;
        let rank = own.iter().position(|rank| *rank == self.rank).expect("this rank is a member");
        let members = Arc::new(own.into_iter().map(|rank| self.members[rank]).collect());
        let world = Arc::clone(&self.world);
        Ok(Some(Box::new(Self { world, communicator, members, rank })))
    }
}

fn encode_choice(colour: Option<u32>, key: u32) -> Vec<u8> {
    let mut bytes = vec![u8::from(colour.is_some())];
    bytes.extend_from_slice(&colour.unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(&key.to_le_bytes());
    bytes
}

fn decode_choice(bytes: &[u8]) -> Option<(Option<u32>, u32)> {
    let (given, rest) = bytes.split_first()?;
    let (colour, key) = rest.split_first_chunk::<4>()?;
    let colour = (*given == 1).then_some(u32::from_le_bytes(*colour));
    Some((colour, u32::from_le_bytes(key.try_into().ok()?)))
}
