//! Communicators around others: what they add, they add to every call.

use crate::error::{Error, Result};
use crate::{Comm, Concurrency, Tag};

/// A call that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A collective function that is built from messages begins.
    Begin,
    /// A message, sent or received, with so many bytes to another rank.
    Message(usize),
    /// A message for every rank, with so many bytes for others.
    AllToAll(usize),
    /// All ranks meet.
    Barrier,
    /// A communicator is made.
    Split,
}

/// A communicator around another one, which makes the calls. It is a [`Comm`] itself.
pub trait Around: Send + Sync {
    /// The one that makes the calls.
    fn inner(&self) -> &dyn Comm;

    /// Before a call: where this fails, it is not made.
    fn before(&self, call: Call) -> Result<()>;

    /// A call has failed.
    fn failed(&self, _: &Error) {}

    /// A communicator that was made from the inner one.
    fn wrap(&self, part: Box<dyn Comm>) -> Box<dyn Comm> {
        part
    }
}

fn make<T>(
    around: &impl Around,
    call: Call,
    run: impl FnOnce(&dyn Comm) -> Result<T>,
) -> Result<T> {
    around.before(call)?;
    run(around.inner()).inspect_err(|why| around.failed(why))
}

impl<A: Around> Comm for A {
    fn rank(&self) -> usize {
        self.inner().rank()
    }

    fn size(&self) -> usize {
        self.inner().size()
    }

    fn concurrency(&self) -> Concurrency {
        self.inner().concurrency()
    }

    fn begin(&self) -> Result<()> {
        make(self, Call::Begin, |comm| comm.begin())
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        make(self, Call::Message(bytes.len()), |comm| comm.send(to, tag, bytes))
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        make(self, Call::Message(0), |comm| comm.receive(from, tag))
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        make(self, Call::Message(bytes.len()), |comm| comm.exchange(to, bytes, from, tag))
    }

    fn send_from(&self, to: usize, tag: Tag, message: &mut Vec<u8>) -> Result<()> {
        make(self, Call::Message(message.len()), |comm| comm.send_from(to, tag, message))
    }

    fn receive_into(&self, from: usize, tag: Tag, into: &mut Vec<u8>) -> Result<()> {
        make(self, Call::Message(0), |comm| comm.receive_into(from, tag, into))
    }

    fn exchange_into(
        &self,
        to: usize,
        message: &mut Vec<u8>,
        from: usize,
        tag: Tag,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        let call = Call::Message(message.len());
        make(self, call, |comm| comm.exchange_into(to, message, from, tag, into))
    }

    fn exchange_over(
        &self,
        to: usize,
        bytes: &[u8],
        from: usize,
        tag: Tag,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        let call = Call::Message(bytes.len());
        make(self, call, |comm| comm.exchange_over(to, bytes, from, tag, into))
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let own = outgoing.get(self.rank()).map_or(0, Vec::len);
        let all: usize = outgoing.iter().map(Vec::len).sum();
        make(self, Call::AllToAll(all - own), |comm| comm.all_to_all(outgoing))
    }

    fn barrier(&self) -> Result<()> {
        make(self, Call::Barrier, |comm| comm.barrier())
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        let part = make(self, Call::Split, |comm| comm.split(colour, key))?;
        Ok(part.map(|comm| self.wrap(comm)))
    }

    fn duplicate(&self) -> Result<Box<dyn Comm>> {
        Ok(self.wrap(make(self, Call::Split, |comm| comm.duplicate())?))
    }
}
