//! [`Comm`] by the functions of a table.
//!
//! Messages: cut into pieces, each started, then ended; received piece by piece until a short one.
//! All to all: lengths first; then one collective call if no rank has more bytes than a piece, else
//! pairs of ranks, at every distance once. Pairs need no second copy of the bytes, and their
//! messages can have any length.
//!
//! Why a barrier of messages comes before every collective function of the table: MPI keeps a
//! processor busy while it waits for late ranks, and single messages can be awaited asleep.
//! (Its non-blocking collectives could be, too; but Open MPI 4.1.4 hangs in the next one after an
//! `MPI_Ialltoallv` to which one rank contributes nothing.)

use std::ffi::{c_int, c_void};
use std::thread::{self, ThreadId};

use standfast_comm::{
    Comm, Concurrency, Error as CommError, Result as CommResult, Tag, collective,
};

use crate::error::{Error, Result};
use crate::functions::{Code, Functions, Message, Raw, Sending};
use crate::pieces;
use crate::table::CommTable;

/// What every table can send at once: enough to agree on more.
const PIECE_BYTES_MIN: usize = 16;

/// The tag of pairs in [`Comm::all_to_all`]; programs use lower ones.
const PAIRS: Tag = Tag(0xff10);

/// What is being done, for errors.
const SEND: &str = "send a message";
const RECEIVE: &str = "receive a message";
const ALL_TO_ALL: &str = "exchange with all";
const SPLIT: &str = "split a communicator";
const DUPLICATE: &str = "duplicate a communicator";

/// A communicator behind a table of C functions. It is this value's own: dropping releases it.
pub struct Mpi {
    functions: Functions,
    raw: Raw,
    rank: usize,
    size: usize,
    concurrency: Concurrency,
    /// The full length of a piece, the same on every rank.
    piece_bytes: usize,
    /// Where it was made: without `AnyThread`, the only thread that may let it go.
    home: ThreadId,
}

// SAFETY: the adapter's communicator is plain data that MPI calls look at. From which threads they
// may be made is what `concurrency` tells, and the users of `Comm` keep to it.
unsafe impl Send for Mpi {}
// SAFETY: as above.
unsafe impl Sync for Mpi {}

impl std::fmt::Debug for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rank, size, concurrency, .. } = self;
        write!(f, "Mpi {{ rank {rank} of {size}, {concurrency:?} }}")
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // In the wrong thread it is better to leave a communicator behind than to call MPI.
        if self.concurrency == Concurrency::AnyThread || thread::current().id() == self.home {
            // SAFETY: the table has made it, and this was its only user.
            unsafe { self.functions.release(self.raw) }
        }
    }
}

impl Mpi {
    /// A duplicate of a communicator of the program. All its ranks call this.
    ///
    /// # Safety
    /// `table` is null or a table whose functions keep to the comments at [`CommTable`] as long as
    /// the program runs; `comm` is a communicator that they know.
    pub unsafe fn duplicate_of(table: *const CommTable, comm: *mut c_void) -> Result<Self> {
        // SAFETY: the caller vouches for the table.
        let functions = unsafe { Functions::of(table) }?;
        let handed = |why: String| Error::Handed { why };
        let text = |code: Code| handed(functions.text_of(code));
        functions.describe(Raw(comm)).map_err(text)?;
        let copy = functions.duplicate(Raw(comm)).map_err(text)?;
        let copy = copy.ok_or_else(|| handed("its duplicate is NULL".into()))?;
        let mut comm = Self::wrap(functions, copy, PIECE_BYTES_MIN).map_err(handed)?;
        comm.agree_on_pieces().map_err(handed)?;
        Ok(comm)
    }

    /// The full length of a piece is the smallest of all ranks: the adapter of another rank may have
    /// been compiled differently.
    fn agree_on_pieces(&mut self) -> std::result::Result<(), String> {
        let facts =
            self.functions.describe(self.raw).map_err(|code| self.functions.text_of(code))?;
        // Whoever names none makes all of them fail.
        let own = u64::try_from(facts.piece_bytes).unwrap_or(0);
        let agreed = collective::all_min(self, own).map_err(|error| error.to_string())?;
        match usize::try_from(agreed) {
            Ok(bytes) if bytes >= PIECE_BYTES_MIN => {
                self.piece_bytes = bytes;
                Ok(())
            }
            _ => Err(format!("pieces of at most {agreed} bytes are of no use")),
        }
    }

