//! The ranks of a job as one: nobody goes on unless everybody can.
//!
//! Data: each rank's own outcome -> a message -> the same verdict on every rank. A rank that failed
//! keeps its own error; the others hear which rank failed and why.
//!
//! Invariants:
//! - Every method is collective, unless it says otherwise: all ranks call it, in the same order,
//!   also those that have failed. Only who could not reach the others says nothing, then and ever
//!   after: they may still be where it failed, and wait for it there.
//! - A team of one sends nothing.

use serde::Serialize;
use serde::de::DeserializeOwned;
use standfast_comm::{Comm, Fuse, Solo, Tag, collective};
use standfast_format::{Kind, Rank};

use crate::error::{Error, Result};

/// What ranks tell the first one.
const GATHER: Tag = Tag(0x10);
/// Longest reason that is passed on, in characters.
const WHY_CHARS_MAX: usize = 2000;

/// The ranks that checkpoint together.
pub(crate) struct Team {
    comm: Fuse,
}

/// A failure on its way to other ranks.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Failure {
    rank: u32,
    kind: i32,
    why: String,
}

impl Failure {
    /// What this rank failed with, or what it heard of another.
    pub(crate) fn of(rank: Rank, error: &Error) -> Self {
        let (rank, why) = match error {
            Error::OtherRank { rank, why, .. } => (*rank, why.clone()),
            _ => (rank, error.to_string()),
        };
        let why = why.chars().take(WHY_CHARS_MAX).collect();
        Self { rank: rank.0, kind: error.kind().exit_code(), why }
    }

    pub(crate) fn into_error(self) -> Error {
        let kind = Kind::all().find(|kind| kind.exit_code() == self.kind).unwrap_or(Kind::Bug);
        Error::OtherRank { rank: Rank(self.rank), kind, why: self.why }
    }
}

impl Team {
    pub(crate) fn new(comm: Box<dyn Comm>) -> Self {
        Self { comm: Fuse::new(comm) }
    }

    /// A program without other ranks.
    pub(crate) fn solo() -> Self {
        Self::new(Box::new(Solo::default()))
    }

    /// The same ranks with messages of their own.
    pub(crate) fn duplicate(&self) -> Result<Self> {
        Ok(Self { comm: self.comm.twin()? })
    }

    /// This rank. Not collective.
    pub(crate) fn rank(&self) -> Rank {
        Rank(self.comm.rank() as u32)
    }

    /// How many ranks there are. Not collective.
    pub(crate) fn size(&self) -> usize {
        self.comm.size()
    }

    /// Whether this rank does what only one shall do. Not collective.
    pub(crate) fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    /// Not collective.
    pub(crate) fn comm(&self) -> &dyn Comm {
        &self.comm
    }

    /// This rank's outcome, if all ranks succeeded.
    pub(crate) fn agree<T>(&self, own: Result<T>) -> Result<T> {
        let own = reachable(own)?;
        if self.size() == 1 {
            return own;
        }
        let part = own.as_ref().err().map(|error| Failure::of(self.rank(), error));
        let part = part.map_or_else(Vec::new, |failure| encode(&failure));
        let first_failed = collective::all_reduce(self.comm(), part, |lower, upper| {
            Ok(if lower.is_empty() { upper } else { lower }.to_vec())
        })?;
        let own = own?;
        if first_failed.is_empty() {
            return Ok(own);
        }
        Err(self.decode::<Failure>(&first_failed)?.into_error())
    }

