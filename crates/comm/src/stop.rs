//! How a phase of several ranks ends where it does not succeed.
//!
//! A rank's own failure ([`Own`]) is not yet known to the others: whoever returned with it would
//! leave them waiting. So a phase, which returns [`Phase`], cannot return it: only an agreement of
//! [`crate::Collective`] turns it into a [`Stop`], which all ranks know, or which says that they
//! cannot be told.
//!
//! ```compile_fail,E0277
//! use standfast_comm::{Collective, Fault, Own, Phase, Step};
//!
//! fn phase<E: Fault>(ranks: &Collective, own: Own<u32, E>) -> Phase<u32, E> {
//!     let value = own?; // the other ranks would wait in the next line, for ever
//!     ranks.agree(Step("phase"), Ok(value))
//! }
//! ```
//! ```
//! use standfast_comm::{Collective, Fault, Own, Phase, Step};
//!
//! fn phase<E: Fault>(ranks: &Collective, own: Own<u32, E>) -> Phase<u32, E> {
//!     let value = ranks.agree(Step("phase"), own)?;
//!     Ok(value + 1)
//! }
//! ```

use std::fmt;
use std::ops::Deref;

use standfast_format::Kind;

use crate::error::Error;

/// Longest reason that is passed on, in characters.
const WHY_CHARS_MAX: usize = 2000;

/// A rank's own outcome, which the others do not know.
pub type Own<T, E> = Result<T, E>;
/// The outcome of what all ranks do together.
pub type Phase<T, E> = Result<T, Stop<E>>;

/// An error that a rank can tell the others.
pub trait Fault: fmt::Display + From<Error> {
    /// What sort of failure it is.
    fn kind(&self) -> Kind;

    /// The failure of another rank, as this rank's error.
    fn of_other(failure: Failure) -> Self;

    /// The failure of another rank, if this error is one.
    fn other(&self) -> Option<Failure>;
}

/// A failure on its way to other ranks.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Failure {
    /// Where it arose.
    pub rank: u32,
    kind: i32,
    /// What the error said.
    pub why: String,
}

impl Failure {
    /// A failure of this rank.
    pub fn new(rank: u32, kind: Kind, why: &str) -> Self {
        Self { rank, kind: kind.exit_code(), why: why.chars().take(WHY_CHARS_MAX).collect() }
    }

    /// What this rank failed with, or what it heard of another.
    pub fn of(rank: u32, error: &impl Fault) -> Self {
        error.other().unwrap_or_else(|| Self::new(rank, error.kind(), &error.to_string()))
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> Kind {
        Kind::from_exit_code(self.kind).unwrap_or(Kind::Bug)
    }
}

/// Why a phase ended on this rank.
#[derive(Clone, Debug)]
pub enum Stop<E> {
    /// The ranks cannot talk any more. Nothing can be agreed from here on.
    Lost(Lost),
    /// A rank failed, and all of them know.
    Failed(Failed<E>),
}

/// Ranks cannot be reached.
#[derive(Clone, Debug)]
pub struct Lost(Error);

/// A failure that all ranks know: this rank's own error, or the news of another's. Only agreements
/// make one.
#[derive(Clone, Debug)]
pub struct Failed<E>(pub(crate) E);

impl<E: Fault> Stop<E> {
    /// This rank's error.
    pub fn into_error(self) -> E {
        match self {
            Stop::Lost(Lost(why)) => why.into(),
            Stop::Failed(Failed(error)) => error,
        }
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> Kind {
        match self {
            Stop::Lost(Lost(why)) => why.kind(),
            Stop::Failed(Failed(error)) => error.kind(),
        }
    }
}

impl<E> Stop<E> {
    /// The same stop, told by the error of another crate.
    pub fn map<F>(self, into: impl FnOnce(E) -> F) -> Stop<F> {
        match self {
            Stop::Lost(lost) => Stop::Lost(lost),
            Stop::Failed(Failed(error)) => Stop::Failed(Failed(into(error))),
        }
    }
}

impl<E: fmt::Display> fmt::Display for Stop<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Lost(Lost(why)) => why.fmt(f),
            Stop::Failed(Failed(error)) => error.fmt(f),
        }
    }
}

impl<E> Failed<E> {
    /// The error, as this rank tells it: its own, if it failed. So ranks that go different ways by
    /// the sort of error agree on that first.
    pub fn error(&self) -> &E {
        &self.0
    }
}

impl<E> From<Lost> for Stop<E> {
    fn from(lost: Lost) -> Self {
        Stop::Lost(lost)
    }
}

impl<E> From<Failed<E>> for Stop<E> {
    fn from(failed: Failed<E>) -> Self {
        Stop::Failed(failed)
    }
}

/// A failed call of a communicator is its last ([`crate::Fuse`]): the ranks are lost.
impl From<Error> for Lost {
    fn from(why: Error) -> Self {
        Lost(why)
    }
}

impl<E> From<Error> for Stop<E> {
    fn from(why: Error) -> Self {
        Stop::Lost(Lost(why))
    }
}

impl From<Lost> for Error {
    fn from(Lost(why): Lost) -> Self {
        why
    }
}

/// What is equal on all ranks: they may decide by it what to do next.
///
/// Agreements make it, and what is computed from it alone stays agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed<T>(pub(crate) T);

impl<T> Agreed<T> {
    /// The same computation on all ranks: `compute` captures nothing.
    pub fn map<U>(self, compute: fn(T) -> U) -> Agreed<U> {
        Agreed(compute(self.0))
    }

    /// The value, from here on as this rank's own.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T, E> Agreed<Result<T, E>> {
    /// A failure that every rank has found by itself.
    pub fn decide(self) -> Phase<Agreed<T>, E> {
        self.0.map(Agreed).map_err(|error| Stop::Failed(Failed(error)))
    }
}

impl<T> Deref for Agreed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
