//! How the ranks of a job talk to each other.
//!
//! One trait, [`Comm`], and its implementations: [`Solo`] (a program of one rank), MPI (its own crate,
//! through a table of C functions), and for tests ranks that are threads or processes (`tests/kit`).
//! What is built from messages alone, for any number of ranks, is in [`collective`] and works on all of
//! them. [`Collective`] is what a job talks through: there nobody goes on unless everybody can.
//!
//! Invariants:
//! - Messages between two ranks with one tag arrive in the order in which they were sent.
//! - Collective calls are made by all ranks of a communicator, in the same order.
//! - A failed call leaves the communicator unusable: the job cannot go on together. [`Fuse`] sees to it.

mod around;
pub mod collective;
mod converse;
mod error;
mod fuse;
mod ranks;
mod solo;
mod stop;

pub use around::{Around, Call};
pub use converse::converse;
pub use error::{Error, Result};
pub use fuse::Fuse;
pub use ranks::{Collective, Step};
pub use solo::Solo;
pub use stop::{Agreed, Failed, Failure, Fault, Lost, Own, Phase, Stop};

/// Distinguishes conversations between the same two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub u16);

/// From which threads a communicator may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// Any thread at any time: collective work may run beside the program.
    AnyThread,
    /// Only the thread that the program calls from, inside its calls.
    CallerOnly,
}

/// A group of ranks that can send each other bytes.
///
/// # Contract
/// - Messages have any length, also none. A message is received whole or not at all.
/// - A conversation (two ranks, one tag) is held by one thread at a time. Collective calls on one
///   communicator, too; several communicators may be used side by side.
/// - A rank that does not exist is refused before anything is sent; that harms nothing.
/// - Making and dropping communicators is collective, as are `all_to_all` and `barrier`. One that
///   was made from another outlives it.
///
/// The suite in `tests/conformance` checks all of it.
pub trait Comm: Send + Sync {
    /// This rank's number, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// From which threads the other methods may be called.
    fn concurrency(&self) -> Concurrency;

    /// A collective function that is built from messages begins. Only who watches conversations
    /// ([`converse`]) has something to do here; an [`Around`] passes it on.
    fn begin(&self) -> Result<()> {
        Ok(())
    }

    /// Sends a message; may wait until it is received.
    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()>;

    /// Waits for the next message of a rank with a tag.
    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>>;

    /// Sends one message and receives another, without waiting for each other in a circle. Either
    /// rank may be this one.
    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>>;

    /// As [`Comm::send`], of a buffer whose bytes are not needed any more: the transport may keep
    /// it and leave another one, with anything in it.
    fn send_from(&self, to: usize, tag: Tag, message: &mut Vec<u8>) -> Result<()> {
        self.send(to, tag, message)
    }

    /// As [`Comm::receive`], into a buffer that is used again: what was in it is gone, and where
    /// it has room nothing is allocated. The transport may keep the buffer and leave another.
    fn receive_into(&self, from: usize, tag: Tag, into: &mut Vec<u8>) -> Result<()> {
        *into = self.receive(from, tag)?;
        Ok(())
    }

    /// As [`Comm::exchange`], with both buffers used again.
    fn exchange_into(
        &self,
        to: usize,
        message: &mut Vec<u8>,
        from: usize,
        tag: Tag,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        self.exchange_over(to, message, from, tag, into)
    }

    /// As [`Comm::exchange`], into a buffer that is used again. What is sent stays as it is.
    fn exchange_over(
        &self,
        to: usize,
        bytes: &[u8],
        from: usize,
        tag: Tag,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        *into = self.exchange(to, bytes, from, tag)?;
        Ok(())
    }

    /// Sends `outgoing[r]` to rank `r`, and returns what each rank has sent to this one.
    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>>;

    /// Waits until every rank has come here.
    fn barrier(&self) -> Result<()> {
        collective::barrier(self)
    }

    /// A new communicator of the ranks that give the same colour, ordered by key, then by rank
    /// here. `None` takes part in the call and belongs to no new one.
    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>>;

    /// A communicator of the same ranks whose messages never meet those of this one.
    fn duplicate(&self) -> Result<Box<dyn Comm>> {
        let same = self.split(Some(0), 0)?;
        Ok(same.expect("a rank with a colour belongs to a communicator"))
    }
}
