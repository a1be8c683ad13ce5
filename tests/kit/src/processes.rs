//! Ranks as processes of one machine, without MPI: for tests that kill them one by one.
//!
//! ```text
//! DIR/0.sock, DIR/1.sock, ...   each rank listens at its own; higher ranks connect to lower ones
//! ```
//! Every pair of ranks has a socket; a thread per peer puts what arrives into the mailbox. A peer
//! whose socket closes has left, and whoever waits for it is told.
//!
//! Not for production: nothing here is fast, and every message is kept until it is asked for.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use standfast_comm::{Comm, Concurrency, Error, Result, Tag};

/// How long the ranks of a job may take to find each other.
const MEET_MAX: Duration = Duration::from_secs(30);
/// Tags of the communicator's own conversations; a program's tags are below.
const ALL_TO_ALL: u32 = 1 << 16;
const SPLIT: u32 = ALL_TO_ALL + 1;

/// Which conversation a message belongs to: communicator, sender in the world, tag.
type Address = (u64, usize, u32);

#[derive(Default)]
struct Mailbox {
    messages: HashMap<Address, VecDeque<Vec<u8>>>,
    gone: Vec<usize>,
}

/// All ranks, as one of them sees them.
struct World {
    rank: usize,
    /// By world rank; none for this one.
    peers: Vec<Option<Mutex<UnixStream>>>,
    mailbox: Mutex<Mailbox>,
    arrived: Condvar,
    made: AtomicU64,
    /// How long a message may take on its way, in microseconds.
    delay_us: AtomicU64,
}

/// One process's end of a communicator.
pub struct Processes {
    world: Arc<World>,
    communicator: u64,
    members: Arc<Vec<usize>>,
    rank: usize,
}

impl Processes {
    /// Meets the other ranks in a directory that is empty before the first one comes.
    pub fn meet(dir: &Path, rank: usize, size: usize) -> io::Result<Self> {
        let listener = UnixListener::bind(dir.join(format!("{rank}.sock")))?;
        let mut streams: Vec<Option<UnixStream>> = (0..size).map(|_| None).collect();
        for (peer, place) in streams.iter_mut().enumerate().take(rank) {
            let mut stream = call(&dir.join(format!("{peer}.sock")))?;
            stream.write_all(&(rank as u32).to_le_bytes())?;
            *place = Some(stream);
        }
        for _ in rank + 1..size {
            let (mut stream, _) = listener.accept()?;
            let mut peer = [0; 4];
            stream.read_exact(&mut peer)?;
            let place = streams.get_mut(u32::from_le_bytes(peer) as usize);
            *place.ok_or(io::ErrorKind::InvalidData)? = Some(stream);
        }
        let peers = streams.iter().map(|stream| {
            stream.as_ref().map(|stream| stream.try_clone().map(Mutex::new)).transpose()
        });
        let world = Arc::new(World {
            rank,
            peers: peers.collect::<io::Result<_>>()?,
            mailbox: Mutex::default(),
            arrived: Condvar::new(),
            made: AtomicU64::new(1),
            delay_us: AtomicU64::new(0),
        });
        for (peer, stream) in streams.into_iter().enumerate() {
            let (Some(stream), world) = (stream, Arc::clone(&world)) else { continue };
            std::thread::spawn(move || {
                // However it ends, the peer sends no more.
                let _ = world.listen(peer, stream);
                world.mailbox().gone.push(peer);
                world.arrived.notify_all();
            });
        }
        let members = Arc::new((0..size).collect());
        Ok(Self { world, communicator: 0, members, rank })
    }

    /// From now on every message that this rank sends takes up to so long, some of them nothing.
    pub fn set_delay(&self, most: Duration) {
        self.world.delay_us.store(most.as_micros() as u64, Ordering::SeqCst);
    }

    fn world_rank(&self, peer: usize) -> Result<usize> {
        let size = self.members.len();
        self.members.get(peer).copied().ok_or(Error::NoRank { peer, size })
    }

    fn put(&self, to: usize, tag: u32, bytes: &[u8]) -> Result<()> {
        let gone = |_| Error::Gone { rank: self.rank, op: "send a message", peer: to };
        let to_world = self.world_rank(to)?;
        let from = self.members[self.rank];
        let Some(peer) = &self.world.peers[to_world] else {
            self.world.deliver((self.communicator, from, tag), bytes.to_vec());
            return Ok(());
        };
        self.world.take_time(bytes);
        let mut head = Vec::with_capacity(16);
        head.extend_from_slice(&self.communicator.to_le_bytes());
        head.extend_from_slice(&tag.to_le_bytes());
        head.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        let mut peer = peer.lock().unwrap_or_else(PoisonError::into_inner);
        peer.write_all(&head).and_then(|()| peer.write_all(bytes)).map_err(gone)
    }