    /// Takes over a communicator that the table has just made.
    fn wrap(
        functions: Functions,
        raw: Raw,
        piece_bytes: usize,
    ) -> std::result::Result<Self, String> {
        let facts = functions.describe(raw).map_err(|code| functions.text_of(code))?;
        let number = |number: c_int| usize::try_from(number).ok();
        let (rank, size) = match (number(facts.rank), number(facts.size)) {
            (Some(rank), Some(size)) if rank < size => (rank, size),
            _ => return Err(format!("there is no rank {} of {}", facts.rank, facts.size)),
        };
        let concurrency = match facts.any_thread {
            0 => Concurrency::CallerOnly,
            _ => Concurrency::AnyThread,
        };
        let home = thread::current().id();
        Ok(Self { functions, raw, rank, size, concurrency, piece_bytes, home })
    }

    fn failed(&self, op: &'static str) -> impl Fn(Code) -> CommError + Copy + '_ {
        move |code| self.broken(op, self.functions.text_of(code))
    }

    fn broken(&self, op: &'static str, why: impl Into<String>) -> CommError {
        CommError::Transport { rank: self.rank, op, why: why.into() }
    }

    /// A rank as MPI writes it.
    fn number(&self, peer: usize) -> CommResult<c_int> {
        match c_int::try_from(peer) {
            Ok(number) if peer < self.size => Ok(number),
            _ => Err(CommError::NoRank { peer, size: self.size }),
        }
    }

    /// Starts to send a message.
    fn start<'a>(&'a self, to: c_int, tag: Tag, bytes: &'a [u8]) -> CommResult<Sends<'a>> {
        let mut sends = Sends { comm: self, started: Vec::new(), _bytes: bytes };
        for piece in pieces::cut(bytes, self.piece_bytes) {
            // SAFETY: `Sends` borrows the bytes, and its drop waits for the end of every send.
            let started = unsafe { self.functions.start_send(self.raw, to, tag.0, piece) };
            sends.started.push(started.map_err(self.failed(SEND))?);
        }
        Ok(sends)
    }

    fn take(&self, from: c_int, tag: Tag, bytes: &mut Vec<u8>) -> CommResult<()> {
        bytes.clear();
        loop {
            let piece =
                self.functions.probe(self.raw, from, tag.0).map_err(self.failed(RECEIVE))?;
            let length = self.append(bytes, piece)?;
            if !pieces::more_follow(length, self.piece_bytes) {
                return Ok(());
            }
        }
    }

    /// Receives a piece behind those that are there, and returns its length.
    fn append(&self, bytes: &mut Vec<u8>, piece: Message) -> CommResult<usize> {
        let length = piece.length().filter(|length| *length <= self.piece_bytes);
        let length = length
            .ok_or_else(|| self.broken(RECEIVE, "a piece has a length that was not agreed"))?;
        bytes.try_reserve_exact(length).map_err(|_| {
            self.broken(RECEIVE, format!("there is no memory for {} bytes", bytes.len() + length))
        })?;
        let room = &mut bytes.spare_capacity_mut()[..length];
        self.functions.receive(self.raw, piece, room).map_err(self.failed(RECEIVE))?;
        // SAFETY: so many bytes have been written behind those that were there.
        unsafe { bytes.set_len(bytes.len() + length) };
        Ok(length)
    }

    fn all_to_all_at_once(
        &self,
        outgoing: Vec<Vec<u8>>,
        expected: &[u64],
    ) -> CommResult<Vec<Vec<u8>>> {
        let count = |length: u64| c_int::try_from(length).expect("all of them fit a piece");
        let lengths: Vec<c_int> = outgoing.iter().map(|bytes| count(bytes.len() as u64)).collect();
        let expected: Vec<c_int> = expected.iter().map(|length| count(*length)).collect();
        let joined = outgoing.concat();
        drop(outgoing);
        let mut incoming = vec![0; expected.iter().map(|length| *length as usize).sum()];
        self.functions
            .all_to_all(self.raw, (&joined, &lengths), (&mut incoming, &expected))
            .map_err(self.failed(ALL_TO_ALL))?;
        let mut rest = incoming.as_slice();
        let parts = expected.iter().map(|length| {
            let (part, after) = rest.split_at(*length as usize);
            rest = after;
            part.to_vec()
        });
        Ok(parts.collect())
    }

    fn all_to_all_in_pairs(&self, mut outgoing: Vec<Vec<u8>>) -> CommResult<Vec<Vec<u8>>> {
        let mut incoming = vec![Vec::new(); self.size];
        incoming[self.rank] = std::mem::take(&mut outgoing[self.rank]);
        for distance in 1..self.size {
            let to = (self.rank + distance) % self.size;
            let from = (self.rank + self.size - distance) % self.size;
            // What has been sent is let go at once: only one copy of everything is held.
            let bytes = std::mem::take(&mut outgoing[to]);
            incoming[from] = self.exchange(to, &bytes, from, PAIRS)?;
        }
        Ok(incoming)
    }

    fn wrap_part(&self, raw: Raw, op: &'static str) -> CommResult<Self> {
        Self::wrap(self.functions, raw, self.piece_bytes).map_err(|why| self.broken(op, why))
    }

    fn split_once(&self, colour: Option<u32>, key: u32) -> CommResult<Option<Self>> {
        let colour = colour.map_or(-1, |colour| (colour & (u32::MAX >> 1)) as c_int);
        // Keys of MPI have a sign: the order of all 2^32 is kept when they are moved down.
        let key = (key ^ (1 << 31)) as c_int;
        let part = self.functions.split(self.raw, colour, key).map_err(self.failed(SPLIT))?;
        match (part, colour) {
            (None, -1) => Ok(None),
            (Some(raw), 0..) => self.wrap_part(raw, SPLIT).map(Some),
            _ => Err(self.broken(SPLIT, "the colour and what it gave do not fit together")),
        }
    }
}

fn total(lengths: &[u64]) -> u64 {
    lengths.iter().fold(0, |sum, length| sum.saturating_add(*length))
}

/// The sends of a message's pieces. MPI reads the bytes until each has ended.
struct Sends<'a> {
    comm: &'a Mpi,
    started: Vec<Sending>,
    _bytes: &'a [u8],
}