    /// What every rank has, by rank, if all have succeeded.
    pub(crate) fn gather_all<T>(&self, own: Result<T>) -> Result<Vec<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let own = reachable(own)?;
        if self.size() == 1 {
            return own.map(|value| vec![value]);
        }
        let all = collective::all_gather(self.comm(), &self.encode_outcome(&own))?;
        own?;
        all.iter().map(|bytes| self.decode_outcome(bytes)).collect()
    }

    /// What every rank has, by rank, at the first rank; nothing elsewhere.
    pub(crate) fn gather_first<T>(&self, own: Result<T>) -> Result<Option<Vec<Result<T>>>>
    where
        T: Serialize + DeserializeOwned,
    {
        let own = reachable(own)?;
        if !self.is_first() {
            self.comm.send(0, GATHER, &self.encode_outcome(&own))?;
            return Ok(None);
        }
        let mut all = vec![own];
        for from in 1..self.size() {
            all.push(self.decode_outcome(&self.comm.receive(from, GATHER)?));
        }
        Ok(Some(all))
    }

    /// What the first rank has; the others give `None`.
    pub(crate) fn tell<T>(&self, own: Option<Result<T>>) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
    {
        let own = own.map(reachable).transpose()?;
        if self.size() == 1 {
            return own.expect("the first rank tells");
        }
        let bytes = own.as_ref().map_or_else(Vec::new, |own| self.encode_outcome(own));
        let told = collective::broadcast(self.comm(), 0, &bytes)?;
        own.unwrap_or_else(|| self.decode_outcome(&told))
    }

    /// Which of these hold on every rank.
    pub(crate) fn all_hold<const N: usize>(&self, own: [bool; N]) -> Result<[bool; N]> {
        let own = own.map(u8::from).to_vec();
        let all = collective::all_reduce(self.comm(), own, |lower, upper| {
            Ok(lower.iter().zip(upper).map(|(a, b)| a & b).collect())
        })?;
        Ok(std::array::from_fn(|at| all.get(at) == Some(&1)))
    }

    /// Sends `parts[r]` to rank `r`, and returns what each rank has for this one.
    pub(crate) fn exchange<T>(&self, parts: &[T]) -> Result<Vec<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let told = self.comm.all_to_all(parts.iter().map(encode).collect())?;
        told.iter().map(|bytes| self.decode(bytes)).collect()
    }

    fn encode_outcome<T: Serialize>(&self, own: &Result<T>) -> Vec<u8> {
        encode(&own.as_ref().map_err(|error| Failure::of(self.rank(), error)))
    }

    fn decode_outcome<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T> {
        self.decode::<std::result::Result<T, Failure>>(bytes)?.map_err(Failure::into_error)
    }

    fn decode<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T> {
        let rank = self.comm.rank();
        let why = "it does not have the agreed form";
        postcard::from_bytes(bytes)
            .map_err(|_| standfast_comm::Error::Message { rank, from: rank, why }.into())
    }
}

/// An outcome that can be told to others.
fn reachable<T>(own: Result<T>) -> Result<Result<T>> {
    match own {
        Err(error) if error.is_out_of_reach() => Err(error),
        own => Ok(own),
    }
}

pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("plain values can be encoded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use standfast_comm::run_threads;

    fn teams<T: Send>(size: usize, body: impl Fn(Team) -> T + Sync) -> Vec<T> {
        run_threads(size, |comm| body(Team::new(Box::new(comm))))
    }

    #[test]
    fn one_failure_is_everybodys() {
        for size in [1, 2, 3, 5, 8] {
            let bad = size as u32 / 2;
            let outcomes = teams(size, |team| {
                let own = if team.rank().0 == bad { Err(Error::VersionZero) } else { Ok(7) };
                (team.agree(own), team.agree(Ok(team.rank())).unwrap())
            });
            for (rank, (outcome, after)) in outcomes.into_iter().enumerate() {
                assert_eq!(after, Rank(rank as u32), "the next agreement is not disturbed");
                match outcome {
                    Err(Error::VersionZero) => assert_eq!(rank as u32, bad),
                    Err(Error::OtherRank { rank, kind, why }) => {
                        assert_eq!((rank, kind), (Rank(bad), Kind::Invalid));
                        assert!(why.contains("start at 1"), "{why}");
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    /// Whoever misses a rank goes on to the next agreement, where nobody comes: the others are still
    /// at the one before, and wait for it.
    #[test]
    fn after_a_rank_is_lost_nobody_waits_for_ever() {
        for size in [3, 4, 7] {
            teams(size, |team| {
                if team.rank().0 + 1 < size as u32 {
                    let outcomes = [team.agree(Ok(())), team.agree(Ok(())), team.agree(Ok(()))];
                    assert!(outcomes.iter().any(Result::is_err));
                    assert!(outcomes.is_sorted_by_key(Result::is_err), "one failure is the last");
                }
            });
        }
    }

    #[test]
    fn everybody_hears_the_same() {
        for size in [1, 3, 4, 7] {
            teams(size, |team| {
                let rank = team.rank().0;
                assert_eq!(
                    team.gather_all(Ok(rank)).unwrap(),
                    (0..size as u32).collect::<Vec<_>>()
                );
                let first = team.gather_first(Ok(rank)).unwrap();
                assert_eq!(first.is_some(), team.is_first());
                let sum = first.map(|all| Ok(all.into_iter().map(Result::unwrap).sum::<u32>()));
                assert_eq!(team.tell(sum).unwrap(), (0..size as u32).sum::<u32>());
                let refused = team.is_first().then_some(Err::<u8, _>(Error::VersionZero));
                assert_eq!(team.tell(refused).unwrap_err().kind(), Kind::Invalid);
            });
        }
    }
}
