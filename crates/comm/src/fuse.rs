//! A communicator that fails for good: after one call has failed, none does anything any more.
//!
//! A rank that lost another one has left a conversation in the middle. If it began the next one, it
//! would wait there for ranks that still wait for it in the last: nobody would ever find out. With
//! this, all that it tries from then on fails at once, so that it goes, and the others see it gone.
//!
//! Invariant: communicators that were made from each other share their fate.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::{Comm, Concurrency, Tag};

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
        let comm = self.call(|comm| comm.duplicate())?;
        Ok(Self { comm, blown: Arc::clone(&self.blown) })
    }

    /// Lets every further call fail with this, unless an earlier one has failed.
    pub(crate) fn blow(&self, why: Error) -> Error {
        self.blown.get_or_init(|| why).clone()
    }

    fn call<T>(&self, call: impl FnOnce(&dyn Comm) -> Result<T>) -> Result<T> {
        if let Some(why) = self.blown.get() {
            return Err(why.clone());
        }
        call(&*self.comm).inspect_err(|why| match why {
            // Nothing was sent.
            Error::NoRank { .. } => {}
            // The first reason counts.
            _ => drop(self.blown.set(why.clone())),
        })
    }
}

impl Comm for Fuse {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn concurrency(&self) -> Concurrency {
        self.comm.concurrency()
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.call(|comm| comm.send(to, tag, bytes))
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.call(|comm| comm.receive(from, tag))
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.call(|comm| comm.exchange(to, bytes, from, tag))
    }

    fn send_from(&self, to: usize, tag: Tag, message: &mut Vec<u8>) -> Result<()> {
        self.call(|comm| comm.send_from(to, tag, message))
    }

    fn receive_into(&self, from: usize, tag: Tag, into: &mut Vec<u8>) -> Result<()> {
        self.call(|comm| comm.receive_into(from, tag, into))
    }

    fn exchange_into(
        &self,
        to: usize,
        message: &mut Vec<u8>,
        from: usize,
        tag: Tag,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        self.call(|comm| comm.exchange_into(to, message, from, tag, into))
    }

    fn exchange_over(
        &self,
        to: usize,
        bytes: &[u8],
        from: usize,
        tag: Tag,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        self.call(|comm| comm.exchange_over(to, bytes, from, tag, into))
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        self.call(|comm| comm.all_to_all(outgoing))
    }

    fn barrier(&self) -> Result<()> {
        self.call(|comm| comm.barrier())
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        let part = self.call(|comm| comm.split(colour, key))?;
        let blown = Arc::clone(&self.blown);
        Ok(part.map(|comm| Box::new(Self { comm, blown }) as Box<dyn Comm>))
    }

    fn duplicate(&self) -> Result<Box<dyn Comm>> {
        Ok(Box::new(self.twin()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_threads;

    const TAG: Tag = Tag(3);

    #[test]
    fn after_a_failure_nothing_is_sent_or_waited_for() {
        run_threads(3, |comm| {
            let fuse = Fuse::new(Box::new(comm));
            let part = fuse.duplicate().unwrap();
            match fuse.rank() {
                0 => {
                    let why = fuse.receive(1, TAG).unwrap_err().to_string();
                    assert!(why.contains("rank 1 has left"), "{why}");
                    // The last rank waits for this one, and would for ever.
                    let same = |error: Error| assert_eq!(error.to_string(), why);
                    same(fuse.receive(2, TAG).unwrap_err());
                    same(fuse.barrier().unwrap_err());
                    same(part.send(2, TAG, b"anything").unwrap_err());
                    same(part.split(Some(1), 0).err().unwrap());
                }
                1 => {}
                _ => assert!(part.receive(0, TAG).is_err(), "it has gone, and said nothing"),
            }
        });
    }

    #[test]
    fn a_rank_that_does_not_exist_harms_nothing() {
        run_threads(2, |comm| {
            let fuse = Fuse::new(Box::new(comm));
            assert!(matches!(fuse.send(2, TAG, b""), Err(Error::NoRank { .. })));
            fuse.barrier().unwrap();
        });
    }

    #[cfg(feature = "conformance")]
    #[test]
    fn a_fuse_is_a_communicator_like_others() {
        run_threads(4, |comm| crate::conformance::run(&Fuse::new(Box::new(comm))));
    }
}
