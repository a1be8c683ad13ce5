//! A communicator that only its own thread may use, as with many MPIs.

use standfast_comm::{Comm, Concurrency, Result, Tag};

/// Only the program's thread may talk: what is not finished in a call is not finished. Without a later
/// call only pledges are left.
pub struct Funneled(pub Box<dyn Comm>);

impl Comm for Funneled {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::CallerOnly
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.0.send(to, tag, bytes)
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.0.receive(from, tag)
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.0.exchange(to, bytes, from, tag)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        self.0.all_to_all(outgoing)
    }

    fn barrier(&self) -> Result<()> {
        self.0.barrier()
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        let part = self.0.split(colour, key)?;
        Ok(part.map(|part| Box::new(Funneled(part)) as Box<dyn Comm>))
    }
}
