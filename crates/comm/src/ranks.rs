//! The ranks of a job as one: nobody goes on unless everybody can.
//!
//! Data: each rank's own outcome -> a message -> the same verdict on every rank. A rank that failed
//! keeps its own error; the others hear which rank failed and why.
//!
//! A function that takes a [`Collective`] is collective: all ranks call it, in the same order, also
//! those that have failed. Types cannot prove the order. So every agreement is stamped with its
//! number and name ([`Step`]), and all agreements travel in the same pattern, one reduction: ranks
//! that meet at different steps find out, all of them, and fail instead of waiting for each other.
//!
//! Invariants:
//! - A rank that lost another one sends nothing more ([`Fuse`]): the others may still be where it
//!   failed, and wait for it there.
//! - A single rank sends nothing.

use std::cell::Cell;

use serde::Serialize;
use serde::de::DeserializeOwned;
use standfast_format::Rank;

use crate::collective::all_reduce;
use crate::error::{Error, Result};
use crate::stop::{Agreed, Failed, Failure, Fault, Lost, Own, Phase};
use crate::{Comm, Concurrency, Fuse, Solo, Tag};

/// What ranks tell the first one.
const GATHER: Tag = Tag(0x10);

/// The name of an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step(pub &'static str);

/// The ranks that checkpoint together. One thread at a time talks through it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<standfast_comm::Collective>();
/// ```
/// and whoever wants a conversation beside it asks all ranks for one ([`Collective::beside`]):
///
/// ```compile_fail,E0599
/// let ranks = standfast_comm::Collective::solo();
/// let same = ranks.clone();
/// ```
pub struct Collective {
    comm: Fuse,
    /// Agreements so far.
    steps: Cell<u64>,
}

/// What precedes the payload of an agreement.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Stamp<'a> {
    number: u64,
    at: &'a str,
}

/// A part of an agreement: of these ranks from `lowest` on, and whether they are at one step.
#[derive(serde::Serialize, serde::Deserialize)]
struct Head<'a> {
    lowest: usize,
    #[serde(borrow)]
    stamp: Stamp<'a>,
    /// A rank that is elsewhere.
    other: Option<(usize, Stamp<'a>)>,
}

impl Collective {
    /// The first one of a job.
    pub fn new(comm: Box<dyn Comm>) -> Self {
        Self { comm: Fuse::new(comm), steps: Cell::new(0) }
    }

    /// A program without other ranks.
    pub fn solo() -> Self {
        Self::new(Box::new(Solo::default()))
    }