impl Sends<'_> {
    /// Waits for every one, also behind one that failed; the first failure counts.
    fn end(&mut self) -> CommResult<()> {
        let mut outcome = Ok(());
        for sending in self.started.drain(..) {
            let ended = self.comm.functions.end_send(self.comm.raw, sending);
            outcome = outcome.and(ended.map_err(self.comm.failed(SEND)));
        }
        outcome
    }
}

impl Drop for Sends<'_> {
    fn drop(&mut self) {
        // Something else has failed before, and that is what the caller hears.
        let _ = self.end();
    }
}

impl Comm for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> CommResult<()> {
        self.start(self.number(to)?, tag, bytes)?.end()
    }

    fn receive(&self, from: usize, tag: Tag) -> CommResult<Vec<u8>> {
        let mut received = Vec::new();
        self.receive_into(from, tag, &mut received)?;
        Ok(received)
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> CommResult<Vec<u8>> {
        let mut received = Vec::new();
        self.exchange_over(to, bytes, from, tag, &mut received)?;
        Ok(received)
    }

    fn receive_into(&self, from: usize, tag: Tag, into: &mut Vec<u8>) -> CommResult<()> {
        self.take(self.number(from)?, tag, into)
    }

    fn exchange_over(
        &self,
        to: usize,
        bytes: &[u8],
        from: usize,
        tag: Tag,
        into: &mut Vec<u8>,
    ) -> CommResult<()> {
        let (to, from) = (self.number(to)?, self.number(from)?);
        let mut sends = self.start(to, tag, bytes)?;
        self.take(from, tag, into)?;
        sends.end()
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> CommResult<Vec<Vec<u8>>> {
        assert_eq!(outgoing.len(), self.size, "one message for each rank");
        let lengths: Vec<u64> = outgoing.iter().map(|bytes| bytes.len() as u64).collect();
        self.barrier()?;
        let expected = self.functions.all_to_all_lengths(self.raw, &lengths);
        let expected = expected.map_err(self.failed(ALL_TO_ALL))?;
        // All go the same way: the rank with the most bytes decides. This is a barrier, too.
        let bytes_max = collective::all_max(self, total(&lengths).max(total(&expected)))?;
        if bytes_max <= self.piece_bytes as u64 {
            self.all_to_all_at_once(outgoing, &expected)
        } else {
            self.all_to_all_in_pairs(outgoing)
        }
    }

    /// MPI's colours have 31 bits: where the highest bit is used, ranks are parted by it first.
    fn split(&self, colour: Option<u32>, key: u32) -> CommResult<Option<Box<dyn Comm>>> {
        let high = colour.map_or(0, |colour| colour >> 31);
        let parted = collective::all_max(self, high.into())? > 0;
        let part = match parted {
            false => self.split_once(colour, key)?,
            // Without a colour here, or without one in the second step: nothing either way.
            true => match self.split_once(colour.map(|colour| colour >> 31), key)? {
                Some(part) => part.split_once(colour, key)?,
                None => None,
            },
        };
        Ok(part.map(|part| Box::new(part) as Box<dyn Comm>))
    }

    fn duplicate(&self) -> CommResult<Box<dyn Comm>> {
        self.barrier()?;
        let copy = self.functions.duplicate(self.raw).map_err(self.failed(DUPLICATE))?;
        let copy = copy.ok_or_else(|| self.broken(DUPLICATE, "the duplicate is NULL"))?;
        Ok(Box::new(self.wrap_part(copy, DUPLICATE)?))
    }
}
