//! From the failures of other crates.

use std::sync::Arc;

use standfast_comm::{Failure, Fault, Lost};
use standfast_format::{Kind, Rank};

use super::{Cause, Error, Stop};

// Hidden, as whatever a cause is made of: no other crate's error is part of the interface.
#[doc(hidden)]
#[allow(private_bounds)]
impl<C: Into<Cause>> From<C> for Error {
    fn from(cause: C) -> Self {
        Error { cause: Box::new(cause.into()) }
    }
}

#[doc(hidden)]
impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        stop.into_error()
    }
}

#[doc(hidden)]
impl Fault for Error {
    fn kind(&self) -> Kind {
        self.kind()
    }

    fn of_other(failure: Failure) -> Self {
        let kind = failure.kind();
        Cause::OtherRank { rank: Rank(failure.rank), kind, why: failure.why }.into()
    }

    fn other(&self) -> Option<Failure> {
        match self.cause() {
            Cause::OtherRank { rank, kind, why } => Some(Failure::new(rank.0, *kind, why)),
            _ => None,
        }
    }
}

impl Error {
    /// For a restart that this error is to pass through.
    pub(crate) fn into_restart(self) -> standfast_restart::Error {
        match *self.cause {
            Cause::OtherRank { rank, kind, why } => {
                standfast_restart::Error::OtherRank { rank, kind, why }
            }
            Cause::Comm(source) => source.into(),
            own => {
                let (kind, source) = (own.kind(), Arc::new(own));
                standfast_restart::Error::Provided { kind, source }
            }
        }
    }
}

impl From<Lost> for Cause {
    fn from(lost: Lost) -> Self {
        Cause::Comm(lost.into())
    }
}

impl From<standfast_checkpoint::Error> for Cause {
    fn from(source: standfast_checkpoint::Error) -> Self {
        match source {
            standfast_checkpoint::Error::Unsealed { segment } => Cause::Unsealed { segment },
            standfast_checkpoint::Error::Beyond { segment } => Cause::Beyond { segment },
            standfast_checkpoint::Error::Store(source) => Cause::Store(source),
        }
    }
}

impl From<standfast_checkpoint::Unreadable> for Cause {
    fn from(source: standfast_checkpoint::Unreadable) -> Self {
        Cause::Restart(source.into())
    }
}

impl From<standfast_ring::Error> for Cause {
    fn from(source: standfast_ring::Error) -> Self {
        Cause::Ring(Arc::new(source))
    }
}

impl From<standfast_restart::Error> for Cause {
    fn from(source: standfast_restart::Error) -> Self {
        use standfast_restart::Error as Restart;
        match source {
            Restart::Unfit { version, why } => Cause::Unfit { version, why },
            Restart::Device(source) => Cause::Device(source),
            Restart::OtherRank { rank, kind, why } => Cause::OtherRank { rank, kind, why },
            Restart::Comm(source) => Cause::Comm(source),
            Restart::Provided { kind, source } => match source.downcast_ref::<Cause>() {
                Some(own) => own.clone(),
                None => Cause::Restart(Restart::Provided { kind, source }),
            },
            other => Cause::Restart(other),
        }
    }
}

impl From<standfast_store::Error> for Cause {
    fn from(source: standfast_store::Error) -> Self {
        Cause::Store(Arc::new(source))
    }
}