    fn take(&self, from: usize, tag: u32) -> Result<Vec<u8>> {
        let sender = self.world_rank(from)?;
        let address = (self.communicator, sender, tag);
        let mut mailbox = self.world.mailbox();
        loop {
            if let Some(message) = mailbox.messages.get_mut(&address).and_then(VecDeque::pop_front)
            {
                return Ok(message);
            }
            if mailbox.gone.contains(&sender) {
                let op = "receive a message";
                return Err(Error::Gone { rank: self.rank, op, peer: from });
            }
            let waited = self.world.arrived.wait(mailbox);
            mailbox = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The number of a new communicator, told by its first member to the others.
    fn agree_on_number(&self, members: &[usize]) -> Result<u64> {
        let first = members[0];
        if first != self.rank {
            let why = "a communicator's number has 8 bytes";
            let told = self.take(first, SPLIT)?.try_into();
            let told = told.map_err(|_| Error::Message { rank: self.rank, from: first, why })?;
            return Ok(u64::from_le_bytes(told));
        }
        let made = self.world.made.fetch_add(1, Ordering::SeqCst);
        let number = (self.world.rank as u64) << 32 | made;
        for other in &members[1..] {
            self.put(*other, SPLIT, &number.to_le_bytes())?;
        }
        Ok(number)
    }
}

impl World {
    /// Waits as long as a message is on its way: a time without pattern, decided by its bytes and the
    /// clock.
    fn take_time(&self, bytes: &[u8]) {
        let most = self.delay_us.load(Ordering::SeqCst);
        if most > 0 {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let mixed = now.map_or(7, |now| u64::from(now.subsec_nanos())) ^ bytes.len() as u64;
            let share = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            std::thread::sleep(Duration::from_micros((most * share) >> 32));
        }
    }

    fn mailbox(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, address: Address, bytes: Vec<u8>) {
        self.mailbox().messages.entry(address).or_default().push_back(bytes);
        self.arrived.notify_all();
    }

    fn listen(&self, peer: usize, mut stream: UnixStream) -> io::Result<()> {
        loop {
            let (mut communicator, mut tag, mut bytes) = ([0; 8], [0; 4], [0; 4]);
            stream.read_exact(&mut communicator)?;
            stream.read_exact(&mut tag)?;
            stream.read_exact(&mut bytes)?;
            let mut message = vec![0; u32::from_le_bytes(bytes) as usize];
            stream.read_exact(&mut message)?;
            let address = (u64::from_le_bytes(communicator), peer, u32::from_le_bytes(tag));
            self.deliver(address, message);
        }
    }
}

fn call(socket: &Path) -> io::Result<UnixStream> {
    let began = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) if began.elapsed() > MEET_MAX => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

impl Comm for Processes {
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
        self.put(to, tag.0.into(), bytes)
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.take(from, tag.0.into())
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.world_rank(from)?;
        self.send(to, tag, bytes)?;
        self.receive(from, tag)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        assert_eq!(outgoing.len(), self.size(), "a message for every rank");
        for (to, bytes) in outgoing.iter().enumerate() {
            self.put(to, ALL_TO_ALL, bytes)?;
        }
        (0..self.size()).map(|from| self.take(from, ALL_TO_ALL)).collect()
    }

    fn barrier(&self) -> Result<()> {
        self.all_to_all(vec![Vec::new(); self.size()]).map(drop)
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        let mut own = vec![u8::from(colour.is_some())];
        own.extend_from_slice(&colour.unwrap_or(0).to_le_bytes());
        own.extend_from_slice(&key.to_le_bytes());
        let all = self.all_to_all(vec![own.clone(); self.size()])?;
        if colour.is_none() {
            return Ok(None);
        }
        let mut members: Vec<usize> =
            (0..self.size()).filter(|rank| all[*rank][..5] == own[..5]).collect();
        members.sort_by_key(|rank| {
            (all[*rank][5..].iter().rev().copied().collect::<Vec<u8>>(), *rank)
        });
        let communicator = self.agree_on_number(&members)?;
        let rank = members.iter().position(|member| *member == self.rank);
        let rank = rank.expect("a rank is in the group of its colour");
        let members = members.iter().map(|member| self.members[*member]).collect();
        let world = Arc::clone(&self.world);
        Ok(Some(Box::new(Self { world, communicator, members: Arc::new(members), rank })))
    }
}