    /// A second one for another thread, with messages of its own and the same fate; none where only
    /// the program's thread may talk.
    pub fn beside(&self) -> std::result::Result<Option<Self>, Lost> {
        match self.concurrency() {
            _ if self.size() == 1 => Ok(Some(Self::solo())),
            Concurrency::AnyThread => {
                Ok(Some(Self { comm: self.comm.twin()?, steps: Cell::new(0) }))
            }
            Concurrency::CallerOnly => Ok(None),
        }
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        Rank(self.comm.rank() as u32)
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// Whether this rank does what only one shall do.
    pub fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    /// From which threads ranks may be talked to.
    pub fn concurrency(&self) -> Concurrency {
        self.comm.concurrency()
    }

    /// For conversations that are no agreements: pages, hashes, shards. Such a conversation comes
    /// to its end on every rank, whatever becomes of it, and an agreement follows it. Where code may
    /// panic in between, [`crate::converse`] holds it.
    pub fn raw(&self) -> &dyn Comm {
        &self.comm
    }

    /// This rank's outcome, if all ranks succeeded.
    pub fn agree<T, E: Fault>(&self, at: Step, own: Own<T, E>) -> Phase<T, E> {
        let part = own.as_ref().err().map(|error| encode(&self.failure(error)));
        let first_failed = self.reduce(at, part.unwrap_or_default(), lowest)?;
        let own = own.map_err(Failed)?;
        if first_failed.is_empty() {
            return Ok(own);
        }
        Err(Failed(E::of_other(self.decode(&first_failed)?)).into())
    }

    /// What every rank has, by rank, if all have succeeded.
    pub fn gather<T, E>(&self, at: Step, own: Own<T, E>) -> Phase<Agreed<Vec<T>>, E>
    where
        T: Serialize + DeserializeOwned,
        E: Fault,
    {
        if self.size() == 1 {
            return Ok(own.map(|value| Agreed(vec![value])).map_err(Failed)?);
        }
        let all = self.reduce(at, self.encode_outcome(&own), chain)?;
        own.map_err(Failed)?;
        let all: Vec<std::result::Result<T, Failure>> = self.decode_all(&all)?;
        let values: std::result::Result<Vec<T>, Failure> = all.into_iter().collect();
        Ok(values.map(Agreed).map_err(|failure| Failed(E::of_other(failure)))?)
    }

    /// What every rank has, by rank, where none can have failed.
    pub fn collect<T>(&self, at: Step, own: T) -> std::result::Result<Agreed<Vec<T>>, Lost>
    where
        T: Serialize + DeserializeOwned,
    {
        if self.size() == 1 {
            return Ok(Agreed(vec![own]));
        }
        let all = self.reduce(at, encode(&own), chain)?;
        Ok(Agreed(self.decode_all(&all)?))
    }

    /// All ranks have come here.
    pub fn meet(&self, at: Step) -> std::result::Result<(), Lost> {
        self.reduce(at, Vec::new(), lowest)?;
        Ok(())
    }

    /// What every rank has, by rank, at the first rank; nothing elsewhere.
    pub fn gather_first<T, E>(&self, at: Step, own: Own<T, E>) -> Phase<Option<Vec<Own<T, E>>>, E>
    where
        T: Serialize + DeserializeOwned,
        E: Fault,
    {
        self.meet(at)?;
        if !self.is_first() {
            self.comm.send(0, GATHER, &self.encode_outcome(&own))?;
            return Ok(None);
        }
        let mut all = vec![own];
        for from in 1..self.size() {
            let told: std::result::Result<T, Failure> =
                self.decode(&self.comm.receive(from, GATHER)?)?;
            all.push(told.map_err(E::of_other));
        }
        Ok(Some(all))
    }

    /// What the first rank has; it alone is asked.
    pub fn tell<T, E>(&self, at: Step, first: impl FnOnce() -> Own<T, E>) -> Phase<Agreed<T>, E>
    where
        T: Serialize + DeserializeOwned,
        E: Fault,
    {
        if !self.is_first() {
            let told = self.reduce(at, Vec::new(), lowest)?;
            let told: std::result::Result<T, Failure> = self.decode(&told)?;
            return Ok(told.map(Agreed).map_err(|failure| Failed(E::of_other(failure)))?);
        }
        let own = first();
        let told = if self.size() == 1 { Vec::new() } else { self.encode_outcome(&own) };
        self.reduce(at, told, lowest)?;
        Ok(own.map(Agreed).map_err(Failed)?)
    }

    /// Which of these hold on every rank.
    pub fn all_hold<const N: usize>(
        &self,
        at: Step,
        own: [bool; N],
    ) -> std::result::Result<Agreed<[bool; N]>, Lost> {
        let both = |lower: &[u8], upper: &[u8], both: &mut Vec<u8>| {
            both.extend(lower.iter().zip(upper).map(|(a, b)| a & b));
        };
        let all = self.reduce(at, own.map(u8::from).to_vec(), both)?;
        Ok(Agreed(std::array::from_fn(|place| all.get(place) == Some(&1))))
    }

    /// Sends `parts[r]` to rank `r`, and returns what each rank has for this one.
    pub fn exchange<T>(&self, at: Step, parts: &[T]) -> std::result::Result<Vec<T>, Lost>
    where
        T: Serialize + DeserializeOwned,
    {
        self.meet(at)?;
        let told = self.comm.all_to_all(parts.iter().map(encode).collect())?;
        Ok(told.iter().map(|bytes| self.decode(bytes)).collect::<Result<_>>()?)
    }

    /// Combines the payloads of all ranks at one step. The one pattern in which agreements travel.
    fn reduce(
        &self,
        Step(at): Step,
        payload: Vec<u8>,
        combine: impl Fn(&[u8], &[u8], &mut Vec<u8>),
    ) -> Result<Vec<u8>> {
        let number = self.steps.get() + 1;
        self.steps.set(number);
        if self.size() == 1 {
            return Ok(payload);
        }
        let stamp = Stamp { number, at };
        let mut part = encode(&Head { lowest: self.comm.rank(), stamp, other: None });
        part.extend_from_slice(&payload);
        let all = all_reduce(&self.comm, part, |lower, upper| {
            let (head, lower) = self.take_head(lower)?;
            let (above, upper) = self.take_head(upper)?;
            let elsewhere =
                (head.stamp != above.stamp).then(|| (above.lowest, above.stamp.clone()));
            let other = head.other.or(elsewhere).or(above.other);
            let is_together = other.is_none();
            let mut both = encode(&Head { other, ..head });
            if is_together {
                combine(lower, upper, &mut both);
            }
            Ok(both)
        })?;
        let (head, payload) = self.take_head(&all)?;
        let Some((upper, there)) = head.other else { return Ok(payload.to_vec()) };
        let name = |stamp: Stamp<'_>| format!("{} ({})", stamp.number, stamp.at);
        let (lower, lower_at, upper_at) = (head.lowest, name(head.stamp), name(there));
        Err(self.comm.blow(Error::Steps { lower, lower_at, upper, upper_at }))
    }

    fn take_head<'a>(&self, bytes: &'a [u8]) -> Result<(Head<'a>, &'a [u8])> {
        postcard::take_from_bytes(bytes).map_err(|_| self.garbled())
    }

    fn failure(&self, error: &impl Fault) -> Failure {
        Failure::of(self.rank().0, error)
    }

    fn encode_outcome<T: Serialize, E: Fault>(&self, own: &Own<T, E>) -> Vec<u8> {
        encode(&own.as_ref().map_err(|error| self.failure(error)))
    }

    fn decode<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T> {
        postcard::from_bytes(bytes).map_err(|_| self.garbled())
    }

    fn decode_all<T: DeserializeOwned>(&self, mut bytes: &[u8]) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(self.size());
        for _ in 0..self.size() {
            let (one, rest) = postcard::take_from_bytes(bytes).map_err(|_| self.garbled())?;
            all.push(one);
            bytes = rest;
        }
        Ok(all)
    }

    /// A message of another version of this code: nothing more can be agreed with its sender.
    fn garbled(&self) -> Error {
        let rank = self.comm.rank();
        let why = "it does not have the agreed form";
        self.comm.blow(Error::Message { rank, from: rank, why })
    }
}

/// The payload of the lowest rank that has one.
fn lowest(lower: &[u8], upper: &[u8], both: &mut Vec<u8>) {
    both.extend_from_slice(if lower.is_empty() { upper } else { lower });
}

/// All payloads, by rank.
fn chain(lower: &[u8], upper: &[u8], both: &mut Vec<u8>) {
    both.extend_from_slice(lower);
    both.extend_from_slice(upper);
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("plain values can be encoded")
}
