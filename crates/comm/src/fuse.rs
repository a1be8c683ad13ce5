//! A communicator that fails for good: after one call has failed, none does anything any more.
//!
//! A rank that lost another one has left a conversation in the middle. If it began the next one, it
//! would wait there for ranks that still wait for it in the last: nobody would ever find out. With
//! this, all that it tries from then on fails at once, so that it goes, and the others see it gone.
//!
//! Invariant: communicators that were made from each other share their fate.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::{Around, Call, Comm};

/// A communicator of which a failed call is the last.
pub struct Fuse {
    comm: Box<dyn Comm>,
    blown: Arc<OnceLock<Error>>,
}

impl Fuse {
    /// Puts a communicator behind a fuse.
    pub fn new(comm: Box<dyn Comm>) -> Self {
        Self { comm, blown: Arc::default() }
    }

    /// As [`Comm::duplicate`], and the same fate.
    pub fn twin(&self) -> Result<Self> {
        self.before(Call::Split)?;
        let made = self.comm.duplicate().inspect_err(|why| self.failed(why));
        Ok(Self { comm: made?, blown: Arc::clone(&self.blown) })
    }

    /// Lets every further call fail with this, unless an earlier one has failed.
    pub(crate) fn blow(&self, why: Error) -> Error {
        self.blown.get_or_init(|| why).clone()
    }
}

impl Around for Fuse {
    fn inner(&self) -> &dyn Comm {
        &*self.comm
    }

    fn before(&self, _: Call) -> Result<()> {
        self.blown.get().map_or(Ok(()), |why| Err(why.clone()))
    }

    fn failed(&self, why: &Error) {
        // Of a rank that does not exist: nothing was sent. Otherwise the first reason counts.
        if !matches!(why, Error::NoRank { .. }) {
            let _ = self.blown.set(why.clone());
        }
    }

    fn wrap(&self, part: Box<dyn Comm>) -> Box<dyn Comm> {
        Box::new(Self { comm: part, blown: Arc::clone(&self.blown) })
    }
}
